"""Stored results, looked at.

`build_figures` makes figures of what `steelyard.results` reads, and they are shown as an HTML file, in a
terminal or in a notebook.

>>> from steelyard.report import report
>>> report("steelyard.db").write_html("report.html")  # doctest: +SKIP
"""

from steelyard.report._build import build_figures as build_figures
from steelyard.report._findings import look_closer as look_closer
from steelyard.report._people import describe_agreement as describe_agreement
from steelyard.report._people import human_agreement as human_agreement
from steelyard.report._people import labelled_turns as labelled_turns
from steelyard.report._report import Report, report
from steelyard.report.page.html import render_html as render_html
from steelyard.report.page.turn import explain_verdict as explain_verdict

# `import x as x`: for the other rooms of the project, and not public.
from steelyard.report.page.turn import remaining_turns as remaining_turns
from steelyard.report.terminal import print_figures as print_figures
from steelyard.results import open_results
from steelyard.results.queries import TurnFilter

__all__ = ["Report", "TurnFilter", "open_results", "report"]
