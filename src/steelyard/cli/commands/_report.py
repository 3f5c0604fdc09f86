"""`steelyard report`: what the scores in a results file add up to."""

from __future__ import annotations

from typing import Annotated

import typer


def report(
    db: Annotated[str, typer.Option("--db", metavar="FILE", help="The results file.")] = "steelyard.db",
    metric: Annotated[str, typer.Option("--metric", "-m", metavar="NAME", help="Only this metric.")] = "",
    tag: Annotated[str, typer.Option(metavar="TAG", help="Only turns with this tag.")] = "",
    last: Annotated[
        float, typer.Option(min=0.0, metavar="HOURS", help="Only turns judged in these last hours.")
    ] = 0.0,
) -> None:
    """Sum up the scores of a running application.

    Means are weighted by how likely each turn was to be picked, so that sampling suspicious turns more often
    does not make the application look worse than it is. The interval is for the mean.

    **Examples**

    - `steelyard report`
    - `steelyard report --db prod.db --last 24 --metric faithfulness`
    - `steelyard report --tag inventing`
    """
    import time

    from rich.console import Console

    from steelyard.cli.scoring._summary import Tally, show
    from steelyard.sinks import read_evaluations

    tally = Tally(by_question=True)
    since = time.time() - last * 3600 if last else None
    for evaluation in read_evaluations(db, metric=metric or None, since=since):
        if not tag or (evaluation.record and tag in evaluation.record.tags):
            tally.add(evaluation)
    show(Console(), tally, title=f"in {db}")
