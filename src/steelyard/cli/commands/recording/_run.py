"""`steelyard run`: a program with recording attached, not a line of it changed."""

from __future__ import annotations

from typing import Annotated

import typer

from steelyard.cli._options import BaseUrl, JudgeName, KeyVariable, Model, listed

SETTINGS = {"allow_interspersed_args": False}
"""What comes after the program's name is the program's own."""


def run(
    program: Annotated[str, typer.Argument(metavar="APP.py", help="A script, or with `-m` a module.")],
    arguments: Annotated[
        list[str] | None, typer.Argument(metavar="ARGS", help="Passed on to the program.")
    ] = None,
    module: Annotated[
        bool, typer.Option("--module", "-m", help="APP is a module's name, as for `python -m`.")
    ] = False,
    metrics: Annotated[
        str, typer.Option(metavar="A,B", help="Names, `all`, or none for the judge's default suite.")
    ] = "",
    judge: JudgeName = "local",
    model: Model = "",
    base_url: BaseUrl = "",
    api_key_env: KeyVariable = "",
    sample_rate: Annotated[float, typer.Option(min=0.0, max=1.0, help="The share of turns to judge.")] = 1.0,
) -> None:
    """Run a program with its RAG turns recorded and judged.

    Every installed framework that there is a recorder for is watched. Results go where a Monitor's go: into
    `steelyard.db` in the working directory and, where OpenTelemetry is set up, onto the trace. When the
    program ends, what is pending is judged, within some seconds.

    **Examples**

    - `steelyard run app.py --port 8000`
    - `steelyard run -m my_package.server`
    - `steelyard run --sample-rate 0.1 --judge openai:gpt-4o-mini app.py`
    """
    from steelyard.cli._run_recorded import RunOptions, run_recorded
    from steelyard.cli.scoring._judges import JudgeChoice

    run_recorded(
        RunOptions(
            program=program,
            arguments=tuple(arguments or ()),
            module=module,
            judge=JudgeChoice.named(judge, model=model, base_url=base_url, key_variable=api_key_env),
            metrics=listed(metrics),
            sample_rate=sample_rate,
        )
    )
