"""What a metric and the batcher agree on: questions go out in rounds, answers come back, a Score ends it."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

from steelyard.errors import Unanswerable
from steelyard.questions._answer import Answer, Unanswered
from steelyard.questions._question import Part, Question
from steelyard.record import Record
from steelyard.scores import Score

_Form = TypeVar("_Form")

MetricRun = Generator[Sequence[Question], Sequence[Answer], Score]
"""What a metric is while it runs: it yields rounds of questions and returns its Score."""


class SupportsQuestions(Protocol):
    """What the batcher needs to know of a metric."""

    @property
    def name(self) -> str:
        """The name its Score carries."""

    def ask(self, record: Record) -> MetricRun:
        """Start asking about a record."""


@dataclass(frozen=True, kw_only=True, eq=False)
class ScoreOf(Question):
    """The Score of another metric on the same record, for metrics that combine others.

    The batcher runs that metric beside all the others, so its questions travel with theirs.
    """

    kind = "score_of"
    form = Score
    metric: SupportsQuestions
    """The metric; its Score comes back without an id and without provenance."""

    @property
    def needs(self) -> frozenset[Part]:
        """Nothing: it is not put to a judge."""
        return frozenset()

    @property
    def hides(self) -> frozenset[Part]:
        """Nothing, for the same reason."""
        return frozenset()


def require(answers: Iterable[Answer], form: type[_Form]) -> list[_Form]:
    """The answers as what they were asked to be.

    Args:
        answers: Answers to questions that all have the same form.
        form: That form.

    Raises:
        Unanswerable: At the first one that is not there; the batcher turns it into the metric's Score.
    """
    checked: list[_Form] = []
    for answer in answers:
        if isinstance(answer, Unanswered):
            raise Unanswerable(form.__name__, cause=answer.cause, detail=answer.detail)
        assert isinstance(answer, form), f"{answer!r} is not a {form.__name__}"
        checked.append(answer)
    return checked
