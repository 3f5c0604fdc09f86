"""One call of `steelyard golden diff`."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console
from rich.text import Text

from steelyard._internal.text import shorten
from steelyard.cli._words import counted
from steelyard.golden import GoldenSet, diff


def run(old: Path, new: Path) -> int:
    """Show the difference; returns the exit status."""
    before, after = GoldenSet.load(old), GoldenSet.load(new)
    found = diff(before, after)
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
    return 1 if found else 0
