"""Response groundedness (NVIDIA): how far is the answer as a whole backed by the contexts?"""

from __future__ import annotations

from dataclasses import dataclass

from steelyard.judge import Part, Rating
from steelyard.metrics._two_ratings import TwoRatings

__all__ = ["ResponseGroundedness"]


@dataclass(frozen=True, kw_only=True)
class ResponseGroundedness(TwoRatings):
    """Mean of two independent ratings of 0, 1 or 2 for the whole answer, each / 2, in 0..1."""

    key = "response_groundedness"

    levels = (
        (0.0, "nothing in the answer is backed by the contexts"),
        (1.0, "part of the answer is backed by the contexts"),
        (2.0, "all of the answer is backed by the contexts"),
    )
    wordings = (
        "How well do the contexts back the answer?",
        "How much of the answer could be written by somebody who knows nothing but the contexts?",
    )

    @property
    def needs(self) -> tuple[Part, ...]:
        return ("answer", "contexts")

    def ratings(self) -> tuple[Rating, Rating]:
        """The reference stays hidden: only the contexts may back the answer."""
        first, second = (
            Rating(
                instruction=wording,
                levels=self.levels,
                sees=frozenset({"answer", "contexts"}),
                blind=frozenset({"reference", "reference_contexts"}),
                sample=sample,
            )
            for sample, wording in enumerate(self.wordings, start=1)
        )
        return first, second
