"""`steelyard plan`: what a wished interval costs a day, with the judge alone and with a screen."""

from __future__ import annotations

import time
from contextlib import closing
from typing import TYPE_CHECKING, Annotated

import typer

from steelyard.cli._options import Results, Since
from steelyard.cli._terminal import terminal

if TYPE_CHECKING:
    from steelyard.report.planning import Way


def plan(
    db: Results = "steelyard.db",
    width: Annotated[
        float, typer.Option(min=0.001, max=0.5, help="The half-width to reach: .02 for a mean of .84 to .88.")
    ] = 0.02,
    days: Annotated[float, typer.Option(min=0.04, help="Days that the mean covers.")] = 7.0,
    since: Since = "",
) -> None:
    """Say what an interval costs a day: turns judged, requests, money; alone and with a screen.

    It uses what is in the results: how much scores vary, what a turn took, and what the screen explains.
    Nothing is asked. A few hundred judged turns are enough.

    **Examples**

    - `steelyard plan --width .02 --days 7`
    - `steelyard plan --width .01 --since 30d`
    """
    from rich.text import Text

    from steelyard._internal.text import shorten
    from steelyard.report import Scope, open_results
    from steelyard.report.period import moment
    from steelyard.report.planning import plan_judging

    scope = Scope(since=moment(since, now=time.time()))
    with closing(open_results(db)) as reader:
        found = plan_judging(reader, scope, margin=width, days=days)
    console = terminal()
    if not found:
        console.print("No score has a value yet: judge some turns first, e.g. with sample_rate=.05.")
        return
    over = "a day" if days == 1 else f"{days:g} days"
    console.print(f"For means of {over} that are known to ± {width:g}:")
    for one in found:
        console.print()
        console.print(Text(f"{shorten(one.metric, 60)}, of {one.turns:,.0f} turns a day", style="bold"))
        console.print(Text(f"  judge alone      {_told(one.alone)}"))
        if one.screened is not None:
            share = 100 * one.screened.judged / one.alone.judged
            console.print(Text(f"  with the screen  {_told(one.screened)}; {share:.0f} % of the judging"))
    if all(one.screened is None for one in found):
        console.print()
        console.print("No screen has explained anything here: run one for a day, e.g. with screen='local'.")


def _told(way: Way) -> str:
    parts = [f"{way.judged:,.0f} turns a day judged"]
    if not way.reaches:
        parts = [f"{way.judged:,.0f} turns a day, more than there are"]
    if way.requests is not None:
        parts.append(f"{way.requests:,.0f} requests")
    parts.append("price not known" if way.cost is None else f"${way.cost:,.2f}")
    return ", ".join(parts)
