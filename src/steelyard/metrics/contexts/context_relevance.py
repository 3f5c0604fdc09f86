"""Context relevance (NVIDIA): do the contexts hold what the question asks for?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from steelyard.metrics._metric import Threshold
from steelyard.metrics._two_ratings import TwoRatings
from steelyard.questions import Part


@dataclass(frozen=True, kw_only=True)
class ContextRelevance(TwoRatings):
    """Mean of two independent ratings of 0, 1 or 2 for all contexts together, each / 2, in 0..1."""

    key = "context_relevance"
    needs: ClassVar[tuple[Part, ...]] = ("question", "contexts")

    threshold: Threshold = 0.75
    """All of it by one rating, and part of it at least by the other."""

    levels = (
        (0.0, "none of it"),
        (1.0, "part of it"),
        (2.0, "all of it"),
    )
    wordings = (
        "How much of what the question asks for do the contexts hold, taken together?",
        "With nothing but these contexts, how much of the question could somebody answer?",
    )

    # The answer and the reference would give away what is relevant.
    hides = frozenset[Part]({"answer", "reference", "reference_contexts"})
