"""Response groundedness (NVIDIA): how far is the answer as a whole backed by the contexts?"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from steelyard.metrics._metric import Threshold
from steelyard.metrics._two_ratings import TwoRatings
from steelyard.questions import Part, Rating


@dataclass(frozen=True, kw_only=True)
class ResponseGroundedness(TwoRatings):
    """Mean of two independent ratings of 0, 1 or 2 for the whole answer, each / 2, in 0..1."""

    key = "response_groundedness"
    needs: ClassVar[tuple[Part, ...]] = ("answer", "contexts")

    threshold: Threshold = 0.75
    """All of it by one rating, and part of it at least by the other."""

    levels = (
        (0.0, "none of it"),
        (1.0, "part of it"),
        (2.0, "all of it"),
    )
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
