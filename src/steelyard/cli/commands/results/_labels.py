"""`steelyard labels`: what people said of turns and claims, out of a results file and into one."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from steelyard.cli._options import Results
from steelyard.cli._say import say

app = typer.Typer(help="Export labels from a results file, or import them.", no_args_is_help=True)
_File = Annotated[Path, typer.Argument(metavar="FILE", help="A file ending in .csv or .jsonl.")]


@app.command("export")
def export(file: _File, db: Results = "steelyard.db") -> None:
    """Write all labels to a CSV or JSONL file.

    **Examples**

    - `steelyard labels export labels.csv`
    """
    from steelyard.view import export_labels, open_labels

    form = _form(file)
    labels = list(open_labels(db))
    with file.open("w", encoding="utf-8", newline="") as opened:
        count = export_labels(labels, opened, form=form)
    say(f"wrote {count} labels to {file}")


@app.command("import")
def import_(file: _File, db: Results = "steelyard.db") -> None:
    """Read labels from a CSV or JSONL file; a person's later label replaces the earlier one.

    Exit status 1 if a line holds no label; the others are stored.

    **Examples**

    - `steelyard labels import labels.csv --db prod.db`
    """
    from steelyard.view import import_labels, open_labels

    problems: list[str] = []
    with file.open(encoding="utf-8", errors="replace", newline="") as opened:
        labels = list(import_labels(opened, form=_form(file), problems=problems))
    stored = open_labels(db).put(labels)
    say(f"stored {stored} of {len(labels)} labels")
    for problem in problems[:20]:
        say(problem, err=True)
    if problems:
        say(f"{len(problems)} lines hold no label", err=True)
        raise typer.Exit(1)


def _form(file: Path) -> Literal["csv", "jsonl"]:
    if file.suffix == ".csv":
        return "csv"
    if file.suffix == ".jsonl":
        return "jsonl"
    raise typer.BadParameter(f"{str(file)!r} must end in .csv or .jsonl")
