"""A turn as it is read: its texts cut into pieces, each with the claims that rest on it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from steelyard._internal.text import counted, shorten, visible
from steelyard.report.figures import MetricFigure
from steelyard.results.queries import Funnel, Totals
from steelyard.scores import Evaluation, Verdict

_WORDS: Final[Mapping[str, tuple[str, str]]] = {
    "supported": ("supported", "not supported"),
    "contradicted": ("not contradicted", "contradicted"),
    "led_astray": ("not led astray", "wrong, and from a context"),
    "noncommittal": ("to the point", "evasive"),
    "useful": ("useful", "not useful"),
    "relevant": ("relevant", "beside the question"),
    "same": ("on both sides", "only on one side"),
    "sufficient": ("sufficient", "not sufficient"),
    "named": ("named", "missing"),
}
_YES_OR_NO: Final = ("yes", "no")


def words_of(kind: str) -> tuple[str, str]:
    """What a verdict of this kind says if it speaks for the turn, and if it speaks against it."""
    return _WORDS.get(kind, _YES_OR_NO)


def verdict_words(verdict: Verdict) -> str:
    """`supported`, `not useful`, `0.75`, or why there is no verdict."""
    if verdict.value is None:
        return f"no verdict ({verdict.cause or 'unknown'})"
    if verdict.good is not None:
        return words_of(verdict.kind)[0 if verdict.good else 1]
    return f"{verdict.value:.2f}" if isinstance(verdict.value, float) else str(verdict.value)


def remaining_turns(funnel: Funnel) -> list[tuple[str, int]]:
    """What else became of picked turns, in words."""
    return [
        ("seen by the screen alone", funnel.evaluated - funnel.by_judge),
        ("queued or being judged when last stored", funnel.pending),
        ("handed to the spool", funnel.spooled),
        ("given up at exit", funnel.abandoned),
    ]


def words(reason: str) -> str:
    """A reason as it is read."""
    return shorten(reason.replace("_", " "), 60)


def explain_verdict(verdict: Verdict) -> str:
    """Why, in few words: what the judge found missing or turned round, or else its own words."""
    notes = verdict.evidence[0].notes if verdict.evidence else {}
    found = [f"{item} is in no context" for item in _items(notes, "missing_numbers", "missing_names")]
    if notes.get("negation_flip"):
        found.append("negation turned round")
    return "; ".join(found) or verdict.reason or (verdict_words(verdict) if verdict.good is False else "")


def _items(notes: Mapping[str, Any], *names: str) -> list[str]:
    return [str(item) for name in names for item in notes.get(name) or ()]


def evidence_words(totals: Totals) -> str:
    """`How the passages are known: known 73 %, none 27 % of 1,181 turns`; empty if not counted."""
    if not totals.evidence:
        return ""
    kinds = ", ".join(f"{kind} {_share(count, totals.turns)}" for kind, count in totals.evidence.items())
    return f"How the passages are known: {kinds} of {counted(totals.turns, 'turn')}"


def bounds_words(metric: MetricFigure) -> str:
    """`0.72 to 0.96 whatever the 10 % of turns without a value are`; empty if hardly any has none."""
    if metric.bounds is None:
        return ""
    low, high = metric.bounds
    share = f"{metric.missing:.0%}".replace("%", " %")
    return f"{low:.2f} to {high:.2f} whatever the {share} of turns without a value are"


def worth_words(metric: MetricFigure) -> str:
    """`as 4,100 turns judged by chat:gpt-4o; 1,350 were`, or without a screen, how many independent ones.

    Empty if that is as many as were scored.
    """
    if metric.screen is None:
        found = metric.estimate
        if round(found.effective_n) >= 0.99 * found.n:
            return ""
        return f"as {found.effective_n:,.0f} independent turns of equal weight; {found.n:,} were scored"
    by = shorten(", ".join(metric.screen.judges), 80)
    return (
        f"as {metric.screen.worth:,.0f} turns judged{f' by {by}' if by else ''}; {metric.estimate.n:,} were"
    )


def shown_words(metrics: Sequence[MetricFigure]) -> list[str]:
    """Which value of each score the figures are of, one sentence for each kind that there is."""
    sentences = {
        "expectation": "the expectation of the formula under the judge's probabilities (`value`; the formula "
        "on bare verdicts is `hard_value`)",
        "verdicts": "the formula on the judge's verdicts (`value`, there is no `hard_value`)",
        "both": "of some turns an expectation under the judge's probabilities, of others the formula on bare "
        "verdicts: their mean says little",
    }
    return [
        f"Values of {', '.join(shorten(name, 40) for name in names)}: {said}."
        for kind, said in sentences.items()
        if (names := [one.metric for one in metrics if one.shows == kind])
    ]


def _share(count: int, turns: int) -> str:
    share = f"{count / turns:.0%}".replace("%", " %")
    # A single turn among thousands is there, and a few that are missing are missing.
    if share == "0 %":
        return "below 1 %"
    return "above 99 %" if share == "100 %" and count < turns else share


_ANSWER = 8_000
_CONTEXT = 2_400
_CONTEXTS = 12
_CLAIMS = 40
# What stands before a claim is needed to understand it.
_LEAD = 300


@dataclass(frozen=True, kw_only=True, slots=True)
class Piece:
    """A stretch of text that the same claims rest on."""

    text: str = field(repr=False)
    """The text, made harmless."""
    claims: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class PassageView:
    """A text in pieces."""

    title: str
    pieces: tuple[Piece, ...]
    cut: int = 0
    """How many characters are not shown."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ClaimView:
    """One verdict in words."""

    about: str = field(repr=False)
    verdict: str
    good: bool | None
    """Whether that speaks for the answer; None where it cannot be told."""
    reason: str = field(repr=False)
    sources: tuple[str, ...] = field(repr=False)
    """The passages with its evidence, e.g. `context 2`, and whether its place there was found by words."""


