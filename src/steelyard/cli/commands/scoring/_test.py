"""`steelyard test`: put a golden set to an application, judge its answers, and say whether it passes."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from steelyard.cli._options import BaseUrl, GoldenSetFile, JudgeName, KeyVariable, Metrics, Model, listed


class Repeat(StrEnum):
    """What a gate repeats."""

    JUDGE = "judge"
    APP = "app"


_App = Annotated[
    str, typer.Option("--app", "-a", metavar="MODULE:NAME", help="The application, or its address.")
]
_Threshold = Annotated[
    list[str] | None,
    typer.Option(metavar="METRIC=X", help="What every single case has to reach; repeatable."),
]
_Gate = Annotated[
    list[str] | None,
    typer.Option(
        metavar="METRIC=X", help="What the mean has to reach; METRIC alone: the baseline's; repeatable."
    ),
]
_Baseline = Annotated[
    str, typer.Option(metavar="RUN.json", help="An earlier run, for gates without a number.")
]
_Fall = Annotated[
    float, typer.Option(min=0.0001, help="The smallest fall below a gate that should be found.")
]
_Power = Annotated[
    float, typer.Option(min=0.5, max=0.999, help="The probability with which such a fall is found.")
]
_FalseFailures = Annotated[
    float, typer.Option(min=0.001, max=0.4, help="The probability with which a gate fails without a fall.")
]
_Passes = Annotated[int, typer.Option(min=1, help="How often a case is judged at most.")]
_Repeat = Annotated[Repeat, typer.Option(help="What a gate repeats: judging, or asking the application too.")]
_Concurrency = Annotated[int, typer.Option(min=1, help="Cases in flight.")]
_Timeout = Annotated[
    float, typer.Option(min=0.01, metavar="SECONDS", help="The application's time for a case.")
]
_InputKey = Annotated[str, typer.Option(metavar="KEY", help="Where a chain expects the question.")]
_AnswerField = Annotated[str, typer.Option(metavar="A.B", help="Where the answer is in an endpoint's reply.")]
_ContextsField = Annotated[
    str, typer.Option(metavar="A.B", help="Where the contexts are in an endpoint's reply.")
]
_Junit = Annotated[str, typer.Option(metavar="FILE", help="Write JUnit XML.")]
_Json = Annotated[str, typer.Option("--json", metavar="FILE", help="Write the run, for `steelyard compare`.")]
_Markdown = Annotated[
    str, typer.Option(metavar="FILE", help="Write a summary in Markdown; added to the file's end.")
]
_Seed = Annotated[int, typer.Option(help="Decides in which order cases are repeated.")]


def test(
    golden: GoldenSetFile,
    app: _App,
    metrics: Metrics = "",
    threshold: _Threshold = None,
    gate: _Gate = None,
    baseline: _Baseline = "",
    fall: _Fall = 0.05,
    power: _Power = 0.9,
    false_failures: _FalseFailures = 0.05,
    passes: _Passes = 5,
    repeat: _Repeat = Repeat.JUDGE,
    judge: JudgeName = "local",
    model: Model = "",
    base_url: BaseUrl = "",
    api_key_env: KeyVariable = "",
    concurrency: _Concurrency = 8,
    timeout: _Timeout = 60.0,
    input_key: _InputKey = "",
    answer_field: _AnswerField = "",
    contexts_field: _ContextsField = "",
    junit: _Junit = "",
    json_file: _Json = "",
    markdown: _Markdown = "",
    seed: _Seed = 0,
) -> None:
    """Run a golden set against an application.

    The application is a function of a question (sync or async), a LangChain chain, a LlamaIndex engine or
    workflow, a function without parameters that makes one of these, or the address of an HTTP endpoint. It is
    recorded by the recorders, so answers are judged by the contexts that were really retrieved.

    A gate is decided with stated error rates: since a judge wavers, cases are judged again until it is clear
    on which side the mean lies.

    Exit status: 0 passed; 1 a case was not answered or not judged, missed a threshold, or a gate did not
    pass; 2 wrong usage.

    **Examples**

    - `steelyard test golden.jsonl --app my_app:chain`
    - `steelyard test golden.jsonl --app my_app:answer --gate faithfulness=0.8 --junit out.xml`
    - `steelyard test golden.jsonl --app http://127.0.0.1:8000/ask --gate faithfulness --baseline main.json`
    """
    from steelyard.cli.golden._test import TestOptions, run
    from steelyard.cli.scoring._judges import JudgeChoice

    options = TestOptions(
        golden=golden,
        app=app,
        metrics=listed(metrics),
        thresholds=tuple(threshold or ()),
        gates=tuple(gate or ()),
        baseline=baseline or None,
        rates={"fall": fall, "power": power, "false_failures": false_failures, "passes": passes},
        repeat=repeat.value,
        judge=JudgeChoice.named(
            judge, model=model, base_url=base_url, key_variable=api_key_env, concurrency=concurrency
        ),
        timeout=timeout,
        input_key=input_key or None,
        reply={"answer_field": answer_field, "contexts_field": contexts_field},
        junit=junit or None,
        json=json_file or None,
        markdown=markdown or None,
        seed=seed,
    )
    raise typer.Exit(run(options))
