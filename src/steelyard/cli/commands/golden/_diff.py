"""`steelyard golden diff`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from steelyard import golden
from steelyard._internal.text import shorten
from steelyard.cli._words import counted
from steelyard.golden import GoldenSet


def diff(
    old: Annotated[Path, typer.Argument(metavar="OLD.jsonl")],
    new: Annotated[Path, typer.Argument(metavar="NEW.jsonl")],
) -> None:
    """Show what changed from one version of a golden set to another.

    Exit status: 0 no change; 1 something changed; 2 a file is not a golden set.
    """
    before, after = GoldenSet.load(old), GoldenSet.load(new)
    found = golden.diff(before, after)
    console = Console(highlight=False)
    console.print(
        Text(f"{before.version} ({len(before)} cases) to {after.version} ({len(after)})", style="bold")
    )
    asked = {case.id: case.question for case in (*before, *after)}
    groups = (("+", "green", found.added), ("-", "red", found.removed), ("~", "yellow", (*found.changed,)))
    for sign, style, ids in groups:
        for name in ids:
            what = f" ({', '.join(found.changed[name])})" if name in found.changed else ""
            console.print(
                Text(f"{sign} {name}  {shorten(asked[name], 100)}{what}", style=style), soft_wrap=True
            )
    counts = f"{len(found.removed)} removed, {len(found.changed)} changed"
    console.print(f"{counted(len(found.added), 'case')} added, {counts}")
    if found:
        raise typer.Exit(1)
