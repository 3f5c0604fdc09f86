"""The work of `steelyard run`: attach every recorder there is, then become the program."""

from __future__ import annotations

import runpy
import sys
from importlib.util import find_spec
from pathlib import Path

from steelyard.cli._options import listed
from steelyard.cli.commands.recording._run import RunOptions
from steelyard.cli.scoring._judges import JudgeChoice
from steelyard.errors import ConfigurationError
from steelyard.metrics import metrics_named
from steelyard.online import Monitor
from steelyard.recording import attach_recorders


def run_recorded(options: RunOptions) -> int:
    """Run the program in this process, under its own name and arguments; returns the exit status.

    Raises:
        ConfigurationError: If there is no such program or judge, or no framework is installed.
        SystemExit: The program's own.
    """
    choice = JudgeChoice.named(
        options.judge, model=options.model, base_url=options.base_url, key_variable=options.api_key_env
    )
    # Before frameworks are imported, which takes seconds.
    _find(options)
    judge = choice.build()
    metrics = metrics_named(list(listed(options.metrics)), judge) if options.metrics else None
    monitor = Monitor(judge=judge, metrics=metrics, sample_rate=options.sample_rate)
    # A run that can record nothing would look as if there had been no turn.
    if not attach_recorders(monitor):
        raise ConfigurationError(
            "there is nothing to record with; run: pip install 'steelyard[langchain]' (or [llamaindex])"
        )
    try:
        _become(options)
    finally:
        monitor.close()
    return 0


def _find(options: RunOptions) -> None:
    """See that there is a program before anything is started."""
    if not options.module:
        if not Path(options.program).exists():
            raise ConfigurationError(
                f"{options.program!r} does not exist; for a module write: run -m {options.program}"
            )
        return
    sys.path.insert(0, str(Path.cwd()))
    try:
        found = find_spec(options.program) is not None
    except (ImportError, ValueError):
        found = False
    if not found:
        raise ConfigurationError(f"no module is named {options.program!r}")


def _become(options: RunOptions) -> None:
    sys.argv = [options.program, *(options.arguments or ())]
    if options.module:
        runpy.run_module(options.program, run_name="__main__", alter_sys=True)
        return
    path = Path(options.program)
    if path.is_file():
        # As the interpreter does for a script, and as `runpy` does by itself only for folders and archives.
        sys.path.insert(0, str(path.absolute().parent))
    runpy.run_path(options.program, run_name="__main__")
