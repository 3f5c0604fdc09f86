"""`steelyard judge`: how good a judge is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from steelyard.cli._options import BaseUrl, JudgeName, KeyVariable, Model, Yes, takes

app = typer.Typer(help="Measure a judge.", no_args_is_help=True)


@app.callback()
def _judge() -> None:
    """Measure a judge."""


@dataclass(frozen=True, kw_only=True, slots=True)
class CheckOptions:
    """One call of `steelyard judge check`, as it was typed."""

    judge: JudgeName = "local"
    model: Model = ""
    base_url: BaseUrl = ""
    api_key_env: KeyVariable = ""
    probes: Annotated[
        str,
        typer.Option(
            metavar="FOLDER", help="A probe set of your own; without, the one that ships with this."
        ),
    ] = ""
    concurrency: Annotated[int, typer.Option(min=1, help="Requests in flight.")] = 16
    fail_under: Annotated[
        float | None,
        typer.Option(min=0, max=1, metavar="X", help="Exit with 1 where fewer than this share are right."),
    ] = None
    yes: Yes = False
    as_json: Annotated[bool, typer.Option("--json", help="The figures as JSON.")] = False


@app.command()
@takes(CheckOptions)
def check(options: CheckOptions) -> int:
    """Ask a judge questions whose right answers are known, and say what it can be trusted with.

    The questions are pairs of claims about short texts, one true and one false, that differ in a single
    point. The page shows how many are right by kind, what moves verdicts that should not move, whether the
    probabilities are calibrated, what it cost, and the same for word overlap and answer length.

    The local judge takes seconds and costs nothing. For any other the plan and its price are shown first, and
    nothing is sent without `--yes`.

    Exit status: 0 fine; 1 a missed `--fail-under`, or a judge that answered nothing; 2 wrong usage, or a
    remote judge without `--yes`.

    **Examples**

    - `steelyard judge check`
    - `steelyard judge check --judge openai:gpt-4o-mini`
    - `steelyard judge check --judge openai:qwen3 --base-url http://127.0.0.1:8000/v1 --yes --fail-under 0.8`
    """
    from steelyard.cli.checking._run import run

    return run(options)
