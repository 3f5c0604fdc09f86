"""Stored results, looked at.

Queries (`ResultsReader`) give answers, `build_figures` makes figures of them, and the figures are shown as an
HTML file, in a terminal or in a notebook.

>>> from steelyard.report import report
>>> report("steelyard.db").write_html("report.html")  # doctest: +SKIP
"""

from steelyard.report._build import build_figures
from steelyard.report._findings import look_closer
from steelyard.report._funnel import remaining_turns
from steelyard.report._people import describe_agreement, human_agreement
from steelyard.report._report import Report, report
from steelyard.report.labels import Label, LabelValue
from steelyard.report.page._html import render_html
from steelyard.report.page._turn import explain_verdict
from steelyard.report.queries import Scope, TurnFilter, TurnRow
from steelyard.report.stores._open import open_labels, open_results
from steelyard.report.stores._tables import ResultsReader
from steelyard.report.terminal import print_figures

__all__ = [
    "Label",
    "LabelValue",
    "Report",
    "ResultsReader",
    "Scope",
    "TurnFilter",
    "TurnRow",
    "build_figures",
    "open_labels",
    "open_results",
    "human_agreement",
    "describe_agreement",
    "print_figures",
    "explain_verdict",
    "render_html",
    "report",
    "remaining_turns",
    "look_closer",
]
