"""`steelyard score`: score a file of records, write one Evaluation a line, and say what it comes to."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from steelyard.cli._options import BaseUrl, JudgeName, KeyVariable, Metrics, Model, listed


class FuseName(StrEnum):
    """How questions share requests."""

    VIEW = "view"
    RECORD = "record"
    OFF = "off"


_Source = Annotated[
    str, typer.Argument(metavar="IN.jsonl", help="Records, one a line; `-` for standard input.")
]
_Extractor = Annotated[
    str,
    typer.Option(
        metavar="M", help="Chat model that extracts claims for `decisions`; without, they are sentences."
    ),
]
_Embedder = Annotated[
    str,
    typer.Option(metavar="M", help="Embedding model on the judge's server; without, static word vectors."),
]
_Fuse = Annotated[
    FuseName,
    typer.Option(
        help="Questions share requests by what they may see (`view`), all at once (`record`), or not."
    ),
]
_Out = Annotated[
    str,
    typer.Option(
        "--out", "-o", metavar="OUT.jsonl", help="One evaluation a line, in the order of IN, as they come."
    ),
]
_FailUnder = Annotated[
    list[str] | None,
    typer.Option(metavar="METRIC=X", help="Exit with 1 where a mean is worse than this; repeatable."),
]
_Concurrency = Annotated[int, typer.Option(min=1, help="Records, and requests, in flight.")]
_Deadline = Annotated[
    float | None, typer.Option(min=0.01, metavar="SECONDS", help="The most time for one record.")
]
_Plan = Annotated[bool, typer.Option("--plan", help="Ask nothing: estimate requests, tokens, price.")]


def score(
    source: _Source,
    metrics: Metrics = "",
    judge: JudgeName = "local",
    model: Model = "",
    extractor: _Extractor = "",
    embedder: _Embedder = "",
    base_url: BaseUrl = "",
    api_key_env: KeyVariable = "",
    fuse: _Fuse = FuseName.VIEW,
    out: _Out = "",
    fail_under: _FailUnder = None,
    concurrency: _Concurrency = 16,
    deadline: _Deadline = None,
    plan: _Plan = False,
) -> None:
    """Score the records of a file.

    A record is a JSON object with `question`, `contexts` (strings, or objects with `text`, `id`, `score`),
    `answer`, and where known `id`, `reference` and `reference_contexts`. The names of Ragas
    (`user_input`, `retrieved_contexts`, `response`, `ground_truth`), of DeepEval, and `query`, `documents`,
    `output` work too.

    The summary and the progress go to standard error, so `--out -` can be piped.

    Exit status: 0 fine; 1 a bad line, a missed `--fail-under`, or a metric that failed on every record;
    2 wrong usage.

    **Examples**

    - `steelyard score turns.jsonl`
    - `steelyard score turns.jsonl --metrics faithfulness,context_recall --fail-under faithfulness=0.8`
    - `steelyard score turns.jsonl --judge openai:gpt-4o-mini --metrics all --plan`
    - `steelyard score turns.jsonl --judge openai:qwen3 --base-url http://127.0.0.1:8000/v1 --out -`
    """
    from steelyard.cli.scoring._judges import JudgeChoice
    from steelyard.cli.scoring._plan import estimate
    from steelyard.cli.scoring._score_file import ScoreOptions, run

    job = ScoreOptions(
        source=source,
        metrics=listed(metrics),
        judge=JudgeChoice.named(
            judge,
            model=model,
            extractor=extractor,
            embedder=embedder,
            base_url=base_url,
            key_variable=api_key_env,
            concurrency=concurrency,
        ),
        fuse=fuse.value,
        out=out or None,
        fail_under=tuple(fail_under or ()),
        concurrency=concurrency,
        deadline=deadline,
    )
    raise typer.Exit(estimate(job) if plan else run(job))
