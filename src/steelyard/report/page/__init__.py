"""The report as one HTML file, and a turn cut into what its claims rest on; the live view shows the same."""

from steelyard.report.page._html import chart_of, templates
from steelyard.report.page._lights import Light, MetricNews, lights_of, verdict_of
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
    "Light",
    "PassageView",
    "MetricNews",
    "Piece",
    "chart_of",
    "claim",
    "lights_of",
    "in_answer",
    "in_context",
    "passage",
    "templates",
    "verdict_of",
    "words_of",
]
