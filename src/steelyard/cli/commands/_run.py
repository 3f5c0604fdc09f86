"""`steelyard run`: a program with recording attached, not a line of it changed."""

from __future__ import annotations

import runpy
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from typer import Argument, Option

from steelyard.cli._judges import JudgeOptions
from steelyard.cli._options import listed, takes
from steelyard.errors import ConfigurationError
from steelyard.metrics import parse_metrics
from steelyard.online import Monitor
from steelyard.recording import attach_recorders


@dataclass(frozen=True, kw_only=True, slots=True)
class Program:
    """A program that this process becomes."""

    name: str
    """A script, a folder or archive with a `__main__.py`, or a module."""
    arguments: Sequence[str]
    is_module: bool

    def find(self) -> None:
        """See that there is a program before anything is started."""
        if not self.is_module:
            if not Path(self.name).exists():
                raise ConfigurationError(f"{self.name!r} does not exist; for a module write: -m {self.name}")
            return
        sys.path.insert(0, str(Path.cwd()))
        try:
            found = find_spec(self.name) is not None
        except (ImportError, ValueError):
            found = False
        if not found:
            raise ConfigurationError(
                f"no module is named {self.name!r}; check its name, and run from its folder"
            )

    def become(self) -> None:
        """Run it as the interpreter would."""
        sys.argv = [self.name, *self.arguments]
        if self.is_module:
            runpy.run_module(self.name, run_name="__main__", alter_sys=True)
            return
        path = Path(self.name)
        if path.is_file():
            # As the interpreter does for a script; `runpy` does it only for folders and archives.
            sys.path.insert(0, str(path.absolute().parent))
        runpy.run_path(self.name, run_name="__main__")


@dataclass(frozen=True, kw_only=True, slots=True)
class RunOptions(JudgeOptions):
    """One call of `steelyard run`, as it was typed."""

    program: str = Argument(..., metavar="APP.py", help="A script, or with `-m` a module.")
    arguments: list[str] | None = Argument(None, metavar="ARGS", help="Passed on to the program.")
    module: bool = Option(False, "--module", "-m", help="APP is a module's name, as for `python -m`.")
    metrics: str = Option("", metavar="A,B", help="Names, `all`, or none for the judge's default suite.")
    sample_rate: float = Option(1.0, min=0.0, max=1.0, help="The share of turns to judge.")


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
    # Threads of the program may outlast it: what is pending is judged at exit, after them. From Python 3.12
    # on, no thread can begin once the main one has ended.
    monitor.start()
    program.become()
    return 0
