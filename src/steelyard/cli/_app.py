"""`steelyard`: finds its commands, and turns errors that the user can mend into one line.

A command is a function of its name, or a `typer.Typer` of that name for a group of them, in
`commands/_<name>.py` or the file that `_FILES` names. It is imported once it is called, so that
`steelyard --help` stays fast however many commands there are; what that page says of each is here.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from importlib.metadata import version
from io import TextIOWrapper
from typing import Any, Final

import typer
import typer.main
from typer.core import TyperGroup

from steelyard._internal.text import ShownStream, printable
from steelyard.cli._say import say
from steelyard.errors import SteelyardError

_COMMANDS = {
    "begin": {
        "demo": "Watch a RAG application being scored: no key, no network.",
        "init": "Set up this folder: three questions, a steelyard.toml, a first score.",
        "doctor": "Check the set-up, and say what is wrong and how to mend it.",
    },
    "recording": {
        "run": "Run a program with its RAG turns recorded and judged.",
        "config": "Show the settings in force here, and where each comes from.",
        "collect": "Receive OpenTelemetry spans from programs in any language, and score their RAG turns.",
        "backfill": "Score turns that are stored already: traces, tables, exports.",
        "records": "Print the RAG turns in OpenTelemetry traces, one JSON record a line.",
        "worker": "Judge the turns of a queue, apart from the application.",
        "queue": "Show what waits in a queue, and what could not be judged.",
    },
    "results": {
        "report": "Show means with intervals, the worst turns, and what fell: in the terminal or as a page.",
        "serve": "Show the same in a browser, live, with every claim and its evidence.",
        "alarms": "Show each alarm, its state, and what it reported.",
        "explain": "Say why one turn is bad, and try what would have made it good.",
        "plan": "Say what an interval costs a day: with the judge alone, and with a screen.",
        "gaps": "List the questions that your documents do not answer.",
        "label": "Label turns as good or bad; the most useful come first.",
        "labels": "Export people's labels, or import them.",
        "calibrate": "Compare the judge with people's labels, and correct its scores.",
        "dashboards": "Write a Grafana dashboard and Prometheus rules.",
        "prune": "Delete the oldest results, and give their space back.",
    },
    "scoring": {
        "score": "Score the records of a file.",
        "golden": "Make a set of test cases: from production, or from documents.",
        "test": "Run a set of cases on your application, and pass or fail.",
        "compare": "Compare two runs, case by case.",
        "judge": "Measure how good a judge is.",
    },
}
"""The commands in groups, in the order in which they are needed, each in a line."""
_FILES = {
    **dict.fromkeys(("report", "plan", "alarms", "dashboards", "prune"), "results"),
    **dict.fromkeys(("label", "calibrate"), "labels"),
    **dict.fromkeys(("explain", "gaps"), "causes"),
    **dict.fromkeys(("init", "config"), "settings"),
    "compare": "test",
    "worker": "queue",
    "collect": "serve",
}
"""Where a command is, if not in a file of its own name."""
_WITH_PROGRAM = frozenset({"run", "doctor"})
"""What comes after the name of a program is the program's own."""
_HEADINGS = {
    "begin": "Begin here",
    "recording": "Record and score your application",
    "results": "Look at the results",
    "scoring": "Test before you ship",
}
# What shells and typer itself use for wrong usage; a program that Ctrl-C ends has 130, which typer sees to.
_USAGE = 2
_MARKUP: Final = "markdown"


def main() -> None:
    """The `steelyard` command.

    Exit status: 0 fine, 1 finished with findings (bad input lines, a missed `--fail-under`), 2 wrong usage.
    """
    with _shown("stdout"), _shown("stderr"):
        _run()


def _run() -> None:
    try:
        build()(prog_name="steelyard")
    except SteelyardError as error:
        _complain(str(error))
        sys.exit(_USAGE)
    except OSError as error:
        _complain(f"{error.strerror or error}{f': {error.filename}' if error.filename else ''}")
        sys.exit(_USAGE)


@contextmanager
def _shown(name: str) -> Iterator[None]:
    stream = getattr(sys, name)
    if not isinstance(stream, TextIOWrapper):
        yield
        return
    # A terminal or pipe that cannot show a character shows a question mark; the command goes on.
    shown = ShownStream(stream.buffer, stream.encoding, "replace", line_buffering=stream.line_buffering)
    setattr(sys, name, shown)
    try:
        yield
    finally:
        setattr(sys, name, stream)
        # Nobody may read any more; and the buffer stays the stream's own.
        with suppress(OSError, ValueError):
            shown.detach()


class _Commands(TyperGroup):
    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        """The command that was typed; click's own list only knows what the help page says of it."""
        name, _, rest = super().resolve_command(ctx, args)
        return name, _loaded(str(name)), rest


def build() -> typer.Typer:
    """The application with every command that is there."""
    app = typer.Typer(
        name="steelyard",
        cls=_Commands,
        help="Score the answers of a RAG application: while it runs, in a file, or in CI.",
        epilog="New here? `steelyard demo`, then `steelyard init` in your project. "
        "Each command explains itself: `steelyard report --help`.",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        rich_markup_mode=_MARKUP,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_root)
    for group, commands in _COMMANDS.items():
        for name, what in commands.items():
            app.command(name, help=what, rich_help_panel=_HEADINGS[group])(lambda: None)
    return app


def _loaded(name: str) -> Any:
    command = getattr(import_module(f"steelyard.cli.commands._{_FILES.get(name, name)}"), name)
    app = typer.Typer(rich_markup_mode=_MARKUP)
    # With this, one command too is a group.
    app.callback()(_root)
    if isinstance(command, typer.Typer):
        app.add_typer(command, name=name)
    else:
        app.command(name, context_settings={"allow_interspersed_args": name not in _WITH_PROGRAM})(command)
    return typer.main.get_group(app).commands[name]


def _show_version(wanted: bool) -> None:
    if wanted:
        say(f"steelyard {version('steelyard')}")
        raise typer.Exit


def _root(
    _: bool = typer.Option(
        False, "--version", "-V", callback=_show_version, is_eager=True, help="Show the version and exit."
    ),
) -> None:
    pass


def _complain(message: str) -> None:
    say(f"steelyard: {printable(message)}", err=True)
