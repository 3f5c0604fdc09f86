"""The report room: stored results, looked at.

Queries (`ResultsReader`) give answers, `build_figures` makes figures of them, and the figures are shown as an
HTML file, in a terminal or in a notebook.

>>> from steelyard.report import report
>>> report("steelyard.db").write_html("report.html")  # doctest: +SKIP
"""

from steelyard.report._build import build_figures
from steelyard.report._reasons import reason_of
from steelyard.report._report import Report, report
from steelyard.report._sqlite import SQLiteResults
from steelyard.report.html import render_html
from steelyard.report.queries import ResultsReader, Scope
from steelyard.report.terminal import print_figures

__all__ = [
    "Report",
    "ResultsReader",
    "SQLiteResults",
    "Scope",
    "build_figures",
    "print_figures",
    "reason_of",
    "render_html",
    "report",
]
