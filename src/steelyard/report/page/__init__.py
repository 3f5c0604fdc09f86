"""The report as one HTML file, and a turn cut into what its claims rest on; the live view shows the same."""

from steelyard.report.page._change import headline
from steelyard.report.page._evidence import bounds_words, evidence_words, shown_words
from steelyard.report.page._html import chart_of, render_html, templates
from steelyard.report.page._reasons import explain_verdict
from steelyard.report.page._turn import (
    Claim,
    Passage,
    Piece,
    TurnView,
    claim,
    in_answer,
    in_context,
    passage,
    turn_view,
)

__all__ = [
    "Claim",
    "Passage",
    "Piece",
    "TurnView",
    "bounds_words",
    "chart_of",
    "claim",
    "evidence_words",
    "headline",
    "in_answer",
    "in_context",
    "passage",
    "explain_verdict",
    "render_html",
    "shown_words",
    "templates",
    "turn_view",
]
