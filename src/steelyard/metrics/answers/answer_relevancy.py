"""Answer relevancy: does the answer speak to the question?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from steelyard.errors import ConfigurationError
from steelyard.metrics._formulas import cosine
from steelyard.metrics._metric import Metric
from steelyard.metrics._steps import ClaimsFrom, claims_of, name_worst, share_score, verdicts
from steelyard.questions import (
    Embed,
    GeneratedQuestions,
    MetricRun,
    Noncommittal,
    Part,
    Relevant,
    Texts,
    Vector,
    YesNo,
    require,
)
from steelyard.record import Record
from steelyard.scores import Verdict


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
        if evasive and (all(evasive) if self.noncommittal == "all" else any(evasive)):
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
