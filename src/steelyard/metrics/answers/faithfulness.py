"""Faithfulness: is what the answer claims supported by what was retrieved?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from steelyard.metrics._expected import chances, expected_share
from steelyard.metrics._formulas import share, share_error
from steelyard.metrics._metric import Metric, Threshold
from steelyard.metrics._steps import ClaimsFrom, claims_of, name_worst, verdicts
from steelyard.questions import Contradicted, MetricRun, Part, Supported, YesNo, require
from steelyard.record import Record


@dataclass(frozen=True, kw_only=True)
class Faithfulness(Metric):
    """Supported claims of the answer / all claims of the answer, in 0..1.

    Source: Es, James, Espinosa-Anke & Schockaert, "RAGAS: Automated Evaluation of Retrieval Augmented
    Generation" (2024, arXiv:2309.15217), section 3, F = |V| / |S|. In the `non_contradiction` variant, which
    is DeepEval's, only a contradicted claim counts against the answer.

    An answer without a claim (a refusal, a question back) is `not_applicable`: there is nothing to support.
    """

    key = "faithfulness"
    needs: ClassVar[tuple[Part, ...]] = ("answer", "contexts")

    threshold: Threshold = 1.0
    """Every claim is supported."""
    claims: ClaimsFrom = "extracted"
    """Whether the judge extracts the claims, each sentence of the answer is one, or the whole answer is: then
    the value is 0 or 1. A model that reasons at length agrees with people best over the whole at once."""
    variant: Literal["entailment", "non_contradiction"] = "entailment"
    """Whether a claim must be supported, or only must not be contradicted."""

    def questions(self, record: Record) -> MetricRun:
        """Claims first, then one verdict each."""
        claims = yield from claims_of(record, "answer", self.claims)
        if not claims:
            return self.not_applicable("no_claims", "the answer makes no claim")
        entails = self.variant == "entailment"
        ask = Supported if entails else Contradicted
        answers = require((yield [ask(claim=claim) for claim in claims]), YesNo)
        good = [answer.value == entails for answer in answers]
        bad = [claim for claim, fine in zip(claims, good, strict=True) if not fine]
        what = "not supported" if entails else "contradicted"
        return self.scored(
            share(good),
            expected=expected_share(chances(answers), of=entails),
            verdicts=verdicts(
                "supported" if entails else "contradicted", claims, answers, record=record, of_answer=True
            ),
            standard_error=share_error([answer.probability for answer in answers]),
            explanation=f"{len(bad)} of {len(claims)} claims {what}"
            + (f": {name_worst(bad)}" if bad else ""),
        )
