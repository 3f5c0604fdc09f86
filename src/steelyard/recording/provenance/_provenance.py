"""What a turn's answer is judged by, what is known about that, and whether a root is a turn of its own."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace

from steelyard.record import Context, ContextsSource
from steelyard.recording.provenance._calls import (
    AnswerCalls,
    ModelCall,
    calls_behind,
    form_of,
    is_intermediate_output,
    is_score,
    json_strings,
    strip_code_fence,
)
from steelyard.recording.provenance._evidence import MOST_PASSAGES, MOST_PROMPT, UNDECIDED, PassageMatch
from steelyard.recording.provenance._find import find_passages
from steelyard.recording.provenance._notes import Note, sentence
from steelyard.recording.provenance._words import holds_replies, plain, plain_line, word_count, words
from steelyard.recording.reading._questions import is_question
from steelyard.recording.reading._values import ANSWERS

_WHOLE = 0.95  # what is above lacks a word or two to a template, and was not cut
_MOSTLY = 0.5
_TELLING = 4
"""Words that a reply or a passage must have to be told by them."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Origin:
    """Where an answer came from: the context fields of a Record, and what is doubtful about them."""

    contexts: tuple[Context, ...]
    """What the answer is judged by: those in its prompt, in the order of the prompt, where that is known;
    else all candidates in their order."""
    retrieved: tuple[Context, ...]
    """All candidates in their order, where that is more than `contexts`; otherwise empty."""
    contexts_source: ContextsSource
    """`in_prompt` only where every context was found in a prompt that made the answer."""
    calls: AnswerCalls
    """The model calls that made the answer."""
    notes: tuple[str, ...]
    """What is lost or doubtful; each begins with a name of `NOTES`."""


def trace_provenance(
    candidates: Iterable[Context],
    calls: Sequence[ModelCall],
    *,
    answer: str,
    question: str = "",
    queries: Iterable[str] = (),
    source: ContextsSource = "retrieved",
) -> Origin:
    """Decide what an answer is judged by, from what was retrieved and what models were asked.

    Args:
        candidates: Everything that retrievers, tools and steps brought, in order.
        calls: All model calls of the turn.
        answer: What the user was shown.
        question: What was asked; words that a passage shares with it prove nothing.
        queries: What retrievers were asked; calls that wrote them did not make the answer.
        source: How the candidates came in, where the prompt does not decide it.

    Example:
        >>> docs = [Context(text="Rome has seven hills."), Context(text="Paris has one river.")]
        >>> call = ModelCall(prompts=("Context: ['Rome has seven hills.']",), reply="Seven.")
        >>> found = trace_provenance(docs, [call], answer="Seven.")
        >>> [(one.text, one.seen) for one in found.contexts], found.contexts_source
        ([('Rome has seven hills.', 1.0)], 'in_prompt')
    """
    unique: dict[str, Context] = {}
    for context in candidates:
        unique.setdefault(context.text, context)
    # A rewriter that changed nothing replied with the question, which stands in every prompt after it.
    found, asked = calls_behind(calls, answer, queries=(*queries, question)), plain(question)
    notes = [sentence(note) for note in found.notes]
    prompts = [text for at in found.all for text in calls[at].prompts if text]
    if not unique or not prompts:
        every = tuple(_seen(context, UNDECIDED, asked) for context in unique.values())
        lacking = sentence("no_prompt_seen" if unique else "no_contexts")
        return Origin(
            contexts=every, retrieved=(), contexts_source=source, calls=found, notes=(*notes, lacking)
        )
    unique = _not_replied(unique, calls, found)
    prompts = _without_cut(unique, calls, found) or prompts
    sightings = find_passages(list(unique), prompts, question=question)
    too_large = sum(map(len, unique)) > MOST_PASSAGES or sum(map(len, prompts)) > MOST_PROMPT
    every = tuple(_seen(one, seen, asked) for one, seen in zip(unique.values(), sightings, strict=True))
    return _decided(every, sightings, source, found, notes, too_large=too_large)


