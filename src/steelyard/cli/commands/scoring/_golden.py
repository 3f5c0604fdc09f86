"""`steelyard golden`: make golden sets from production and from documents, review them, see what changed."""

from __future__ import annotations

import typer

from steelyard.cli.commands.golden import diff, make, mine, review

app = typer.Typer(
    help="Golden sets: cases that an application must pass, from production or from documents.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
)
for command in (diff, mine, review, make):
    app.command()(command)
