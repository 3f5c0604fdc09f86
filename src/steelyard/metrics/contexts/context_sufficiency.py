"""Context sufficiency: could the question be answered from what was shown, at all?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from steelyard.metrics._expected import expected_level
from steelyard.metrics._metric import Metric, Threshold
from steelyard.questions import Level, MetricRun, Part, Sufficient, Unanswered
from steelyard.record import Record
from steelyard.scores import Score, Verdict

_VALUES = {0.0: 0.0, 1.0: 0.0, 2.0: 0.5, 3.0: 1.0}
"""What the levels of the question are worth: nothing, part, all."""


@dataclass(frozen=True, kw_only=True)
class ContextSufficiency(Metric):
    """How much of the question could be answered from the contexts alone: 0 none, .5 part, 1 all of it.

    Source: sufficient context (Joren et al. 2025, arXiv:2411.06037), with "in part" between its two labels.
    One question to the judge, who does not see the answer. The explanation says what is missing.

    It tells what other metrics mix up: a bad answer from too little was the retrieval's, a bad answer from
    enough the model's; a good answer from too little was luck, or what the model had learnt.
    """

    key = "context_sufficiency"
    needs: ClassVar[tuple[Part, ...]] = ("question", "contexts")

    threshold: Threshold = 0.75
    """All of it, rather than part of it."""

    def questions(self, record: Record) -> MetricRun:
        """One question."""
        question = Sufficient()
        (answer,) = yield (question,)
        if not isinstance(answer, Level):
            return self._failed(answer)
        words = dict(question.levels)[answer.value]
        missing = f"; missing: {answer.reason}" if answer.reason else ""
        return self.scored(
            _VALUES[answer.value],
            expected=expected_level([answer], _VALUES),
            verdicts=(Verdict(about=words, kind=question.kind, value=answer.value, reason=answer.reason),),
            explanation=f"{words}{missing}",
        )

    def _failed(self, answer: object) -> Score:
        if isinstance(answer, Unanswered) and answer.cause == "unsupported":
            return self.not_applicable("unsupported", answer.detail)
        cause = answer.cause if isinstance(answer, Unanswered) else "malformed_answer"
        return Score.failed(self.name, cause=cause, explanation=f"no rating: {cause}")