def _without_cut(candidates: Collection[str], calls: Sequence[ModelCall], found: AnswerCalls) -> list[str]:
    """The prompts of the calls behind an answer, without those that a candidate was copied out of.

    An extract takes the place of the passage that a model cut it out of; a whole passage is none.
    """
    replies = {at: calls[at].reply.strip() for at in found.all if at not in found.made}
    copied = set(candidates).intersection(replies.values())
    forms = set(map(plain, candidates)) if copied else ()
    cut = {text for text in copied if sum(plain(text) in form for form in forms) > 1}
    return [text for at in found.all if replies.get(at) not in cut for text in calls[at].prompts if text]


def _not_replied(
    candidates: dict[str, Context], calls: Sequence[ModelCall], found: AnswerCalls
) -> dict[str, Context]:
    """The candidates without those that hold what a model replied on the way.

    An engine's answer that a retriever hands on as a node is not evidence; what that engine was shown is.
    What a model only copied, a sentence of a passage, is evidence still.
    """
    said = [
        reply.strip()
        for at in found.fed
        for reply in (text for one in calls[at].replies for text in json_strings(one))
        if word_count(reply) >= _TELLING
        and calls[at].prompts  # of a call whose prompt was not seen, nobody knows what it copied
        and not any(reply.strip() in text for text in calls[at].prompts)
    ]
    return {text: one for text, one in candidates.items() if not _ends_in(text, said)}


def _ends_in(text: str, said: Sequence[str]) -> bool:
    """Whether a text holds replies, and not only above the most of it: a query heads what was found by it."""
    end = max((at + len(reply) for reply in said if (at := text.rfind(reply)) >= 0), default=0)
    return end >= _MOSTLY * len(text)


def _decided(
    every: tuple[Context, ...],
    sightings: Sequence[PassageMatch],
    source: ContextsSource,
    calls: AnswerCalls,
    notes: list[str],
    *,
    too_large: bool,
) -> Origin:
    placed = [(s.position or 0, one) for one, s in zip(every, sightings, strict=True) if s.found]
    inside = tuple(one for _, one in sorted(placed, key=lambda pair: pair[0]))
    notes += _counted(inside, sightings)
    notes += [sentence("contexts_too_large")] if too_large else []
    if not inside:
        # What did not reach the prompt is not what the answer rests on; what is too short to be told may be.
        untold = tuple(one for one, sighting in zip(every, sightings, strict=True) if sighting.found is None)
        notes.append(sentence("contexts_not_in_prompt"))
        return Origin(
            contexts=untold,
            retrieved=every if len(untold) < len(every) else (),
            contexts_source=source,
            calls=calls,
            notes=tuple(notes),
        )
    return Origin(
        contexts=inside,
        retrieved=every if len(inside) < len(every) else (),
        contexts_source="in_prompt",
        calls=calls,
        notes=tuple(notes),
    )


def _counted(inside: Iterable[Context], sightings: Sequence[PassageMatch]) -> list[str]:
    counts: dict[Note, int] = {
        "contexts_partly_in_prompt": sum(one.seen is not None and one.seen < _WHOLE for one in inside),
        "contexts_undecided": sum(sighting.found is None for sighting in sightings),
    }
    return [sentence(note, count=count) for note, count in counts.items() if count]


def _seen(context: Context, sighting: PassageMatch, asked: str) -> Context:
    """The passage with the share of it that was there, and without a query that only repeats the question."""
    seen = None if sighting.found is None else (sighting.seen if sighting.found else 0.0)
    query = None if context.query and plain(context.query) == asked else context.query
    return replace(context, seen=seen, query=query)


_WRITTEN = (
    f"{sentence('question_rewritten_only')}; a model wrote it in an earlier run, or in one around this: "
    "`with record(...):` or a span with the question around both keeps the user's"
)
_SHOWN = (
    "this run was shown what a model replied in an earlier run, and nothing holds them together; "
    "`with record(...):` or a span with the question around all of them does"
)

_LABEL_WORDS = 3  # as in "Follow Up Input: ..."; a label that is offered has no more
_FEWEST_CHARACTERS = 8  # "Why?" stands in many prompts
_FEWEST_WORDS = 6  # a shorter line may be a heading that every prompt has
_MOST_PROMPT = 200_000


