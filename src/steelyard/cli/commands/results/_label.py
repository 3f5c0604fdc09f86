"""`steelyard label`: a person's word on turns, given in the terminal."""

from __future__ import annotations

from typing import Annotated

import typer

from steelyard.cli._options import Results


def label(
    db: Results = "steelyard.db",
    metric: Annotated[
        str,
        typer.Option("--metric", "-m", metavar="M", help="Label the claims of this metric, not whole turns."),
    ] = "",
    who: Annotated[
        str, typer.Option(metavar="NAME", help="Who labels; your login name where none is given.")
    ] = "",
    count: Annotated[int, typer.Option("--count", "-n", min=1, help="How many turns to label now.")] = 20,
    only_list: Annotated[
        bool, typer.Option("--next", help="Only list the turns that come next, the most useful first.")
    ] = False,
) -> None:
    """Say of turns whether they are good; the turns whose labels tell the most come first.

    Without `--metric` a turn as a whole is good or bad; with it, each claim the metric judged is supported or
    not. What the judge said is shown only afterwards, so that it does not sway you. Labels are stored at
    once: leave with q whenever you like. `steelyard calibrate` makes use of them.

    **Examples**

    - `steelyard label`
    - `steelyard label --next`
    - `steelyard label --metric faithfulness --count 50 --who ada`
    """
    import getpass

    from steelyard._internal.text import printable
    from steelyard.cli._words import amount, counted
    from steelyard.cli.calibrating._labelling import Labelling, waiting
    from steelyard.cli.calibrating._material import Sources

    sources = Sources(db, metric=metric or None)
    found = waiting(sources, of_claims=bool(metric), limit=count)
    typer.echo(f"{counted(found.labelled, 'turn')} labelled; order by {printable(found.metric)}")
    if only_list:
        for judged, _ in found.turns:
            typer.echo(f"{printable(judged.record_id)}  score {amount(judged.value)}")
        return

    def ask(question: str) -> str | None:
        typer.echo(question, nl=False)
        try:
            return input()
        except EOFError:
            typer.echo()
            return None

    sitting = Labelling(db=db, who=who or getpass.getuser(), say=typer.echo, ask=ask)
    stored = sitting.run(found.turns, metric or None)
    typer.echo(f"stored {counted(stored, 'label')}")
