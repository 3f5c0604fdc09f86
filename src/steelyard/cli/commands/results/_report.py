"""`steelyard report`: what the scores in a results file add up to."""

from __future__ import annotations

from typing import Annotated

import typer

from steelyard.cli._options import Results, Since, Until
from steelyard.cli._terminal import terminal


def report(
    db: Results = "steelyard.db",
    since: Since = "",
    until: Until = "",
    metric: Annotated[str, typer.Option("--metric", "-m", metavar="NAME", help="Only this metric.")] = "",
    tag: Annotated[str, typer.Option(metavar="TAG", help="Only turns with this tag.")] = "",
    evidence: Annotated[
        str,
        typer.Option(
            metavar="KIND",
            help="Only turns by how their passages are known: known, told, guessed, none.",
        ),
    ] = "",
    by: Annotated[
        str,
        typer.Option(
            metavar="FIELD",
            help="Compare groups: tag, judge, framework or a metadata field such as version.",
        ),
    ] = "",
    out: Annotated[
        str, typer.Option(metavar="FILE.html", help="Write one HTML file instead of printing tables.")
    ] = "",
) -> None:
    """Sum up the scores of a running application.

    Means are weighted by how likely each turn was to be picked, so that sampling suspicious turns more often
    does not make the application look worse than it is. Intervals are for the mean, at 95 %.

    **Examples**

    - `steelyard report`
    - `steelyard report --db prod.db --since 24h --metric faithfulness`
    - `steelyard report --since 7d --by version --out report.html`
    """
    from steelyard.report import print_figures
    from steelyard.report import report as make

    made = make(
        db,
        since=since,
        until=until,
        metric=metric or None,
        tag=tag or None,
        evidence=evidence or None,
        by=by or None,
    )
    if out:
        made.write_html(out)
        terminal().print(f"wrote {out}", markup=False)
    else:
        print_figures(terminal(), made.figures)
