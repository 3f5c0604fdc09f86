"""One turn as a page shows it: its texts in pieces, each with the claims whose evidence it is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from steelyard._internal.text import printable
from steelyard.report import Label, reason_of
from steelyard.scores import Evaluation, Score, Verdict

_ANSWER = 20_000
_CONTEXT = 6_000
_CONTEXTS = 30
_CLAIMS = 60
_BAD_WHEN_TRUE = frozenset({"contradicted", "led_astray", "noncommittal"})

Piece = tuple[str, str]
"""A text, and the keys of the claims that rest on it, with spaces between."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Passage:
    """A text in pieces."""

    title: str
    """What it is."""
    pieces: tuple[Piece, ...]
    """In order."""
    cut: int
    """How many characters at its end are not shown."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Claim:
    """One verdict, and what people said of it."""

    index: int
    """Its place among the metric's verdicts."""
    key: str
    """Names it on the page."""
    about: str
    """What was judged."""
    said: str
    """What the judge said."""
    good: bool | None
    """Whether that speaks for the answer; None where it cannot be told."""
    reason: str
    """Why."""
    labels: tuple[Label, ...]
    """What people said."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ScoreView:
    """One metric's score with its claims."""

    score: Score
    """The score."""
    claims: tuple[Claim, ...]
    """The first 60 verdicts."""
    more: int
    """How many verdicts are not shown."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TurnPage:
    """All that the page of a turn shows."""

    evaluation: Evaluation
    """The turn."""
    scores: tuple[ScoreView, ...]
    """Every metric's."""
    passages: tuple[Passage, ...]
    """Question, answer, reference; empty where content was not stored."""
    contexts: tuple[Passage, ...]
    """The first 30 contexts."""
    more_contexts: int
    """How many are not shown."""
    labels: tuple[Label, ...]
    """What people said of the whole turn."""


def turn_page(evaluation: Evaluation, labels: Sequence[Label]) -> TurnPage:
    """A turn with its labels, ready for the page; all texts made harmless and cut to size."""
    record = evaluation.record
    scores = tuple(
        ScoreView(
            score=score,
            claims=tuple(
                _claim(number, index, verdict, score.metric, labels)
                for index, verdict in enumerate(score.verdicts[:_CLAIMS])
            ),
            more=max(len(score.verdicts) - _CLAIMS, 0),
        )
        for number, score in enumerate(evaluation.scores)
    )
    texts = []
    if record is not None:
        texts = [
            ("Question", record.question),
            ("Answer", record.answer),
            ("Reference", record.reference or ""),
        ]
    contexts = record.contexts if record else ()
    return TurnPage(
        evaluation=evaluation,
        scores=scores,
        passages=tuple(_passage(title, text, [], _ANSWER) for title, text in texts if text),
        contexts=tuple(
            _passage(f"Context {index + 1}", context.text, _evidence(evaluation, index), _CONTEXT)
            for index, context in enumerate(contexts[:_CONTEXTS])
        ),
        more_contexts=max(len(contexts) - _CONTEXTS, 0),
        labels=tuple(label for label in labels if label.claim is None),
    )


def _claim(number: int, index: int, verdict: Verdict, metric: str, labels: Sequence[Label]) -> Claim:
    value = verdict.value
    good: bool | None = None
    if value is None:
        said = f"no verdict ({verdict.cause or 'unknown'})"
    elif isinstance(value, bool):
        said, good = ("yes" if value else "no"), value != (verdict.kind in _BAD_WHEN_TRUE)
    else:
        said = f"{value:.2f}" if isinstance(value, float) else str(value)
    return Claim(
        index=index,
        key=f"{number}-{index}",
        about=verdict.about[:1_000],
        said=f"{verdict.kind.replace('_', ' ')}: {said}",
        good=good,
        reason=(reason_of(verdict) if good is False else verdict.reason)[:600],
        labels=tuple(label for label in labels if label.metric == metric and label.claim == index),
    )


def _evidence(evaluation: Evaluation, context: int) -> list[tuple[int, int, str]]:
    return [
        (piece.start, piece.end, f"{number}-{index}")
        for number, score in enumerate(evaluation.scores)
        for index, verdict in enumerate(score.verdicts[:_CLAIMS])
        for piece in verdict.evidence
        if piece.context == context and piece.start is not None and piece.end is not None
    ]


def _passage(title: str, text: str, spans: Sequence[tuple[int, int, str]], size: int) -> Passage:
    stop = min(len(text), size)
    edges = sorted({0, stop, *(min(max(edge, 0), stop) for span in spans for edge in span[:2])})
    pieces = tuple(
        (
            printable(text[low:high], lines=True),
            " ".join(key for start, end, key in spans if start <= low and high <= end),
        )
        for low, high in zip(edges, edges[1:], strict=False)
    )
    return Passage(title=title, pieces=pieces, cut=len(text) - stop)
