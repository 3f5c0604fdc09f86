"""One turn as its page shows it: the claims of one metric on its texts, and all that is known beside."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from steelyard.diagnosis import MENDS
from steelyard.record import Record
from steelyard.recording.explaining import Doubt, explain
from steelyard.report import Label
from steelyard.report.page import (
    ClaimView,
    PassageView,
    Piece,
    claim,
    in_answer,
    in_context,
    passage,
    words_of,
)
from steelyard.scores import Evaluation, Score, Verdict
from steelyard.view._flow import Flow, flow_of, used_contexts

_ANSWER = 20_000
_CONTEXT = 6_000
_CONTEXTS = 30
_CLAIMS = 60


@dataclass(frozen=True, kw_only=True, slots=True)
class LabelledClaim:
    """One verdict, and what people said of it."""

    index: int
    """Its place among the metric's verdicts."""
    claim: ClaimView
    """The verdict in words."""
    probability: float | None
    """The judge's probability of yes."""
    words: tuple[str, str]
    """What a person may say of it: for it, and against it."""
    labels: tuple[Label, ...]
    """What people said."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ScoreView:
    """One metric's score with its claims."""

    score: Score
    """The score."""
    claims: tuple[LabelledClaim, ...]
    """The first 60 verdicts."""
    more: int
    """How many verdicts are not shown."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ContextView:
    """One passage that the model was given."""

    passage: PassageView
    """Its text in pieces, under its number."""
    name: str
    """Its id, or empty."""
    rank: int | None
    """Its place in its retrieval, from 1."""
    score: float | None
    """The retriever's own score."""
    seen: float | None
    """The share of it that stood in the prompt, 0..1; None if that is not known."""
    how: str
    """How it is known and from where."""
    is_used: bool
    """Whether it holds the evidence of what speaks for the answer."""
    is_named: bool
    """Whether the diagnosis is about it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TextView:
    """Question, answer or reference."""

    passage: PassageView
    """The text in pieces."""
    how: str
    """How it is known and from where."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TurnPage:
    """All that the page of a turn shows."""

    evaluation: Evaluation
    """The turn."""
    scores: tuple[ScoreView, ...]
    """Every metric's."""
    shown: ScoreView | None
    """The one whose claims are on the texts; None without scores."""
    focus: int | None
    """The claim that is lit at first."""
    texts: tuple[TextView, ...]
    """Question, answer, reference; empty where content was not stored."""
    contexts: tuple[ContextView, ...]
    """The first 30 contexts, in the order of the prompt where that is known."""
    more_contexts: int
    """How many are not shown."""
    flow: Flow | None
    """The way of the passages."""
    labels: tuple[Label, ...]
    """What people said of the whole turn."""
    doubts: tuple[Doubt, ...]
    """What is doubtful of what was recorded, each with the option that settles it."""

    @property
    def mend(self) -> str:
        """What mends what the turn suffers from; empty of a good one."""
        found = self.evaluation.diagnosis
        return MENDS[found.cause] if found is not None and found.cause else ""


def turn_page(
    evaluation: Evaluation, labels: Sequence[Label], *, metric: str = "", focus: int | None = None
) -> TurnPage:
    """A turn with its labels, ready for the page; all texts made harmless and cut to size.

    Args:
        evaluation: The turn.
        labels: What people said of it.
        metric: The metric whose claims are shown on the texts; what weighs most against the turn if it is not
            one of its metrics.
        focus: The claim to light; the first that speaks against the turn if None.
    """
    record = evaluation.record
    contexts = record.contexts if record else ()
    scores = tuple(_score(score, len(contexts), labels) for score in evaluation.scores)
    shown = _shown(evaluation, scores, metric)
    verdicts = shown.score.verdicts[:_CLAIMS] if shown else ()
    return TurnPage(
        evaluation=evaluation,
        scores=scores,
        shown=shown,
        focus=_focus(evaluation, shown, focus),
        texts=texts_of(record, verdicts) if record else (),
        contexts=contexts_of(evaluation, verdicts),
        more_contexts=max(len(contexts) - _CONTEXTS, 0),
        flow=flow_of(evaluation),
        labels=tuple(label for label in labels if label.claim is None),
        doubts=explain(record).doubts if record else (),
    )


def texts_of(record: Record, verdicts: Sequence[Verdict] = ()) -> tuple[TextView, ...]:
    """Question, answer and reference, as far as they are there."""
    found = explain(record)
    texts = [
        TextView(passage=passage("Question", record.question, [], _ANSWER), how=found.question.how),
        TextView(
            passage=passage("Answer", record.answer, in_answer(record.answer, verdicts), _ANSWER),
            how=found.answer.how,
        ),
        TextView(passage=passage("Reference", record.reference or "", [], _ANSWER), how=""),
    ]
    return tuple(one for one in texts if one.passage.pieces)


def contexts_of(evaluation: Evaluation, verdicts: Sequence[Verdict] = ()) -> tuple[ContextView, ...]:
    """The passages that the model was given."""
    if (record := evaluation.record) is None:
        return ()
    found = explain(record).passages
    used = used_contexts(evaluation)
    named = evaluation.diagnosis.contexts if evaluation.diagnosis else ()
    return tuple(
        ContextView(
            passage=passage(f"Context {at + 1}", one.text, in_context(at, one.text, verdicts), _CONTEXT),
            name=one.id or "",
            rank=None if one.rank is None else one.rank + 1,
            score=one.score,
            seen=one.seen,
            how=found[at].how,
            is_used=at in used,
            is_named=at in named,
        )
        for at, one in enumerate(record.contexts[:_CONTEXTS])
    )


def speaks(piece: Piece, claims: Sequence[LabelledClaim]) -> str:
    """What the claims on a piece of text say of it: `bad` if one speaks against it, `good`, or `open`."""
    goods = {claims[int(key)].claim.good for key in piece.claims}
    return "bad" if False in goods else "good" if True in goods else "open"


def _score(score: Score, contexts: int, labels: Sequence[Label]) -> ScoreView:
    own = [label for label in labels if label.metric == score.metric]
    return ScoreView(
        score=score,
        claims=tuple(
            LabelledClaim(
                index=index,
                claim=claim(verdict, contexts),
                probability=verdict.probability,
                words=("good", "bad") if verdict.good is None else words_of(verdict.kind),
                labels=tuple(label for label in own if label.claim == index),
            )
            for index, verdict in enumerate(score.verdicts[:_CLAIMS])
        ),
        more=max(len(score.verdicts) - _CLAIMS, 0),
    )


def _shown(evaluation: Evaluation, scores: Sequence[ScoreView], metric: str) -> ScoreView | None:
    """The metric that was asked for, that the diagnosis goes by, or the first that has not passed."""
    decided = evaluation.diagnosis.metric if evaluation.diagnosis else ""
    for name in (metric, decided):
        if found := next((one for one in scores if one.score.metric == name), None):
            return found
    with_claims = [one for one in scores if one.claims]
    bad = [one for one in with_claims if one.score.passed is False]
    return next(iter([*bad, *with_claims, *scores]), None)


def _focus(evaluation: Evaluation, shown: ScoreView | None, asked: int | None) -> int | None:
    if shown is None or not shown.claims:
        return None
    if asked is not None:
        return asked if 0 <= asked < len(shown.claims) else None
    found = evaluation.diagnosis
    if found and found.metric == shown.score.metric and found.claim is not None:
        return found.claim if found.claim < len(shown.claims) else None
    return next((one.index for one in shown.claims if one.claim.good is False), None)
