"""Whether a root of its own is a turn, or a grading, routing or query-writing call that belongs to one."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from steelyard.recording.provenance._calls import ModelCall, is_intermediate_output, is_score
from steelyard.recording.provenance._words import words
from steelyard.recording.reading._questions import is_question

RootReason = Literal["retrieved", "answered", "no_call_seen", "grading", "routing", "query_writing"]

_GRADING = re.compile(
    r"\b(?:grader|grading|grade|assess\w*|relevan(?:t|ce)|grounded|support(?:s|ed)|hallucinat\w*|binary|score|evaluat\w*|judge"
    r"|yes or no|true or false)\b|['\"](?:yes|no|true|false|relevant)['\"]",
    re.IGNORECASE,
)
_ROUTING = re.compile(
    r"\b(?:rout(?:e|es|er|ing)|datasource|classif\w*|which (?:tool|agent|index)|choose (?:one|the))\b",
    re.IGNORECASE,
)
_QUERY = re.compile(
    r"\b(?:re-?writ\w*|rephras\w*|reformulat\w*|optimi[sz]\w*|improv\w*|enhanc\w*|generate|write|give|provide|create|suggest)\b"
    r"[^\n]{0,80}\b(?:quer(?:y|ies)|for the web|web search|for (?:better )?(?:retrieval|search)|keywords)\b"
    r"|\bstep[- ]back\b|\bsearch terms\b|\bsub-?questions\b",
    re.IGNORECASE,
)
_WRITING = re.compile(
    r"\b(?:re-?writ\w*|rephras\w*|reformulat\w*|standalone|stand-alone|condens\w*|search quer\w*"
    r"|sub-?questions?|different versions|multiple (?:search )?quer\w*|keywords|decompos\w*|paraphras\w*)\b",
    re.IGNORECASE,
)
_HEAD = 20_000  # what a prompt is for is said at its beginning
_LONG = 60  # words of a question; a longer line is a text that ends with a question
_TERMS = 12  # words of a search query that is not a sentence
_LABEL = 3


@dataclass(frozen=True, kw_only=True, slots=True)
class RootKind:
    """Whether something is a turn, and why."""

    is_turn: bool
    """False only where the evidence is plain: both what was asked of the model and its reply."""
    reason: RootReason
    """What decided it."""


def classify_root(
    calls: Sequence[ModelCall], *, answer: str, queries: Sequence[str] = (), retrieved: bool = False
) -> RootKind:
    """Decide whether a root is a turn of its own.

    A root is left out only where both sides agree: the prompt asks for a grade, a route, an order or a query,
    and the reply is one. A short answer ("Yes.", "Paris") to a question stays a turn.

    Args:
        calls: The model calls below the root.
        answer: The root's answer.
        queries: What retrievers elsewhere in the same request were asked.
        retrieved: Whether a retriever or a search ran below the root; then it is a turn.

    Example:
        >>> ask = "You are a grader. Is the document relevant? Give a binary score 'yes' or 'no'."
        >>> classify_root([ModelCall(prompts=(ask,), reply="no")], answer="no")
        RootKind(is_turn=False, reason='grading')
        >>> classify_root([ModelCall(prompts=("Is Rome in Italy?",), reply="Yes.")], answer="Yes.").is_turn
        True
    """
    if retrieved:
        return RootKind(is_turn=True, reason="retrieved")
    if not calls:
        return RootKind(is_turn=True, reason="no_call_seen")
    # Without an answer of its own the root is told by what models replied below it.
    replies = [answer] if answer.strip() else _said(calls)
    if replies and all(map(is_score, replies)):
        return RootKind(is_turn=False, reason="grading")  # in whatever language it was asked for
    reason = _reason_against(calls, replies, queries)
    return RootKind(is_turn=reason is None, reason=reason or "answered")


def _reason_against(
    calls: Sequence[ModelCall], replies: Sequence[str], queries: Sequence[str]
) -> RootReason | None:
    """What a root's prompts and replies show it to be instead of a turn."""
    # The first calls say what a root is for; an agent's later prompts repeat all before them.
    prompt = "\n".join(text[:_HEAD] for call in calls[:3] for text in call.prompts)[: 3 * _HEAD]
    if is_intermediate_output(replies) or _is_form(calls):
        # Routing first: routers speak of relevance and of grades as well, graders seldom of routes.
        for pattern, reason in _KINDS:
            if pattern.search(prompt):
                return reason
    # Looking at the replies first is faster: answers are no labels and no queries.
    elif all(_is_choice(reply, prompt) for reply in replies) and _ROUTING.search(prompt):
        return "routing"
    return "query_writing" if _writes_queries(replies, prompt, queries) else None


def _said(calls: Sequence[ModelCall]) -> list[str]:
    """All that models said."""
    return [text for call in calls for text in call.replies]


def _is_form(calls: Sequence[ModelCall]) -> bool:
    """Whether all that models said is a form with a verdict, a route or queries, which is not an answer."""
    said = _said(calls)
    return all(text.lstrip()[:1] in ("{", "`") for text in said) and is_intermediate_output(said)


_KINDS: tuple[tuple[re.Pattern[str], RootReason], ...] = (
    (_ROUTING, "routing"),
    (_GRADING, "grading"),
    (_WRITING, "query_writing"),
)


def _writes_queries(replies: Sequence[str], prompt: str, queries: Sequence[str]) -> bool:
    """Whether all replies are questions or known queries, and the prompt asked for such."""
    if not replies:
        return False
    known = {tuple(words(query)) for query in queries}
    has_terms = False
    for reply in replies:
        row = words(reply)
        lines = [line.rstrip(' "*') for line in reply.split("\n") if line.strip()]
        asks = bool(lines) and all(map(is_question, lines)) and len(row) <= _LONG * len(lines)
        if tuple(row) in known or asks:
            continue
        # Words to search for are few, and not a sentence.
        if not (lines and all(map(_is_terms, lines))):
            return False
        has_terms = True
    return _WRITING.search(prompt) is not None and (not has_terms or _QUERY.search(prompt) is not None)


def _is_terms(line: str) -> bool:
    return len(words(line)) <= _TERMS and not line.endswith((".", "!", ":", "\u3002"))


def _is_choice(reply: str, prompt: str) -> bool:
    """Whether a reply is one of the labels that a prompt offers, as in "Factual, Analytical, or Opinion"."""
    row = words(reply)
    # Labels have a word or two; a sentence that a prompt holds too is a quotation.
    if not row or len(row) > _LABEL:
        return False
    # A label is set off by quotes, commas or "or"; a bare word of a sentence is not offered.
    label = re.compile(
        rf"(?<![^\s'\"(:,;|/-]){re.escape(reply.strip())}(?=['\"),.;:|/]|\s+(?:or|oder|ou|o)\b)",
        re.IGNORECASE,
    )
    return label.search(prompt) is not None
