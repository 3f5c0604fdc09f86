"""What a Score says, as one number to be calibrated."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from steelyard.scores import Evaluation, Score

Signal = Literal["value", "worst_verdict"]
"""`value` is the score itself; `worst_verdict` the lowest probability among its verdicts that speaks for the
answer. A share of few claims has few values; the probability tells more where there is one."""

SIGNALS: tuple[Signal, ...] = ("value", "worst_verdict")


@dataclass(frozen=True, kw_only=True, slots=True)
class Judged:
    """What one judge says of one turn by one metric."""

    record_id: str
    """The turn's record."""
    value: float
    """The score in 0..1, turned so that higher is better."""
    worst: float | None
    """The lowest probability, among its yes/no verdicts, of the answer that speaks for the turn; None where a
    verdict has no probability, or there are none."""
    inclusion: float
    """The probability with which the turn was picked for this metric."""
    claims: int
    """How many verdicts there are."""

    def signal(self, name: Signal) -> float | None:
        """One of the numbers that may be calibrated."""
        return self.value if name == "value" else self.worst


def judged_scores(evaluation: Evaluation) -> Iterator[tuple[Score, Judged]]:
    """The Scores of an Evaluation that can be calibrated: those with a value in 0..1 and a judge."""
    for score in evaluation.scores:
        if (judged := judged_of(evaluation.record_id, score)) is not None:
            yield score, judged


def judged_of(record_id: str, score: Score) -> Judged | None:
    """What a Score says; None where it has no value in 0..1 or nobody knows who made it."""
    if score.value is None or score.provenance is None or not 0 <= score.value <= 1:
        return None
    return Judged(
        record_id=record_id,
        value=score.value if score.direction == "higher" else 1 - score.value,
        worst=_worst(score),
        inclusion=score.inclusion_probability,
        claims=len(score.verdicts),
    )


def _worst(score: Score) -> float | None:
    found = []
    for verdict in score.verdicts:
        if verdict.good is None or verdict.probability_of_good is None:
            return None
        found.append(verdict.probability_of_good)
    return min(found, default=None)
