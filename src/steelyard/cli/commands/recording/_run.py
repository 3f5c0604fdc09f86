"""`steelyard run`: a program with recording attached, not a line of it changed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from steelyard.cli._options import BaseUrl, JudgeName, KeyVariable, Model, takes

SETTINGS = {"allow_interspersed_args": False}
"""What comes after the program's name is the program's own."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RunOptions:
    """One call of `steelyard run`, as it was typed."""

    program: Annotated[str, typer.Argument(metavar="APP.py", help="A script, or with `-m` a module.")]
    arguments: Annotated[
        list[str] | None, typer.Argument(metavar="ARGS", help="Passed on to the program.")
    ] = None
    module: Annotated[
        bool, typer.Option("--module", "-m", help="APP is a module's name, as for `python -m`.")
    ] = False
    metrics: Annotated[
        str, typer.Option(metavar="A,B", help="Names, `all`, or none for the judge's default suite.")
    ] = ""
    judge: JudgeName = "local"
    model: Model = ""
    base_url: BaseUrl = ""
    api_key_env: KeyVariable = ""
    sample_rate: Annotated[float, typer.Option(min=0.0, max=1.0, help="The share of turns to judge.")] = 1.0


@takes(RunOptions)
def run(options: RunOptions) -> int:
    """Run a program with its RAG turns recorded and judged.

    Every installed framework that there is a recorder for is watched. Results go where a Monitor's go: into
    `steelyard.db` in the working directory and, where OpenTelemetry is set up, onto the trace. When the
    program ends, what is pending is judged, within some seconds.

    **Examples**

    - `steelyard run app.py --port 8000`
    - `steelyard run -m my_package.server`
    - `steelyard run --sample-rate 0.1 --judge openai:gpt-4o-mini app.py`
    """
    from steelyard.cli._run_recorded import run_recorded

    return run_recorded(options)
