"""The report as one HTML file, and a turn cut into what its claims rest on; the live view shows the same."""

from steelyard.report.page._html import chart_of, headline, templates
from steelyard.report.page._turn import (
    ClaimView,
    PassageView,
    Piece,
    claim,
    in_answer,
    in_context,
    passage,
)
from steelyard.report.page._words import words_of

__all__ = [
    "ClaimView",
    "PassageView",
    "Piece",
    "chart_of",
    "claim",
    "headline",
    "in_answer",
    "in_context",
    "passage",
    "templates",
    "words_of",
]
