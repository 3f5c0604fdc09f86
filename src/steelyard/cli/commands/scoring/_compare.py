"""`steelyard compare`: what changed from one run of a golden set to another."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def compare(
    first: Annotated[
        Path, typer.Argument(metavar="A.json", help="The earlier run: `steelyard test --json`.")
    ],
    second: Annotated[Path, typer.Argument(metavar="B.json", help="The later run.")],
    slices: Annotated[bool, typer.Option(help="Also by tag, kind and source.")] = True,
    least: Annotated[int, typer.Option(min=2, help="A slice needs at least so many cases.")] = 5,
    as_json: Annotated[bool, typer.Option("--json", help="The comparison as JSON.")] = False,
    fail_on_worse: Annotated[
        bool, typer.Option("--fail-on-worse", help="Exit with 1 where a metric is worse beyond chance.")
    ] = False,
) -> None:
    """Compare two runs case by case.

    Shows the difference of each metric with a 95 % interval, over all cases and by slice, and the cases that
    changed sides. What is marked as worse or better is so beyond chance, by an exact test. With nothing
    changed, anything at all is marked in at most 5 % of calls, however many metrics and slices there are.

    Exit status: 0 fine; 1 with `--fail-on-worse` where a metric is worse; 2 wrong usage.

    **Examples**

    - `steelyard compare main.json branch.json`
    - `steelyard compare main.json branch.json --fail-on-worse`
    """
    from steelyard.cli.golden._compare import run

    raise typer.Exit(
        run(first, second, slices=slices, least=least, as_json=as_json, fail_on_worse=fail_on_worse)
    )
