"""The NVIDIA pattern: two differently worded, independent ratings, of which one may be invalid."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from steelyard.metrics._expected import expected_level
from steelyard.metrics._metric import Metric
from steelyard.questions import Answer, Level, MetricRun, Part, Rating, Unanswered
from steelyard.record import Record
from steelyard.scores import Score, Verdict


class TwoRatings(Metric):
    """Mean of two independent ratings, each divided by the top level, in 0..1.

    Source: NVIDIA's judge metrics as documented and shipped by Ragas (`nv_context_relevance`,
    `nv_response_groundedness`, `nv_accuracy`). If one rating is invalid the other counts alone, and the
    explanation says so; if both are, the metric fails.
    """

    wordings: ClassVar[tuple[str, str]]
    """The two instructions."""
    levels: ClassVar[tuple[tuple[float, str], ...]]
    """Value and description of each level, lowest first."""

    hides: ClassVar[frozenset[Part]]
    """What must stay out of the judge's sight."""

    def ratings(self) -> tuple[Rating, Rating]:
        """The two questions; they carry repeat numbers, so they are never answered together.

        Both see what the metric needs, the second in reverse order.
        """
        first, second = (
            Rating(
                instruction=wording,
                levels=self.levels,
                needs=frozenset(self.needs),
                hides=self.hides,
                sample=sample,
                swapped=sample == 2,
            )
            for sample, wording in enumerate(self.wordings, start=1)
        )
        return first, second

    def questions(self, record: Record) -> MetricRun:
        """Both ratings in one round."""
        asked = self.ratings()
        answers = yield asked
        top = self.levels[-1][0]
        valid = [answer for answer in answers if isinstance(answer, Level)]
        shown = tuple(_verdict(rating, answer) for rating, answer in zip(asked, answers, strict=True))
        if not valid:
            return self._failed(answers, shown)
        note = "" if len(valid) == 2 else "; one rating was invalid, the other counts alone"
        expected = expected_level(valid)
        levels = " and ".join(f"{answer.value:g}" for answer in valid)
        return self.scored(
            sum(answer.value for answer in valid) / len(valid) / top,
            expected=None if expected is None else expected / top,
            verdicts=shown,
            explanation=f"rated {levels} of {top:g}{note}",
        )

    def _failed(self, answers: Sequence[Answer], shown: tuple[Verdict, ...]) -> Score:
        lack = next(answer for answer in answers if isinstance(answer, Unanswered))
        if lack.cause == "unsupported":
            return self.not_applicable("unsupported", lack.detail)
        explanation = f"both ratings are invalid: {lack.detail or lack.cause}"
        return Score.failed(self.name, cause=lack.cause, explanation=explanation, verdicts=shown)


def _verdict(rating: Rating, answer: Answer) -> Verdict:
    about = rating.instruction
    if isinstance(answer, Level):
        return Verdict(about=about, kind="rating", value=answer.value, reason=answer.reason)
    cause = answer.cause if isinstance(answer, Unanswered) else "malformed_answer"
    return Verdict(about=about, kind="rating", value=None, cause=cause)
