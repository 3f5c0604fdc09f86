"""Means of two independent ratings (NVIDIA): context relevance, response groundedness, answer accuracy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from steelyard.metrics._formulas import expected_level
from steelyard.metrics._metric import Metric, Threshold
from steelyard.questions import Answer, Level, MetricRun, Part, Rating, Unanswered
from steelyard.record import Record
from steelyard.scores import Score, Verdict

_OF_IT = ((0.0, "none of it"), (1.0, "part of it"), (2.0, "all of it"))


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


@dataclass(frozen=True, kw_only=True)
class ContextRelevance(TwoRatings):
    """Mean of two independent ratings of 0, 1 or 2 for all contexts together, each / 2, in 0..1."""

    key = "context_relevance"
    needs: ClassVar[tuple[Part, ...]] = ("question", "contexts")

    threshold: Threshold = 0.75
    """All of it by one rating, and part of it at least by the other."""

    levels = _OF_IT
    wordings = (
        "How much of what the question asks for do the contexts hold, taken together?",
        "With nothing but these contexts, how much of the question could somebody answer?",
    )

    # The answer and the reference would give away what is relevant.
    hides = frozenset[Part]({"answer", "reference", "reference_contexts"})


@dataclass(frozen=True, kw_only=True)
class ResponseGroundedness(TwoRatings):
    """Mean of two independent ratings of 0, 1 or 2 for the whole answer, each / 2, in 0..1."""

    key = "response_groundedness"
    needs: ClassVar[tuple[Part, ...]] = ("answer", "contexts")

    threshold: Threshold = 0.75
    """All of it by one rating, and part of it at least by the other."""

    levels = _OF_IT
    wordings = (
        "How much of the answer do the contexts back?",
        "Knowing nothing but the contexts, how much of the answer could somebody write?",
    )

    # Only the contexts may back the answer.
    hides = frozenset[Part]({"reference", "reference_contexts"})

    def ratings(self) -> tuple[Rating, Rating]:
        """The first sees the question too, which says what a short answer means.

        The second asks what somebody could write who knows the contexts alone, and sees them last.
        """
        first, second = super().ratings()
        return (
            replace(first, needs=first.needs | {"question"}),
            replace(second, admits=frozenset[Part]({"question"})),
        )


@dataclass(frozen=True, kw_only=True)
class AnswerAccuracy(TwoRatings):
    """Mean of two independent ratings of 0, 2 or 4, each / 4, in 0..1.

    The second rating swaps the roles of answer and reference and their order, so that neither is favoured as
    the yardstick or for standing first.
    """

    key = "answer_accuracy"
    needs: ClassVar[tuple[Part, ...]] = ("question", "answer", "reference")

    threshold: Threshold = 0.75
    """They agree by one rating, and in part at least by the other."""

    levels = (
        (0.0, "they disagree, or the one says nothing of what the other says"),
        (2.0, "they agree in part"),
        (4.0, "they say the same in everything that answers the question"),
    )
    wordings = (
        "Take the reference as the truth: how far does the answer agree with it on the question?",
        "Take the answer as the truth: how far does the reference agree with it on the question?",
    )

    # Only the two texts are compared.
    hides = frozenset[Part]({"contexts", "reference_contexts"})
