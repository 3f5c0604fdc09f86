"""Whether an application declines what cannot be answered, or corrects what is wrongly taken for granted."""

from __future__ import annotations

from dataclasses import dataclass

from steelyard.metrics import Metric, Threshold
from steelyard.questions import MetricRun, Noncommittal, Part, Predicate, Unanswered, YesNo, require
from steelyard.record import Record


@dataclass(frozen=True, kw_only=True)
class Declined(Metric):
    """1 if the answer says that it does not know, or what the question wrongly takes for granted, else 0.

    It is for questions that the documents do not answer. The other metrics would call such an answer evasive
    or without claims; so cases of the kinds `unanswerable` and `false_premise` are measured with this one
    alone. A correction has to agree with the reference where there is one: to make one up is no better than
    to make up an answer. The local judge cannot tell a correction; with it, only declining counts.
    """

    key = "declined"
    version = "2"

    threshold: Threshold = 1.0
    """It declines, or corrects."""

    @property
    def needs(self) -> tuple[Part, ...]:
        """Question and answer."""
        return ("question", "answer")

    def questions(self, record: Record) -> MetricRun:
        """Two questions, in one request."""
        declines, corrects = yield [Noncommittal(), _corrects(record)]
        (answer,) = require([declines], YesNo)
        if answer.value:
            return self.scored(1.0, explanation=f"the answer declines. {answer.reason}".strip())
        if isinstance(corrects, Unanswered) and corrects.cause == "unsupported":
            return self.scored(0.0, explanation="the answer does not say that it cannot be known")
        (answer,) = require([corrects], YesNo)
        said = "corrects" if answer.value else "neither declines nor corrects"
        return self.scored(
            float(answer.value),
            explanation=f"the answer {said} what the question takes for granted. {answer.reason}".strip(),
        )


def _corrects(record: Record) -> Predicate:
    criterion = "Does the answer say that something which the question takes for granted is not so"
    if record.reference is None:
        return Predicate(criterion=f"{criterion}?", needs=frozenset({"question", "answer"}))
    return Predicate(
        criterion=f"{criterion}, and does the reference say the same?",
        needs=frozenset({"question", "answer", "reference"}),
    )
