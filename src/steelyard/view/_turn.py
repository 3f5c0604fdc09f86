"""One turn as its page shows it: every score's claims, and what people said of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import Response

from steelyard.diagnosis import MENDS
from steelyard.recording.explaining import Doubt, explain
from steelyard.report import Label
from steelyard.report.page import ClaimView, PassageView, claim, in_answer, in_context, passage
from steelyard.scores import Evaluation, Score
from steelyard.view._site import Site

_ANSWER = 20_000
_CONTEXT = 6_000
_CONTEXTS = 30
_CLAIMS = 60


def turn(site: Site, request: Request) -> Response:
    """One turn, with its claims, evidence and labels."""
    record_id = request.query_params.get("id", "")
    found = site.evaluation(record_id)
    if found is None:
        return site.say(request, "There is no turn of this id.", 404)
    return site.render(request, "turn.html", page=turn_page(found, site.labels.of(record_id)))


@dataclass(frozen=True, kw_only=True, slots=True)
class LabelledClaim:
    """One verdict, and what people said of it."""

    index: int
    """Its place among the metric's verdicts."""
    key: str
    """Names it on the page."""
    claim: ClaimView
    """The verdict in words."""
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
class TurnPage:
    """All that the page of a turn shows."""

    evaluation: Evaluation
    """The turn."""
    scores: tuple[ScoreView, ...]
    """Every metric's."""
    passages: tuple[PassageView, ...]
    """Question, answer, reference; empty where content was not stored."""
    contexts: tuple[PassageView, ...]
    """The first 30 contexts."""
    more_contexts: int
    """How many are not shown."""
    labels: tuple[Label, ...]
    """What people said of the whole turn."""
    how: Mapping[str, str]
    """By the title of a passage, how it is known and from where."""
    doubts: tuple[Doubt, ...]
    """What is doubtful of what was recorded, each with the option that settles it."""

    @property
    def mend(self) -> str:
        """What mends what the turn suffers from; empty of a good one."""
        found = self.evaluation.diagnosis
        return MENDS[found.cause] if found is not None and found.cause else ""


def turn_page(evaluation: Evaluation, labels: Sequence[Label]) -> TurnPage:
    """A turn with its labels, ready for the page; all texts made harmless and cut to size."""
    record = evaluation.record
    contexts = record.contexts if record else ()
    passages = []
    how: dict[str, str] = {}
    doubts: tuple[Doubt, ...] = ()
    if record is not None:
        found = explain(record)
        how = {"Question": found.question.how, "Answer": found.answer.how}
        how |= {f"Context {at}": part.how for at, part in enumerate(found.passages[:_CONTEXTS], 1)}
        doubts = found.doubts
        said = [
            span
            for number, score in enumerate(evaluation.scores)
            for span in in_answer(record.answer, score.verdicts[:_CLAIMS], prefix=f"{number}-")
        ]
        passages = [
            passage("Question", record.question, [], _ANSWER),
            passage("Answer", record.answer, said, _ANSWER),
            passage("Reference", record.reference or "", [], _ANSWER),
        ]
    return TurnPage(
        evaluation=evaluation,
        scores=tuple(
            _score(number, score, len(contexts), labels) for number, score in enumerate(evaluation.scores)
        ),
        passages=tuple(one for one in passages if one.pieces),
        contexts=tuple(
            passage(f"Context {index + 1}", context.text, _evidence(evaluation, index), _CONTEXT)
            for index, context in enumerate(contexts[:_CONTEXTS])
        ),
        more_contexts=max(len(contexts) - _CONTEXTS, 0),
        labels=tuple(label for label in labels if label.claim is None),
        how=how,
        doubts=doubts,
    )


def _score(number: int, score: Score, contexts: int, labels: Sequence[Label]) -> ScoreView:
    own = [label for label in labels if label.metric == score.metric]
    return ScoreView(
        score=score,
        claims=tuple(
            LabelledClaim(
                index=index,
                key=f"{number}-{index}",
                claim=claim(verdict, contexts),
                labels=tuple(label for label in own if label.claim == index),
            )
            for index, verdict in enumerate(score.verdicts[:_CLAIMS])
        ),
        more=max(len(score.verdicts) - _CLAIMS, 0),
    )


def _evidence(evaluation: Evaluation, context: int) -> list[tuple[int, int, str]]:
    return [
        span
        for number, score in enumerate(evaluation.scores)
        for span in in_context(context, score.verdicts[:_CLAIMS], prefix=f"{number}-")
    ]
