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


@app.command()
def mine(
    out: Annotated[Path, typer.Argument(metavar="OUT.jsonl", help="The golden set to write.")],
    db: Annotated[str, typer.Option("--db", metavar="FILE", help="The results file.")] = "steelyard.db",
    n: Annotated[int, typer.Option("--n", "-n", min=1, help="How many cases.")] = 50,
    metric: Annotated[str, typer.Option(help="Only this metric decides what fails.")] = "",
    days: Annotated[float, typer.Option(min=0, help="Only the last so many days; 0: all.")] = 0,
    failing: Annotated[float, typer.Option(min=0, max=1, help="The share of failing turns.")] = 0.4,
    uncertain: Annotated[float, typer.Option(min=0, max=1, help="The share of uncertain turns.")] = 0.2,
    mask: Annotated[
        str, typer.Option(metavar="MODULE:FUNCTION", help="Your mask: a function from Record to Record.")
    ] = "",
    seed: Annotated[int, typer.Option(help="The same seed and file draw the same cases.")] = 0,
    force: Annotated[bool, typer.Option("--force", help="Replace OUT.")] = False,
) -> None:
    """Draw a golden set from what production asked; needs no key.

    Failing and uncertain turns and a fair share of the rest, spread over clusters of questions, drawn with
    known probabilities, which stand in the set: a weighted mean over it estimates production.

    **Examples**

    - `steelyard golden mine cases.jsonl --db steelyard.db --n 50`
    - `steelyard golden mine cases.jsonl --mask my_app.privacy:mask --days 7`
    """
    from steelyard.cli.golden._mine import run

    raise typer.Exit(
        run(
            out,
            db=db,
            n=n,
            metric=metric or None,
            days=days,
            shares={"failing": failing, "uncertain": uncertain, "rest": max(1 - failing - uncertain, 0.0)},
            mask=mask,
            seed=seed,
            force=force,
        )
    )


@app.command()
def review(
    golden: Annotated[Path, typer.Argument(metavar="GOLDEN.jsonl", help="A golden set.")],
    who: Annotated[str, typer.Option("--as", metavar="NAME", help="Who reviews; your user name.")] = "",
    labels: Annotated[
        str, typer.Option(metavar="FILE", help="Take the labels of the live view from this results file.")
    ] = "",
) -> None:
    """Look at the cases that nobody has reviewed, one by one.

    Every decision is written at once; stop when you like, and go on another day.
    """
    from steelyard.cli.golden._review import run

    raise typer.Exit(run(golden, who=who, labels=labels or None))
