"""Factual correctness: precision and recall of the answer's claims against the reference."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from steelyard.errors import ConfigurationError
from steelyard.metrics._expected import chances, expected_of_counts
from steelyard.metrics._formulas import f_score
from steelyard.metrics._metric import Metric
from steelyard.metrics._steps import both_claims, verdicts
from steelyard.questions import MetricRun, Part, Supported, YesNo, require
from steelyard.record import Record


@dataclass(frozen=True, kw_only=True)
class FactualCorrectness(Metric):
    """Claims of the answer that the reference entails (precision), and the other way round (recall), in 0..1.

    Source: Ragas' `FactualCorrectness`, F = (1 + b^2) P R / (b^2 P + R). Recall is over the reference's own
    claims, so that a finer-grained answer is not favoured; `recall="counts"` is Ragas' reading, which takes
    the supported claims of the answer as true positives on both sides: R = TP / (TP + FN).
    """

    key = "factual_correctness"
    needs: ClassVar[tuple[Part, ...]] = ("answer", "reference")

    mode: Literal["f", "precision", "recall"] = "f"
    """Which of the three is the value."""
    beta: float = 1.0
    """Above 1 recall counts more, below 1 precision."""
    recall: Literal["claims", "counts"] = "claims"
    """Covered claims of the reference over all of them; or the answer's supported claims over those and the
    reference's missing ones, as Ragas counts."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.beta <= 0:
            raise ConfigurationError(f"beta must be above 0, not {self.beta!r}")

    def questions(self, record: Record) -> MetricRun:
        """Both lists of claims first, then a verdict for each claim."""
        ours, theirs = yield from both_claims()
        if not ours or not theirs:
            which = "answer" if not ours else "reference"
            return self.not_applicable("no_claims", f"the {which} makes no claim")
        right = [Supported(claim=claim, by="reference", of="answer") for claim in ours]
        covered = [Supported(claim=claim, by="answer", of="reference") for claim in theirs]
        answers = require((yield [*right, *covered]), YesNo)
        made, known = answers[: len(ours)], answers[len(ours) :]
        found, met = sum(answer.value for answer in made), sum(answer.value for answer in known)
        precision, recall = self._sides(found, met, len(made), len(known))
        return self.scored(
            self._value(found, met, len(made), len(known)),
            expected=expected_of_counts(
                lambda one, other: self._value(one, other, len(made), len(known)),
                chances(made),
                chances(known),
            ),
            verdicts=verdicts("supported", ours, answers[: len(ours)], record=record, of_answer=True)
            + verdicts("supported", theirs, answers[len(ours) :]),
            explanation=f"precision {precision:.2f} over {len(ours)} claims of the answer, "
            f"recall {recall:.2f} over {len(theirs)} of the reference",
        )

    def _sides(self, found: int, met: int, made: int, known: int) -> tuple[float, float]:
        """Precision and recall, from supported claims of the answer and covered ones of the reference."""
        if self.recall == "claims":
            return found / made, met / known
        positive = found + known - met
        return found / made, found / positive if positive else 0.0

    def _value(self, found: int, met: int, made: int, known: int) -> float:
        precision, recall = self._sides(found, met, made, known)
        f_value = f_score(precision, recall, beta=self.beta)
        return {"f": f_value, "precision": precision, "recall": recall}[self.mode]
