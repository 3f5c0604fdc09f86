"""`steelyard score`: score a file of records, write one Evaluation a line, and say what it comes to."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated

import typer

from steelyard.cli._options import BaseUrl, JudgeName, KeyVariable, Metrics, Model, takes


class FuseName(StrEnum):
    """How questions share requests."""

    VIEW = "view"
    RECORD = "record"
    OFF = "off"


@dataclass(frozen=True, kw_only=True, slots=True)
class ScoreOptions:
    """One call of `steelyard score`, as it was typed."""

    source: Annotated[
        str, typer.Argument(metavar="IN.jsonl", help="Records, one a line; `-` for standard input.")
    ]
    metrics: Metrics = ""
    judge: JudgeName = "local"
    model: Model = ""
    extractor: Annotated[
        str,
        typer.Option(
            metavar="M", help="Chat model that extracts claims for `decisions`; without, they are sentences."
        ),
    ] = ""
    embedder: Annotated[
        str,
        typer.Option(
            metavar="M", help="Embedding model on the judge's server; without, static word vectors."
        ),
    ] = ""
    base_url: BaseUrl = ""
    api_key_env: KeyVariable = ""
    fuse: Annotated[
        FuseName,
        typer.Option(
            help="Questions share requests by what they may see (`view`), all at once (`record`), or not."
        ),
    ] = FuseName.VIEW
    out: Annotated[
        str,
        typer.Option(
            "--out",
            "-o",
            metavar="OUT.jsonl",
            help="One evaluation a line, in the order of IN, as they come.",
        ),
    ] = ""
    fail_under: Annotated[
        list[str] | None,
        typer.Option(metavar="METRIC=X", help="Exit with 1 where a mean is worse than this; repeatable."),
    ] = None
    concurrency: Annotated[int, typer.Option(min=1, help="Records, and requests, in flight.")] = 16
    deadline: Annotated[
        float | None, typer.Option(min=0.01, metavar="SECONDS", help="The most time for one record.")
    ] = None
    plan: Annotated[bool, typer.Option("--plan", help="Ask nothing: estimate requests, tokens, price.")] = (
        False
    )

    @property
    def source_name(self) -> str:
        """The input, for people."""
        return "standard input" if self.source == "-" else self.source


@takes(ScoreOptions)
def score(options: ScoreOptions) -> int:
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
    from steelyard.cli.scoring._score_file import run

    choice = JudgeChoice.named(
        options.judge,
        model=options.model,
        extractor=options.extractor,
        embedder=options.embedder,
        base_url=options.base_url,
        key_variable=options.api_key_env,
        concurrency=options.concurrency,
    )
    return estimate(options, choice) if options.plan else run(options, choice)
