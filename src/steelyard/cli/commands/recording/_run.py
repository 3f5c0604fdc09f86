"""`steelyard run`: a program with recording attached, not a line of it changed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from steelyard.cli._judges import JudgeOptions
from steelyard.cli._options import listed, takes
from steelyard.cli._program import Program
from steelyard.errors import ConfigurationError
from steelyard.metrics import parse_metrics
from steelyard.online import Monitor
from steelyard.recording import attach_recorders

SETTINGS = {"allow_interspersed_args": False}
"""What comes after the program's name is the program's own."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RunOptions(JudgeOptions):
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
    sample_rate: Annotated[float, typer.Option(min=0.0, max=1.0, help="The share of turns to judge.")] = 1.0


@takes(RunOptions)
def run(options: RunOptions) -> int:
    """Run a program with its RAG turns recorded and judged.

    Every installed framework that there is a recorder for is watched. Results go where a Monitor's go: into
    `steelyard.db` in the working directory and, if OpenTelemetry is set up, onto the trace. When the
    program ends, what is pending is judged, within some seconds.

    **Examples**

    - `steelyard run app.py --port 8000`
    - `steelyard run -m my_package.server`
    - `steelyard run --sample-rate 0.1 --judge openai:gpt-4o-mini app.py`
    """
    choice = options.choice()
    program = Program(name=options.program, arguments=options.arguments or (), is_module=options.module)
    # Before frameworks are imported, which takes seconds.
    program.find()
    judge = choice.build()
    metrics = parse_metrics(list(listed(options.metrics)), judge) if options.metrics else None
    monitor = Monitor(judge=judge, metrics=metrics, sample_rate=options.sample_rate)
    # A run that can record nothing would look as if there had been no turn.
    if not attach_recorders(monitor):
        raise ConfigurationError(
            "there is nothing to record with; run: pip install 'steelyard[langchain]' (or [llamaindex])"
        )
    try:
        program.become()
    finally:
        monitor.close()
    return 0