def notes_on_predecessors(
    question: str,
    calls: Sequence[ModelCall],
    earlier: Sequence[ModelCall],
    *,
    around: Sequence[ModelCall] = (),
    found: Iterable[str],
    in_conversation: bool,
    given: Iterable[str] = (),
) -> list[str]:
    """Say that a turn's question, or a part of its prompt, was written by a model in an earlier run.

    Args:
        question: The turn's question.
        calls: Its model calls.
        earlier: Calls of the latest runs before it in the same task or thread, ended when it began.
        around: Calls of runs that were open when it ended; another thread's may have begun it.
        found: The passages that it retrieved, and its question as a model wrote it; what stands there was not
            passed on.
        in_conversation: Whether its prompts hold an earlier exchange, where earlier replies belong.
        given: Texts that it was given as they stand, each by itself: an answer that it is about, say.
    """
    if not (every := (*earlier, *around)):
        return []
    asked = plain_line(question)
    is_long = len(asked) >= _FEWEST_CHARACTERS
    notes = [_WRITTEN] if is_long and any(_wrote(call, asked) for call in every) else []
    if in_conversation:  # earlier replies belong into the prompt, and tell nothing
        return notes
    prompt = "\n".join(text for call in calls for text in call.prompts)[:_MOST_PROMPT]
    known = [question.strip(), *found]
    is_shown = _is_shown(earlier, prompt, known=known) and not holds_replies(prompt)
    replied = {call.reply.strip() for call in earlier if word_count(call.reply) > 1}.difference(known)
    is_given = not replied.isdisjoint(given)
    return [*notes, _SHOWN] if is_shown or is_given else notes


def _wrote(call: ModelCall, asked: str) -> bool:
    """Whether a question is a line of a reply, perhaps behind a number or a label, and not the prompt's.

    What a form has of a longer line of the prompt a model picked out, to search for.
    """
    most = word_count(asked) + _LABEL_WORDS
    lines = [line for line in call.lines if line.endswith(asked) and word_count(line) <= most]
    # The prompt last: it is long, and most replies do not hold the question.
    if not lines or asked not in plain(shown := "\n".join(call.prompts)):
        return bool(lines)
    is_form = asked in lines and asked not in map(plain_line, call.reply.split("\n"))
    told = (line for line in map(plain_line, shown.split("\n")) if line.endswith(asked))
    return is_form and all(word_count(line) > most for line in told)


def _is_shown(earlier: Sequence[ModelCall], prompt: str, *, known: Sequence[str]) -> bool:
    """Whether a prompt holds what was replied before, at a place that nothing known accounts for."""
    shown = plain(prompt)
    lines = ((call, line) for call in earlier for line in call.lines if word_count(line) >= _FEWEST_WORDS)
    said = [(call, line) for call, line in lines if line in shown]
    told = plain("\n".join(known)) if said else ""
    # What an earlier call was sent is looked at last, since it is long.
    return any(line not in told and line not in plain("\n".join(call.prompts)) for call, line in said)


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
_SCORE = r"[^\W\d]{1,20}\s?[:=#]?\s?\d{1,4}(?:\.\d{1,4})?"
_SCORES = re.compile(rf"{_SCORE}(?:[\s,;%]{{1,4}}{_SCORE})*[\s,;%]{{0,4}}")
"""Numbers with a label each, as "Doc: 2, Relevance: 9"."""
_HEAD = 20_000  # what a prompt is for is said at its beginning
_LONG = 60  # words of a question; a longer line is a text that ends with a question
_TERMS = 12  # words of a search query that is not a sentence


def is_turn(
    calls: Sequence[ModelCall], *, answer: str, queries: Sequence[str] = (), retrieved: bool = False
) -> bool:
    """Whether a root is a turn of its own.

    A root is left out only where both sides agree: the prompt asks for a grade, a route, an order or a query,
    and the reply is one. A short answer ("Yes.", "Paris") to a question stays a turn.

    Args:
        calls: The model calls below the root.
        answer: The root's answer.
        queries: What retrievers elsewhere in the same request were asked.
        retrieved: Whether a retriever or a search ran below the root; then it is a turn.

    Example:
        >>> ask = "You are a grader. Is the document relevant? Give a binary score 'yes' or 'no'."
        >>> is_turn([ModelCall(prompts=(ask,), reply="no")], answer="no")
        False
        >>> is_turn([ModelCall(prompts=("Is Rome in Italy?",), reply="Yes.")], answer="Yes.")
        True
    """
    if retrieved or not calls:
        return True
    if _is_made_number(answer.strip(), calls):
        return False
    # Without an answer of its own the root is told by what models replied below it.
    replies = [answer] if answer.strip() else _said(calls)
    if replies and all(map(is_score, replies)):
        return False  # grading, in whatever language it was asked for
    if _helps(calls, replies):
        return False
    if not _writes_queries(replies, _instructions(calls), queries):
        return True
    # What a root rewrites on the way says nothing of the call that answers, even with the question itself.
    made = [calls[at] for at in calls_behind(calls, answer).made]
    return bool(made) and not _writes_queries(replies, _instructions(made), queries)


