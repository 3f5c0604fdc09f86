"""`steelyard gaps`: the questions that the collection does not answer."""

from __future__ import annotations

import json
import time
from contextlib import closing
from typing import Annotated

import typer

from steelyard.cli._options import Results, Since
from steelyard.cli._say import say
from steelyard.cli._terminal import terminal


def gaps(
    db: Results = "steelyard.db",
    since: Since = "",
    most: Annotated[int, typer.Option("--most", min=1, help="Groups to show.")] = 20,
    jsonl: Annotated[
        bool, typer.Option("--jsonl", help="One JSON object a line, for whoever writes.")
    ] = False,
) -> None:
    """List the questions that found nothing, alike ones together, the most frequent first.

    Turns count whose diagnosis is `outside_collection`, `passage_not_found` or `nothing_retrieved`. Questions
    are compared on this machine; no text leaves it.

    **Examples**

    - `steelyard gaps --since 7d`
    - `steelyard gaps --jsonl > to-write.jsonl`
    """
    from rich.text import Text

    from steelyard._internal.text import shorten
    from steelyard.report import open_results
    from steelyard.report.gaps import find_gaps
    from steelyard.report.period import moment

    with closing(open_results(db)) as reader:
        found = find_gaps(reader, since=moment(since, now=time.time()))[:most]
    if jsonl:
        for gap in found:
            line = {
                "question": gap.question,
                "turns": gap.turns,
                "causes": dict(gap.causes),
                "records": list(gap.record_ids),
            }
            say(json.dumps(line, ensure_ascii=False))
        return
    console = terminal()
    if not found:
        console.print("No turn lacked what it asked for, as far as turns were diagnosed.")
    for gap in found:
        causes = ", ".join(f"{cause.replace('_', ' ')} {count}" for cause, count in gap.causes.items())
        console.print(Text.assemble((f"{gap.turns:>5}  ", "bold"), shorten(gap.question, 200)))
        console.print(Text(f"       {causes}", style="dim"))
