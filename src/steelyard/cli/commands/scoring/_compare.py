"""`steelyard compare`: what changed from one run of a golden set to another."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from steelyard._internal.text import shorten
from steelyard.cli._say import counted, say
from steelyard.cli._terminal import figures_table, terminal
from steelyard.golden import Comparison, Run, compare_runs
from steelyard.golden.gates import MetricComparison


def compare(
    first: Annotated[
        Path, typer.Argument(metavar="A.json", help="The earlier run: `steelyard test --json`.")
    ],
    second: Annotated[Path, typer.Argument(metavar="B.json", help="The later run.")],
    slices: Annotated[bool, typer.Option(help="Also by tag, kind and source.")] = True,
    least: Annotated[int, typer.Option(min=2, help="A slice needs at least so many cases.")] = 5,
    as_json: Annotated[bool, typer.Option("--json", help="The comparison as JSON.")] = False,
    fail_on_worse: Annotated[
        bool, typer.Option("--fail-on-worse", help="Exit with 1 if a metric is worse beyond chance.")
    ] = False,
) -> None:
    """Compare two runs case by case.

    Shows the difference of each metric with a 95 % interval, over all cases and by slice, and the cases that
    changed sides. A metric is marked as worse or better only beyond chance, by an exact test. With nothing
    changed, anything at all is marked in at most 5 % of calls, however many metrics and slices there are.

    Exit status: 0 fine; 1 with `--fail-on-worse` if a metric is worse; 2 wrong usage.

    **Examples**

    - `steelyard compare main.json branch.json`
    - `steelyard compare main.json branch.json --fail-on-worse`
    """
    found = compare_runs(Run.load(first), Run.load(second), least=least)
    if as_json:
        say(json.dumps(asdict(found), ensure_ascii=False))
    else:
        _show(terminal(), found, slices=slices)
    if fail_on_worse and found.worse:
        raise typer.Exit(1)


_ALL = "all cases"
_MOST_ROWS = 30


def _show(console: Console, found: Comparison, *, slices: bool) -> None:
    shown = [one for one in found.differences if slices or one.slice == _ALL]
    console.print(_table(shown) if shown else "no case has a score in both runs")
    if found.differences:
        console.print(Text(_error_words(len(found.differences)), style="dim"), soft_wrap=True)
    for side in found.changed[:_MOST_ROWS]:
        sign, style = ("passes now", "green") if side.passes else ("fails now", "red")
        line = f"{sign}: {side.metric} {side.before:.2f} > {side.after:.2f}  {shorten(side.question, 90)}"
        console.print(Text(f"{line} [{side.case}]", style=style), soft_wrap=True)
    if len(found.changed) > _MOST_ROWS:
        console.print(f"and {len(found.changed) - _MOST_ROWS} more cases changed sides")
    if not found.changed:
        console.print("no case changed sides (thresholds decide on sides)")
    for name, ids in (("first", found.only_first), ("second", found.only_second)):
        if ids:
            console.print(f"{counted(len(ids), 'case')} only in the {name} run")
    for warning in found.warnings:
        console.print(Text(f"warning: {warning}", style="yellow"), soft_wrap=True)


def _error_words(count: int) -> str:
    if count == 1:
        return "p: exact (sign flips); called worse or better by chance in at most 5 of 100 runs"
    return (
        f"p: exact (sign flips), adjusted for {count} comparisons (Holm): if nothing has changed, anything "
        "at all is called worse or better in at most 5 of 100 runs. Each interval holds by itself."
    )


def _table(rows: list[MetricComparison]) -> Table:
    table = figures_table("Metric", "Slice", "A", "B", "B - A", "95 %", "p", "Cases", "", names=2)
    table.columns[1].no_wrap = False  # the name of a slice may be long; a metric's is not
    for row in rows:
        one = row.difference
        verdict = Text("worse", style="red") if row.worse else Text("better", style="green")
        table.add_row(
            row.metric,
            shorten(row.slice, 30),
            f"{one.first:.3f}",
            f"{one.second:.3f}",
            f"{one.value:+.3f}",
            f"{one.low:+.3f} to {one.high:+.3f}",
            "-" if one.p_value is None else f"{row.adjusted_p:.3f}",
            str(one.n),
            verdict if row.clear else Text(""),
        )
    return table