def _is_made_number(answer: str, calls: Sequence[ModelCall]) -> bool:
    """Whether an answer is a number that code made of forms, and none of them calls it the answer."""
    forms = [form_of(call.reply) for call in calls] if answer.replace(".", "", 1).isdigit() else []
    told = {str(form.get(name)) for form in forms for name in ANSWERS}
    return bool(forms) and all(forms) and answer not in told


def _instructions(calls: Sequence[ModelCall]) -> str:
    """What the first calls were sent: an agent's later prompts repeat all before them."""
    return "\n".join(text[:_HEAD] for call in calls[:3] for text in call.prompts)[: 3 * _HEAD]


def _helps(calls: Sequence[ModelCall], replies: Sequence[str]) -> bool:
    """Whether a root's prompts and replies show it to grade or to route."""
    prompt = _instructions(calls)
    if is_intermediate_output(replies) or _is_form(calls) or all(map(_SCORES.fullmatch, replies)):
        return any(pattern.search(prompt) for pattern in (_ROUTING, _GRADING, _WRITING))
    # Looking at the replies first is faster: answers are no labels and no queries.
    return all(_is_choice(reply, prompt) for reply in replies) and _ROUTING.search(prompt) is not None


def _said(calls: Sequence[ModelCall]) -> list[str]:
    """All that models said."""
    return [text for call in calls for text in call.replies]


def _is_form(calls: Sequence[ModelCall]) -> bool:
    """Whether all that models said is a form with a verdict, a route or queries, which is not an answer."""
    said = _said(calls)
    return all(text.lstrip()[:1] in ("{", "`") for text in said) and is_intermediate_output(said)


def _writes_queries(replies: Sequence[str], prompt: str, queries: Sequence[str]) -> bool:
    """Whether all replies are questions or known queries, and the prompt asked for such."""
    if not replies:
        return False
    known, has_terms = {tuple(words(query)) for query in queries}, False
    for reply in replies:
        row = words(reply)
        lines = [line.rstrip(' "*') for line in reply.split("\n") if line.strip()]
        asks = bool(lines) and all(map(is_question, lines)) and len(row) <= _LONG * len(lines)
        if tuple(row) in known or asks or _is_named(reply, prompt):
            continue
        if not _may_be_terms(reply, lines):
            return False
        has_terms = True
    return _WRITING.search(prompt) is not None and (not has_terms or _QUERY.search(prompt) is not None)


def _is_named(reply: str, prompt: str) -> bool:
    """Whether a reply is only what its prompt says behind a label: a rewriter had nothing to rewrite."""
    return any(line.rstrip().endswith(f": {reply.strip()}") for line in prompt.split("\n"))


def _may_be_terms(reply: str, lines: Sequence[str]) -> bool:
    """Whether a reply is a list as JSON; else words to search for are few, and not a sentence."""
    is_short = all(len(words(one)) <= _TERMS and not one.endswith((".", "!", ":", "\u3002")) for one in lines)
    return strip_code_fence(reply).startswith("[") or (bool(lines) and is_short)


def _is_choice(reply: str, prompt: str) -> bool:
    """Whether a reply is one of the labels that a prompt offers, as in "Factual, Analytical, or Opinion"."""
    row = words(reply)
    if not row or len(row) > _LABEL_WORDS:
        return False  # a sentence that a prompt holds too is a quotation
    # A label is set off by quotes, commas or "or"; a bare word of a sentence is not offered.
    # An identifier says nothing to a person, wherever it stands.
    ends = r"\b" if "_" in reply and len(reply.split()) == 1 else r"['\"),.;:|/]|\s+(?:or|oder|ou|o)\b"
    label = rf"(?<![^\s'\"(:,;|/-]){re.escape(reply.strip())}(?={ends})"
    return re.search(label, prompt, re.IGNORECASE) is not None
