"""Metrics of answers: whether they are true to the contexts, free of noise from them, and to the point."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, TypeVar

from steelyard.errors import ConfigurationError
from steelyard.judge.overlap import locate_all
from steelyard.metrics._formulas import chances, cosine, share
from steelyard.metrics._metric import Metric, Threshold
from steelyard.metrics._steps import (
    ClaimsFrom,
    both_claims,
    claims_of,
    explain,
    name_worst,
    share_score,
    verdicts,
)
from steelyard.questions import (
    Contradicted,
    Embed,
    GeneratedQuestions,
    MetricRun,
    Noncommittal,
    Part,
    Predicate,
    Relevant,
    Supported,
    Texts,
    Vector,
    YesNo,
    has,
    require,
)
from steelyard.record import Record
from steelyard.scores import Direction, Evidence, Verdict


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


_Item = TypeVar("_Item")


@dataclass(frozen=True, kw_only=True)
class NoiseSensitivity(Metric):
    """Wrong claims that relevant (or irrelevant) contexts entail / claims, in 0..1, lower is better.

    Source: RAGChecker (Ru et al. 2024, arXiv:2408.08067), section 3.3, as in Ragas' `NoiseSensitivity`. A
    claim is wrong if the reference does not entail it; a context is relevant if it entails a claim of the
    reference. In `irrelevant` mode a claim that a relevant context entails too does not count.
    """

    key = "noise_sensitivity"
    direction: ClassVar[Direction] = "lower"
    needs: ClassVar[tuple[Part, ...]] = ("question", "answer", "contexts", "reference")

    threshold: Threshold = 0.0
    """No wrong claim is one that passages led to."""
    mode: Literal["relevant", "irrelevant"] = "relevant"
    """Which contexts are looked at."""

    def questions(self, record: Record) -> MetricRun:
        """Both lists of claims first, then each claim against each context."""
        ours, theirs = yield from both_claims()
        if not ours or not theirs:
            which = "answer" if not ours else "reference"
            return self.not_applicable("no_claims", f"the {which} makes no claim")
        ranks = len(record.contexts)
        right = [Supported(claim=claim, by="reference", of="answer") for claim in ours]
        found, wanted = _each(ours, "answer", ranks), _each(theirs, "reference", ranks)
        # In one list, so that the three kinds may share requests.
        judged = require((yield [*right, *found, *wanted]), YesNo)
        answers = [answer.value for answer in judged]
        correct, rest = answers[: len(ours)], answers[len(ours) :]
        ours_by = _rows(rest[: len(found)], ranks)
        relevant = [any(column) for column in zip(*_rows(rest[len(found) :], ranks), strict=True)]
        noisy = [
            not fine and self._led_astray(entailing, relevant)
            for fine, entailing in zip(correct, ours_by, strict=True)
        ]
        astray = [claim for claim, led in zip(ours, noisy, strict=True) if led]
        return self.scored(
            share(noisy),
            expected=self._expected(chances(judged), len(ours), ranks),
            verdicts=_verdicts(record, ours, noisy, ours_by),
            explanation=explain(astray, len(ours), f"claims are wrong and come from {self.mode} contexts"),
        )

    def _expected(self, known: list[float] | None, claims: int, ranks: int) -> float | None:
        """The expected share of wrong claims that come from such contexts, verdicts being independent."""
        if known is None:
            return None
        rest = known[claims:]
        ours = _rows(rest[: claims * ranks], ranks)
        theirs = _rows(rest[claims * ranks :], ranks)
        relevant = [1 - math.prod(1 - p for p in column) for column in zip(*theirs, strict=True)]
        total = 0.0
        for right, entailing in zip(known[:claims], ours, strict=True):
            none = math.prod(1 - p for p in entailing)
            no_relevant = math.prod(1 - p * r for p, r in zip(entailing, relevant, strict=True))
            total += (1 - right) * (1 - no_relevant if self.mode == "relevant" else no_relevant - none)
        return total / claims

    def _led_astray(self, entailing: list[bool], relevant: list[bool]) -> bool:
        by_relevant = any(hit and good for hit, good in zip(entailing, relevant, strict=True))
        if self.mode == "relevant":
            return by_relevant
        return any(entailing) and not by_relevant


def _each(claims: Sequence[str], of: Literal["answer", "reference"], ranks: int) -> list[Supported]:
    """Each claim against each context."""
    return [Supported(claim=claim, passage=rank, of=of) for claim in claims for rank in range(ranks)]


def _verdicts(
    record: Record, claims: list[str], noisy: list[bool], by_claim: list[list[bool]]
) -> tuple[Verdict, ...]:
    """One Verdict per claim, with the contexts that entail it."""
    return tuple(
        Verdict(
            about=claim,
            kind="led_astray",
            span=span,
            value=led,
            evidence=tuple(Evidence(context=rank) for rank, hit in enumerate(entailing) if hit),
        )
        for claim, led, entailing, span in zip(
            claims, noisy, by_claim, locate_all(claims, record.answer), strict=True
        )
    )


def _rows(flat: list[_Item], width: int) -> list[list[_Item]]:
    return [flat[start : start + width] for start in range(0, len(flat), width)]


@dataclass(frozen=True, kw_only=True)
class AnswerRelevancy(Metric):
    """How well the answer fits the question, whether or not it is true.

    `variant="questions"` (Es et al. 2024, arXiv:2309.15217, section 3, AR = (1/n) sum sim(q, q_i)): a judge
    that does not see the question writes `count` questions which the answer would answer; the value is the
    mean cosine of their embeddings with the real question's, in -1..1. An evasive answer makes it 0 if `all`
    (as Ragas has it today) or `any` of `repeats` independent judgements say so; `none` is the paper's
    formula.

    `variant="statements"` (DeepEval's): relevant statements of the answer / all of them, in 0..1.
    """

    key = "answer_relevancy"
    needs: ClassVar[tuple[Part, ...]] = ("question", "answer")

    variant: Literal["questions", "statements"] = "questions"
    """Compare regenerated questions, or judge statement by statement."""
    count: int = 3
    """Questions to ask for, in the `questions` variant; the mean is over those that were written."""
    noncommittal: Literal["none", "all", "any"] = "all"
    """Which judgements of evasiveness make the value 0, in the `questions` variant."""
    repeats: int = 1
    """Independent judgements of evasiveness."""
    claims: ClaimsFrom = "extracted"
    """Where statements come from, in the `statements` variant."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.count < 1 or self.repeats < 1:
            raise ConfigurationError(f"count={self.count!r} and repeats={self.repeats!r} must be at least 1")

    @property
    def options_text(self) -> str:
        """The options of the chosen variant alone; the others decide nothing."""
        if self.variant == "statements":
            return f"variant=statements, claims={self.claims}"
        evasive = f"noncommittal={self.noncommittal}, repeats={self.repeats}"
        return f"variant=questions, count={self.count}, {evasive}"

    def questions(self, record: Record) -> MetricRun:
        """One of the two variants."""
        return (
            yield from self._statements(record) if self.variant == "statements" else self._generated(record)
        )

    def _generated(self, record: Record) -> MetricRun:
        repeats = 0 if self.noncommittal == "none" else self.repeats
        evasions = [Noncommittal(sample=number if repeats > 1 else 0) for number in range(1, repeats + 1)]
        written, *judged = yield [GeneratedQuestions(count=self.count), *evasions]
        votes = require(judged, YesNo)
        evasive = [answer.value for answer in votes]
        if all(evasive) if self.noncommittal == "all" else any(evasive):
            said = verdicts("noncommittal", [record.answer] * len(votes), votes)
            return self.scored(0.0, verdicts=said, explanation="the answer is evasive")
        # Only now: where the answer is evasive, no questions need to have come back.
        (questions,) = require([written], Texts)
        if not questions.items:
            return self.not_applicable("no_questions", "no question could be made out of the answer")
        texts = [record.asked, *questions.items[: self.count]]
        real, *others = require((yield [Embed(text=text) for text in texts]), Vector)
        similar = [cosine(real.values, other.values) for other in others]
        return self.scored(
            sum(similar) / len(similar),
            verdicts=tuple(
                Verdict(about=text, kind="similarity", value=value)
                for text, value in zip(texts[1:], similar, strict=True)
            ),
            explanation=f"the answer would answer {name_worst(texts[1:])}",
        )

    def _statements(self, record: Record) -> MetricRun:
        statements = yield from claims_of(record, "answer", self.claims)
        if not statements:
            return self.not_applicable("no_statements", "the answer makes no statement")
        answers = require((yield [Relevant(text=text, of="answer") for text in statements]), YesNo)
        what = "statements beside the question"
        return share_score(self, "relevant", statements, answers, what=what, record=record, of_answer=True)
