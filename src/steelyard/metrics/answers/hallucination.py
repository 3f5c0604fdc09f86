"""Hallucination: does the answer say what the contexts say is wrong?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from steelyard.metrics._expected import chances, expected_share
from steelyard.metrics._formulas import share, share_error
from steelyard.metrics._metric import Metric, Threshold, has
from steelyard.metrics._steps import ClaimsFrom, claims_of, name_worst, verdicts
from steelyard.questions import Contradicted, MetricRun, Part, Predicate, YesNo, require
from steelyard.record import Record
from steelyard.scores import Direction


@dataclass(frozen=True, kw_only=True)
class Hallucination(Metric):
    """Claims of the answer that the contexts contradict / all claims of the answer, in 0..1, lower is better.

    Source: DeepEval's hallucination metric (contradicted / all), over claims of the answer; with
    `over="contexts"` over whole contexts, as there: contexts that the answer contradicts / contexts. Compared
    with the expected contexts if the record has them, else with the retrieved ones, and the
    explanation says which.
    """

    key = "hallucination"
    direction: ClassVar[Direction] = "lower"
    needs: ClassVar[tuple[Part, ...]] = ("answer",)

    threshold: Threshold = 0.0
    """No claim is contradicted."""
    claims: ClaimsFrom = "extracted"
    """Whether the judge extracts the claims, or each sentence of the answer is one."""

    over: Literal["claims", "contexts"] = "claims"
    """What is counted: contradicted claims of the answer, or contexts that the answer contradicts."""

    def questions(self, record: Record) -> MetricRun:
        """Claims first, then one verdict each."""
        expected = has(record, "reference_contexts")
        if not expected and not has(record, "contexts"):
            return self.not_applicable("missing_contexts", "the record has no contexts")
        if self.over == "contexts":
            return (yield from self._contexts(record, expected=expected))
        claims = yield from claims_of(record, "answer", self.claims)
        if not claims:
            return self.not_applicable("no_claims", "the answer makes no claim")
        by: Literal["reference_contexts", "contexts"] = "reference_contexts" if expected else "contexts"
        answers = require((yield [Contradicted(claim=claim, by=by) for claim in claims]), YesNo)
        wrong = [claim for claim, answer in zip(claims, answers, strict=True) if answer.value]
        against = "expected" if expected else "retrieved"
        return self.scored(
            share(answer.value for answer in answers),
            expected=expected_share(chances(answers)),
            verdicts=verdicts(
                "contradicted", claims, answers, record=record, of_answer=True, located=not expected
            ),
            standard_error=share_error([answer.probability for answer in answers]),
            explanation=f"{len(wrong)} of {len(claims)} claims contradicted by the {against} contexts"
            + (f": {name_worst(wrong)}" if wrong else ""),
        )

    def _contexts(self, record: Record, *, expected: bool) -> MetricRun:
        """One verdict per context: does the answer contradict it?"""
        part: Part = "reference_contexts" if expected else "contexts"
        contexts = record.reference_contexts if expected else record.contexts
        name = "expected context e" if expected else "context c"
        asked = [
            Predicate(
                criterion=f"Does the answer say what {name}{number} excludes? Silence excludes nothing.",
                needs=frozenset({"question", "answer", part}),
            )
            for number in range(1, len(contexts) + 1)
        ]
        answers = require((yield asked), YesNo)
        wrong = sum(answer.value for answer in answers)
        against = "expected" if expected else "retrieved"
        return self.scored(
            share(answer.value for answer in answers),
            expected=expected_share(chances(answers)),
            verdicts=verdicts("contradicted", [context.text for context in contexts], answers),
            standard_error=share_error([answer.probability for answer in answers]),
            explanation=f"the answer contradicts {wrong} of {len(answers)} {against} contexts",
        )
