"""Context recall: was what the reference says retrieved?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from steelyard.metrics._expected import chances, expected_share
from steelyard.metrics._formulas import share, share_error
from steelyard.metrics._metric import Metric, Threshold
from steelyard.metrics._steps import ClaimsFrom, claims_of, name_worst, verdicts
from steelyard.questions import MetricRun, Part, Supported, YesNo, require
from steelyard.record import Record


@dataclass(frozen=True, kw_only=True)
class ContextRecall(Metric):
    """Claims of the reference that the contexts support / all claims of the reference, in 0..1.

    Source: Ragas' `ContextRecall` (and DeepEval's contextual recall, which counts sentences:
    `claims="sentences"`). The answer stays hidden from the judge.
    """

    key = "context_recall"
    needs: ClassVar[tuple[Part, ...]] = ("contexts", "reference")

    threshold: Threshold = 1.0
    """Every claim of the reference is supported."""
    claims: ClaimsFrom = "extracted"
    """Whether the judge extracts the claims, or each sentence of the reference is one."""

    def questions(self, record: Record) -> MetricRun:
        """Claims first, then one verdict each."""
        claims = yield from claims_of(record, "reference", self.claims)
        if not claims:
            return self.not_applicable("no_claims", "the reference makes no claim")
        answers = require((yield [Supported(claim=claim, of="reference") for claim in claims]), YesNo)
        lost = [claim for claim, answer in zip(claims, answers, strict=True) if not answer.value]
        return self.scored(
            share(answer.value for answer in answers),
            expected=expected_share(chances(answers)),
            verdicts=verdicts("supported", claims, answers, record=record),
            standard_error=share_error([answer.probability for answer in answers]),
            explanation=f"{len(lost)} of {len(claims)} claims of the reference not retrieved"
            + (f": {name_worst(lost)}" if lost else ""),
        )
