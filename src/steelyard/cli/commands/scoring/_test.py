"""`steelyard test`: put a golden set to an application, judge its answers, and say whether it passes."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from steelyard.cli._options import BaseUrl, GoldenSetFile, JudgeName, KeyVariable, Metrics, Model, takes


class Repeat(StrEnum):
    """What a gate repeats."""

    JUDGE = "judge"
    APP = "app"


@dataclass(frozen=True, kw_only=True, slots=True)
class TestOptions:
    """One call of `steelyard test`, as it was typed."""

    golden: GoldenSetFile
    app: Annotated[
        str, typer.Option("--app", "-a", metavar="MODULE:NAME", help="The application, or its address.")
    ] = ""
    metrics: Metrics = ""
    threshold: Annotated[
        list[str] | None,
        typer.Option(metavar="METRIC=X", help="What every single case has to reach; repeatable."),
    ] = None
    gate: Annotated[
        list[str] | None,
        typer.Option(
            metavar="METRIC=X", help="What the mean has to reach; METRIC alone: the baseline's; repeatable."
        ),
    ] = None
    baseline: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="RUN.json",
            help="An earlier run: the bar of gates without a number, and what the application's wavering is "
            "known from; repeatable.",
        ),
    ] = None
    measure: Annotated[bool, typer.Option("--measure", help="Only measure: no bar is wanted.")] = False
    plan: Annotated[
        bool, typer.Option("--plan", help="Ask nothing; say which fall a gate over this set can find.")
    ] = False
    fall: Annotated[
        float, typer.Option(min=0.0001, help="The smallest fall below a gate that should be found.")
    ] = 0.05
    power: Annotated[
        float, typer.Option(min=0.5, max=0.999, help="1 less the probability that such a fall passes.")
    ] = 0.9
    false_failures: Annotated[
        float,
        typer.Option(min=0.001, max=0.4, help="The probability with which a gate fails without a fall."),
    ] = 0.05
    passes: Annotated[int, typer.Option(min=1, help="How often a case is repeated at most.")] = 5
    repeat: Annotated[
        Repeat, typer.Option(help="What a gate repeats: judging, or asking the application too.")
    ] = Repeat.JUDGE
    judge: JudgeName = "local"
    model: Model = ""
    base_url: BaseUrl = ""
    api_key_env: KeyVariable = ""
    concurrency: Annotated[int, typer.Option(min=1, help="Cases in flight.")] = 8
    timeout: Annotated[
        float, typer.Option(min=0.01, metavar="SECONDS", help="The application's time for a case.")
    ] = 60.0
    input_key: Annotated[str, typer.Option(metavar="KEY", help="Where a chain expects the question.")] = ""
    answer_field: Annotated[
        str, typer.Option(metavar="A.B", help="Where the answer is in an endpoint's reply.")
    ] = ""
    contexts_field: Annotated[
        str, typer.Option(metavar="A.B", help="Where the contexts are in an endpoint's reply.")
    ] = ""
    junit: Annotated[str, typer.Option(metavar="FILE", help="Write JUnit XML.")] = ""
    json_file: Annotated[
        str, typer.Option("--json", metavar="FILE", help="Write the run, for `steelyard compare`.")
    ] = ""
    markdown: Annotated[
        str, typer.Option(metavar="FILE", help="Write a summary in Markdown; added to the file's end.")
    ] = ""
    seed: Annotated[int, typer.Option(help="Decides in which order cases are repeated.")] = 0


@takes(TestOptions)
def test(options: TestOptions) -> int:
    """Run a golden set against an application.

    The application is a function of a question (sync or async), a LangChain chain, a LlamaIndex engine or
    workflow, a function without parameters that makes one of these, or the address of an HTTP endpoint. It is
    recorded by the recorders, so answers are judged by the contexts that were really retrieved.

    A gate is decided with stated error rates. How much the application wavers is measured by asking it again
    (`--repeat app`) or known from earlier runs (`--baseline`); without either, a gate only compares the
    answers at hand, and says so. `--plan` says beforehand what a gate can find. A mined set without any bar
    is held against what production scored on its cases.

    Exit status: 0 passed; 1 a case was not answered or not judged, missed a threshold, or a gate did not
    pass; 2 wrong usage; 3 nothing was asked: no threshold, no gate, no bar of the set, and not `--measure`.

    **Examples**

    - `steelyard test golden.jsonl --app my_app:chain`
    - `steelyard test golden.jsonl --app my_app:answer --gate faithfulness=0.8 --junit out.xml`
    - `steelyard test golden.jsonl --plan --gate faithfulness --baseline main.json --fall 0.1`
    - `steelyard test golden.jsonl --app http://127.0.0.1:8000/ask --gate faithfulness --baseline main.json`
    """
    from steelyard.cli.golden._test import run

    return run(options)
