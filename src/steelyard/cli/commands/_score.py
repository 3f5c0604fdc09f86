"""`steelyard score`: score a file of records, write one Evaluation a line, and say what it comes to."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer


class JudgeName(StrEnum):
    """Who answers."""

    LOCAL = "local"
    OPENAI = "openai"
    DECISIONS = "decisions"
    SYSTEMONE = "systemone"
    PAIR = "pair"


class FuseName(StrEnum):
    """How questions share requests."""

    VIEW = "view"
    RECORD = "record"
    OFF = "off"


def score(
    source: Annotated[
        str, typer.Argument(metavar="IN.jsonl", help="Records, one a line; `-` for standard input.")
    ],
    metrics: Annotated[
        str,
        typer.Option(
            "--metrics", "-m", metavar="A,B", help="Names, `all`, or none for the judge's default suite."
        ),
    ] = "",
    judge: Annotated[
        JudgeName,
        typer.Option(
            "--judge",
            "-j",
            help="`local` needs no key; `openai` is any server that speaks its protocol; `pair` is an ONNX "
            "model of yours.",
        ),
    ] = JudgeName.LOCAL,
    model: Annotated[str, typer.Option(metavar="M", help="The judge's model; for `pair` its file.")] = "",
    extractor: Annotated[
        str,
        typer.Option(
            metavar="M", help="Chat model that extracts claims for `decisions`; without, they are sentences."
        ),
    ] = "",
    embedder: Annotated[
        str,
        typer.Option(
            metavar="M", help="Embedding model on the judge's server; without, static word vectors."
        ),
    ] = "",
    base_url: Annotated[
        str, typer.Option(metavar="URL", help="The judge's server, e.g. http://127.0.0.1:8000/v1.")
    ] = "",
    api_key_env: Annotated[
        str,
        typer.Option(
            metavar="VAR", help="The variable with the server's key; OPENAI_API_KEY goes to OpenAI only."
        ),
    ] = "",
    fuse: Annotated[
        FuseName,
        typer.Option(
            help="Questions share requests by what they may see (`view`), all at once (`record`), or not."
        ),
    ] = FuseName.VIEW,
    out: Annotated[
        str,
        typer.Option(
            "--out",
            "-o",
            metavar="OUT.jsonl",
            help="One evaluation a line, in the order of IN, as they come.",
        ),
    ] = "",
    fail_under: Annotated[
        list[str] | None,
        typer.Option(metavar="METRIC=X", help="Exit with 1 where a mean is worse than this; repeatable."),
    ] = None,
    concurrency: Annotated[int, typer.Option(min=1, help="Records, and requests, in flight.")] = 16,
    deadline: Annotated[
        float | None, typer.Option(min=0.01, metavar="SECONDS", help="The most time for one record.")
    ] = None,
    plan: Annotated[
        bool, typer.Option("--plan", help="Ask nothing: estimate requests, tokens, price.")
    ] = False,
) -> None:
    """Score the records of a file.

    A record is a JSON object with `question`, `contexts` (strings, or objects with `text`, `id`, `score`),
    `answer`, and where known `id`, `reference` and `reference_contexts`. The names of Ragas work too:
    `user_input`, `retrieved_contexts`, `response`, `ground_truth`.

    The summary and the progress go to standard error, so `--out -` can be piped.

    Exit status: 0 fine; 1 a bad line, a missed `--fail-under`, or a metric that failed on every record;
    2 wrong usage.

    **Examples**

    - `steelyard score turns.jsonl`
    - `steelyard score turns.jsonl --metrics faithfulness,context_recall --fail-under faithfulness=0.8`
    - `steelyard score turns.jsonl --judge openai --model gpt-4o-mini --metrics all --plan`
    - `steelyard score turns.jsonl --judge openai --base-url http://127.0.0.1:8000/v1 --model qwen3 --out -`
    """
    from steelyard.cli.scoring._judges import JudgeChoice
    from steelyard.cli.scoring._score_file import ScoreOptions, run

    job = ScoreOptions(
        source=source,
        metrics=tuple(name.strip() for name in metrics.split(",") if name.strip()),
        judge=JudgeChoice(
            kind=judge.value,
            model=model or None,
            extractor=extractor or None,
            embedder=embedder or None,
            base_url=base_url or None,
            key_variable=api_key_env or None,
            concurrency=concurrency,
        ),
        fuse=fuse.value,
        out=out or None,
        fail_under=tuple(fail_under or ()),
        concurrency=concurrency,
        deadline=deadline,
    )
    if plan:
        from steelyard.cli.scoring._plan import estimate

        raise typer.Exit(estimate(job))
    raise typer.Exit(run(job))
