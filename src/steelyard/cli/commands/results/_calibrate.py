"""`steelyard calibrate`: from people's labels to what a judge's scores mean."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from steelyard.cli._options import Results


def calibrate(
    files: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[LABELS]...",
            help="Further labels: .csv or .jsonl as `steelyard labels export` writes them, .json as Phoenix "
            "and Langfuse export them.",
        ),
    ] = None,
    db: Results = "steelyard.db",
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="FILE", help="Where the calibration goes.")
    ] = Path("steelyard-calibration.json"),
    metric: Annotated[str, typer.Option("--metric", "-m", metavar="M", help="Only this metric.")] = "",
    turns: Annotated[int, typer.Option(min=1, help="Use only the latest so many turns.")] = 10_000,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Write no file.")] = False,
) -> None:
    """Compare each judge with people's labels, and write down what its scores mean.

    For each metric and judge that has labels: how far judge and people agree, a map from the score to the
    probability that people call the turn good, the share of good turns corrected by the labels, and how many
    more labels would halve its interval. Nothing is calibrated on fewer than 30 labels, on fewer than 8 good
    or 8 bad ones, or where the judge's scores do not go along with the labels; the page says so.

    Give the file to a Monitor: `Monitor(calibration="steelyard-calibration.json")`, or `calibration` in
    steelyard.toml. Scores then carry the calibrated value beside their own.

    Exit status: 0 a calibration was made; 1 nothing could be calibrated, or a line of a file holds no label;
    2 wrong usage.

    **Examples**

    - `steelyard calibrate`
    - `steelyard calibrate phoenix.json --db steelyard.db --out calibration.json`
    """
    from steelyard.calibration import Calibration, Fit, assess
    from steelyard.cli.calibrating._material import Sources
    from steelyard.cli.calibrating._page import lines_of

    sources = Sources(db, files or (), metric or None, turns)
    found = [assess(one) for one in sources.material() if one.labelled or one.answers.contradictory]
    for assessment in found:
        typer.echo("\n".join([*lines_of(assessment), ""]))
    _tell_problems(sources.problems)
    fits = {one.key: one.fit for one in found if isinstance(one.fit, Fit)}
    if not found:
        typer.echo("No judged turn has a label: give some with `steelyard label` or `steelyard serve`.")
    elif not fits:
        typer.echo("Nothing was calibrated.")
    elif not dry_run:
        made = Calibration.of(fits)
        made.save(out)
        typer.echo(f"wrote calibration {made.version} with {len(fits)} of {len(found)} maps to {out}")
    if not fits or sources.problems:
        raise typer.Exit(1)


def _tell_problems(problems: Sequence[str]) -> None:
    from steelyard._internal.text import printable

    for problem in problems[:20]:
        typer.echo(printable(problem), err=True)
    if problems:
        typer.echo(f"{len(problems)} lines or annotations hold no label of a turn here", err=True)
