"""Stored results, looked at.

`build_figures` makes figures of what `steelyard.results` reads, and they are shown as an HTML file, in a
terminal or in a notebook.

>>> from steelyard.report import report
>>> report("steelyard.db").write_html("report.html")  # doctest: +SKIP
"""

from __future__ import annotations

import os
import time
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING

from steelyard._internal.files import owners_alone
from steelyard.errors import ConfigurationError, MissingDependency

# `import x as x`: for the other rooms of the project, and not public.
from steelyard.report._build import build_figures as build_figures
from steelyard.report._findings import look_closer as look_closer
from steelyard.report._people import describe_agreement as describe_agreement
from steelyard.report._people import human_agreement as human_agreement
from steelyard.report._people import labelled_turns as labelled_turns
from steelyard.report.figures import ReportFigures
from steelyard.report.html import render_html as render_html
from steelyard.report.period import moment
from steelyard.report.terminal import print_figures as print_figures
from steelyard.report.turn import explain_verdict as explain_verdict
from steelyard.report.turn import remaining_turns as remaining_turns
from steelyard.results import open_labels, open_results
from steelyard.results.queries import EVIDENCE, Scope, TurnFilter

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Report", "TurnFilter", "open_results", "report"]


@dataclass(frozen=True, slots=True)
class Report:
    """What the scores of a database add up to."""

    figures: ReportFigures
    """Everything it shows, as data."""

    def write_html(self, path: str | os.PathLike[str]) -> None:
        """Write one HTML file that needs no network.

        Raises:
            ConfigurationError: If the file cannot be written.
            MissingDependency: If Jinja2 is not installed.
        """
        page = render_html(self.figures)
        try:
            with open(path, "w", encoding="utf-8", opener=owners_alone) as file:
                file.write(page)
        except OSError as error:
            raise ConfigurationError(
                f"{os.fspath(path)!r} cannot be written: {error.strerror}; "
                "name a file in a folder that can be written"
            ) from error

    def _repr_html_(self) -> str:
        """The whole page in a frame of its own, so that its style and script do not touch the notebook."""
        from html import escape

        page = escape(render_html(self.figures), quote=True)
        return (
            f'<iframe srcdoc="{page}" sandbox="allow-scripts" title="Steelyard report" '
            'style="width:100%;height:720px;border:0"></iframe>'
        )

    def to_pandas(self) -> pd.DataFrame:
        """One row for each metric and piece of time: mean, both ends of its interval, scored turns.

        Raises:
            MissingDependency: If pandas is not installed.
        """
        try:
            import pandas as pd
        except ImportError:
            raise MissingDependency("pandas", extra="pandas") from None
        return pd.DataFrame(
            [
                {
                    "metric": metric.metric,
                    "time": pd.Timestamp(point.time, unit="s", tz="UTC"),
                    "mean": point.estimate.value,
                    "low": point.estimate.low,
                    "high": point.estimate.high,
                    "n": point.estimate.n,
                }
                for metric in self.figures.metrics
                for point in metric.points
            ],
            columns=["metric", "time", "mean", "low", "high", "n"],
        )


def report(
    db: str | os.PathLike[str] = "steelyard.db",
    *,
    since: str = "",
    until: str = "",
    metric: str | None = None,
    tag: str | None = None,
    evidence: str | None = None,
    by: str | None = None,
) -> Report:
    """Look at stored results.

    Args:
        db: The path of a file that `SQLiteSink` wrote, or the address of another database.
        since: Only turns evaluated since then: `7d`, `24h`, or a date.
        until: Only turns evaluated before then.
        metric: Only this metric.
        tag: Only turns with this tag.
        evidence: Only turns whose passages are `known`, `told` or `guessed`, are not there (`none`), or of
            which nothing says it (`unknown`).
        by: Compare groups by `tag`, `judge`, `framework` or a metadata field such as `version`.

    Raises:
        ConfigurationError: If it cannot be read, or a time or kind of evidence is not one.
    """
    if evidence is not None and evidence not in EVIDENCE:
        raise ConfigurationError(f"evidence is one of {', '.join(EVIDENCE)}, not {evidence!r}")
    now = time.time()
    scope = Scope(
        since=moment(since, now=now), until=moment(until, now=now), metric=metric, tag=tag, evidence=evidence
    )
    with closing(open_results(db)) as reader:
        return Report(build_figures(reader, scope, by=by, labels=open_labels(db)))
