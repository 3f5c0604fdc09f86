"""`steelyard backfill`: score the turns that are stored already, in traces, tables, exports and servers."""

from __future__ import annotations

from typing import Annotated

import typer

from steelyard.cli._options import BaseUrl, ConfiguredJudge, KeyVariable, Model, Yes, listed

_Sources = Annotated[
    list[str],
    typer.Argument(
        metavar="SOURCE...",
        help="Files or folders (OTLP/JSON, Parquet, CSV, JSON lines, exports of Langfuse and LangSmith), "
        "or the address of a Phoenix server.",
    ),
]
_Since = Annotated[str, typer.Option(metavar="TIME", help="Only turns since then: 24h, 7d, 2026-11-01.")]
_Until = Annotated[str, typer.Option(metavar="TIME", help="Only turns before then.")]
_Where = Annotated[
    list[str] | None,
    typer.Option(metavar="FIELD=VALUE", help="Only turns with this tag, status or metadata; repeatable."),
]
_Sample = Annotated[float, typer.Option(min=0.0, max=1.0, help="The share of turns to judge.")]
_Budget = Annotated[
    float | None, typer.Option(min=0.0, metavar="DOLLARS", help="Stop before judging costs more.")
]
_Metrics = Annotated[
    str,
    typer.Option("--metrics", "-m", metavar="A,B", help="Names, `all`, or none for those configured."),
]
_Columns = Annotated[
    str,
    typer.Option(
        "--map", metavar="PART=COLUMN,...", help="Which columns of a table hold question, answer, ..."
    ),
]
_Project = Annotated[str, typer.Option(metavar="NAME", help="The project on a Phoenix server.")]
_Db = Annotated[str, typer.Option("--db", metavar="FILE", help="The results file.")]
_Concurrency = Annotated[int, typer.Option(min=1, help="Turns judged at the same time.")]
_Plan = Annotated[bool, typer.Option("--plan", help="Judge nothing: say what there is and its price.")]
_Engine = Annotated[str, typer.Option(help="`local`, or `ray` for the machines of a Ray cluster.")]
_Address = Annotated[str, typer.Option(metavar="RAY", help="The cluster; one on this machine if none.")]
_Actors = Annotated[int, typer.Option(min=1, help="Ray actors that judge.")]


def backfill(
    sources: _Sources,
    since: _Since = "",
    until: _Until = "",
    where: _Where = None,
    sample: _Sample = 1.0,
    budget: _Budget = None,
    metrics: _Metrics = "",
    judge: ConfiguredJudge = "",
    model: Model = "",
    base_url: BaseUrl = "",
    api_key_env: KeyVariable = "",
    columns: _Columns = "",
    project: _Project = "default",
    db: _Db = "",
    concurrency: _Concurrency = 16,
    plan: _Plan = False,
    yes: Yes = False,
    engine: _Engine = "local",
    address: _Address = "",
    actors: _Actors = 2,
) -> None:
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
    from steelyard.cli._backfilling import BackfillOptions, run

    options = BackfillOptions(
        sources=tuple(sources),
        since=since,
        until=until,
        where=tuple(where or ()),
        sample=sample,
        budget=budget,
        metrics=listed(metrics),
        judge=judge,
        model=model,
        base_url=base_url,
        key_variable=api_key_env,
        columns=columns,
        project=project,
        db=db,
        concurrency=concurrency,
        plan=plan,
        yes=yes,
        engine=engine,
        address=address,
        actors=actors,
    )
    raise typer.Exit(run(options))
