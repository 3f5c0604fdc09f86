"""Faithfulness and hallucination: is what the answer claims supported, or excluded, by what was retrieved?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from steelyard.metrics._metric import Metric, Threshold
from steelyard.metrics._steps import ClaimsFrom, claims_of, share_score
from steelyard.questions import Contradicted, MetricRun, Part, Predicate, Supported, YesNo, has, require
from steelyard.record import Record
from steelyard.scores import Direction


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
        what = "claims not supported" if entails else "claims contradicted"
        return share_score(
            self, ask.kind, claims, answers, what=what, of=entails, record=record, of_answer=True
        )


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
        what = f"claims contradicted by the {'expected' if expected else 'retrieved'} contexts"
        return share_score(
            self,
            "contradicted",
            claims,
            answers,
            what=what,
            record=record,
            of_answer=True,
            located=not expected,
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
        what = f"{'expected' if expected else 'retrieved'} contexts contradicted by the answer"
        return share_score(self, "contradicted", [context.text for context in contexts], answers, what=what)
