"""`steelyard run`: a program with recording attached, not a line of it changed."""

from __future__ import annotations

from typing import Annotated

import typer

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
    judge: Annotated[str, typer.Option("--judge", "-j", help="`local`, `openai` or `decisions`.")] = "local",
    model: Annotated[str, typer.Option(metavar="M", help="The judge's model.")] = "",
    base_url: Annotated[str, typer.Option(metavar="URL", help="The judge's server.")] = "",
    api_key_env: Annotated[str, typer.Option(metavar="VAR", help="The variable with its key.")] = "",
    sample_rate: Annotated[float, typer.Option(min=0.0, max=1.0, help="The share of turns to judge.")] = 1.0,
) -> None:
    """Run a program with its RAG turns recorded and judged.

    Every installed framework that there is a recorder for is watched. Results go where a Monitor's go: into
    `steelyard.db` in the working directory and, where OpenTelemetry is set up, onto the trace. When the
    program ends, what is pending is judged, within some seconds.

    **Examples**

    - `steelyard run app.py --port 8000`
    - `steelyard run -m my_package.server`
    - `steelyard run --sample-rate 0.1 --judge openai --model gpt-4o-mini app.py`
    """
    from steelyard.cli._run_recorded import RunOptions, run_recorded

    run_recorded(
        RunOptions(
            program=program,
            arguments=tuple(arguments or ()),
            module=module,
            metrics=tuple(name.strip() for name in metrics.split(",") if name.strip()),
            judge=judge,
            model=model or None,
            base_url=base_url or None,
            key_variable=api_key_env or None,
            sample_rate=sample_rate,
        )
    )
