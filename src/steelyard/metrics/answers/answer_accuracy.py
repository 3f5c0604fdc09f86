"""Answer accuracy (NVIDIA): does the answer say what the reference says?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from steelyard.metrics._metric import Threshold
from steelyard.metrics._two_ratings import TwoRatings
from steelyard.questions import Part


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