def title_of(evaluation: Evaluation) -> str:
    """The question, or the record's id where content was not stored."""
    question = evaluation.record.question if evaluation.record else ""
    return shorten(question, 160) if question else f"turn {visible(evaluation.record_id)}"


def turn_view(evaluation: Evaluation, metric: str) -> dict[str, Any]:
    """What a page shows of a turn that is opened at a metric; all texts made harmless and cut to size."""
    score, record = evaluation[metric], evaluation.record
    verdicts = score.verdicts[:_CLAIMS]
    contexts = record.contexts if record else ()
    answer = passage("Answer", record.answer, in_answer(record.answer, verdicts), _ANSWER) if record else None
    others = (one for one in evaluation.scores if one.metric != metric and one.value is not None)
    return {
        "title": title_of(evaluation),
        "score": score,
        "others": list(others),
        "record_id": visible(evaluation.record_id),
        "trace_id": visible((evaluation.trace.trace_id if evaluation.trace else "") or ""),
        "question": visible(record.question[:_ANSWER]) if record else "",
        "reference": visible((record.reference or "")[:_ANSWER]) if record else "",
        "answer": answer,
        "contexts": [
            passage(f"Context {place + 1}", one.text, in_context(place, one.text, verdicts), _CONTEXT)
            for place, one in enumerate(contexts[:_CONTEXTS])
        ],
        "more_contexts": max(len(contexts) - _CONTEXTS, 0),
        "claims": [claim(verdict, len(contexts)) for verdict in verdicts],
        "more_claims": len(score.verdicts) - len(verdicts),
        "explanation": shorten(score.explanation, 400),
    }


def claim(verdict: Verdict, contexts: int) -> ClaimView:
    """A verdict in words, on a turn with so many contexts."""
    # A passage that was found by the words of the claim is marked: the judge did not point there.
    found = {piece.context: piece.located for piece in verdict.evidence if piece.context is not None}
    seen = sorted(index for index in found if index < contexts)
    said = shorten(verdict_words(verdict), 80)
    reason = shorten(explain_verdict(verdict) if verdict.good is False else verdict.reason, 400)
    return ClaimView(
        about=shorten(verdict.about, 500),
        verdict=said,
        good=verdict.good,
        reason="" if reason == said else reason,
        sources=tuple(
            f"context {index + 1}{', place found by words' if found[index] else ''}" for index in seen
        ),
    )


Span = tuple[int, int, str]
"""Start, end and the key of a claim."""
_OF_CONTEXTS = frozenset({"useful", "relevant"})
"""Kinds of verdict that may be about a passage or a sentence of one."""


def in_answer(answer: str, verdicts: Sequence[Verdict]) -> list[Span]:
    """Where the answer says what was judged: the verdict's own span, or else its words where they stand.

    The key of a claim is its place among the verdicts.
    """
    spans = []
    for number, verdict in enumerate(verdicts):
        # A judge may point at no place; then the words are looked for where they stand.
        if (span := verdict.span or _place(verdict.about, answer)) is not None:
            spans.append((*span, str(number)))
    return spans


def in_context(index: int, text: str, verdicts: Sequence[Verdict]) -> list[Span]:
    """Where a context holds evidence, or is itself what was judged, with keys as in `in_answer`."""
    spans = [
        (piece.start, piece.end, str(number))
        for number, verdict in enumerate(verdicts)
        for piece in verdict.evidence
        if piece.context == index and piece.start is not None and piece.end is not None
    ]
    for number, verdict in enumerate(verdicts):
        is_bare = verdict.span is None and not verdict.evidence and verdict.kind in _OF_CONTEXTS
        if is_bare and (place := _place(verdict.about, text)) is not None:
            spans.append((*place, str(number)))
    return spans


def _place(words: str, text: str) -> tuple[int, int] | None:
    start = text.find(words) if len(words) > 3 else -1
    return (start, start + len(words)) if start >= 0 else None


def passage(title: str, text: str, spans: Iterable[Span], size: int) -> PassageView:
    """A text cut to size around its first span, in pieces between the ends of spans."""
    whole = len(text)
    kept = [(max(start, 0), min(end, whole), number) for start, end, number in spans if start < end]
    first = min((start for start, _, _ in kept), default=0)
    offset = max(min(first - _LEAD, whole - size), 0) if first > size // 2 else 0
    stop = min(offset + size, whole)
    edges = sorted({offset, stop, *(min(max(edge, offset), stop) for span in kept for edge in span[:2])})
    pieces = [
        Piece(
            text=visible(text[low:high]),
            claims=tuple(number for start, end, number in kept if start <= low and high <= end),
        )
        for low, high in zip(edges, edges[1:], strict=False)
    ]
    return PassageView(title=title, pieces=tuple(pieces), cut=whole - (stop - offset))
