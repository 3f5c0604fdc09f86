"""`steelyard golden`: make golden sets from production and from documents, review them, see what changed."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(
    help="Golden sets: cases that an application must pass, from production or from documents.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
)


@app.command()
def diff(
    old: Annotated[Path, typer.Argument(metavar="OLD.jsonl")],
    new: Annotated[Path, typer.Argument(metavar="NEW.jsonl")],
) -> None:
    """Show what changed from one version of a golden set to another.

    Exit status: 0 no change; 1 something changed; 2 a file is not a golden set.
    """
    from steelyard.cli.golden._diff import run

    raise typer.Exit(run(old, new))
