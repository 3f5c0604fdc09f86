"""`steelyard backfill`: score the turns that are stored already, in traces, tables, exports and servers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from steelyard.cli._options import BaseUrl, ConfiguredJudge, KeyVariable, Model, Yes, takes


@dataclass(frozen=True, kw_only=True, slots=True)
class BackfillOptions:
    """One call of `steelyard backfill`, as it was typed."""

    sources: Annotated[
        list[str],
        typer.Argument(
            metavar="SOURCE...",
            help="Files or folders (OTLP/JSON, Parquet, CSV, JSON lines, exports of Langfuse and LangSmith), "
            "or the address of a Phoenix server.",
        ),
    ]
    since: Annotated[
        str, typer.Option(metavar="TIME", help="Only turns since then: 24h, 7d, 2026-11-01.")
    ] = ""
    until: Annotated[str, typer.Option(metavar="TIME", help="Only turns before then.")] = ""
    where: Annotated[
        list[str] | None,
        typer.Option(metavar="FIELD=VALUE", help="Only turns with this tag, status or metadata; repeatable."),
    ] = None
    sample: Annotated[float, typer.Option(min=0.0, max=1.0, help="The share of turns to judge.")] = 1.0
    budget: Annotated[
        float | None, typer.Option(min=0.0, metavar="DOLLARS", help="Stop before judging costs more.")
    ] = None
    metrics: Annotated[
        str,
        typer.Option("--metrics", "-m", metavar="A,B", help="Names, `all`, or none for those configured."),
    ] = ""
    judge: ConfiguredJudge = ""
    model: Model = ""
    base_url: BaseUrl = ""
    api_key_env: KeyVariable = ""
    columns: Annotated[
        str,
        typer.Option(
            "--map", metavar="PART=COLUMN,...", help="Which columns of a table hold question, answer, ..."
        ),
    ] = ""
    project: Annotated[str, typer.Option(metavar="NAME", help="The project on a Phoenix server.")] = "default"
    db: Annotated[str, typer.Option("--db", metavar="FILE", help="The results file.")] = ""
    concurrency: Annotated[int, typer.Option(min=1, help="Turns judged at the same time.")] = 16
    plan: Annotated[bool, typer.Option("--plan", help="Judge nothing: say what there is and its price.")] = (
        False
    )
    yes: Yes = False
    engine: Annotated[str, typer.Option(help="`local`, or `ray` for the machines of a Ray cluster.")] = (
        "local"
    )
    address: Annotated[str, typer.Option(metavar="RAY", help="The cluster; one on this machine if none.")] = (
        ""
    )
    actors: Annotated[int, typer.Option(min=1, help="Ray actors that judge.")] = 2


@takes(BackfillOptions)
def backfill(options: BackfillOptions) -> int:
    """Score stored turns, and write the scores where a Monitor writes them: also back onto the old traces.

    First it says what there is to do and what that costs. What the results file has already is left out, so
    that a run which was stopped goes on where it was, and turns that were scored live are not paid for twice.

    Exit status: 0 done; 1 some input was bad, or the run ended early; 2 wrong usage.

    **Examples**

    - `steelyard backfill traces/ --since 30d --plan`
    - `steelyard backfill turns.parquet --map question=prompt,contexts=docs,answer=reply`
    - `steelyard backfill http://127.0.0.1:6006 --project shop --sample 0.1`
    - `steelyard backfill export.jsonl --judge openai:gpt-4o-mini --budget 5 --yes`
    """
    from steelyard.cli._backfilling import run

    return run(options)
