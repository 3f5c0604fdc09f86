"""Whether an application declines to answer what cannot be answered."""

from __future__ import annotations

from dataclasses import dataclass

from steelyard.metrics import Metric
from steelyard.questions import MetricRun, Noncommittal, Part, YesNo, require
from steelyard.record import Record


@dataclass(frozen=True, kw_only=True)
class Declined(Metric):
    """1 if the answer says that it does not know, else 0; for questions that the documents do not answer.

    The other metrics would call such an answer evasive or without claims; so cases of the kinds
    `unanswerable` and `false_premise` are measured with this one alone.
    """

    key = "declined"

    @property
    def needs(self) -> tuple[Part, ...]:
        """The answer."""
        return ("answer",)

    def questions(self, record: Record) -> MetricRun:
        """One question."""
        (answer,) = require((yield [Noncommittal()]), YesNo)
        said = "the answer declines" if answer.value else "the answer does not say that it cannot be known"
        return self.scored(float(answer.value), explanation=f"{said}. {answer.reason}".strip())
