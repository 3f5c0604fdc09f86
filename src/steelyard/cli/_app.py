"""`steelyard`: finds its commands, and turns errors that the user can mend into one line.

A command is a file `commands/<group>/_<name>.py` with either a function `<name>` (one command) or a
`typer.Typer` called `app` (a group of them). It is imported once it is called, so that `steelyard --help`
stays fast however many commands there are; what that page says of each is here.
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
    "scoring": {
        "demo": "Watch a RAG chain being scored.",
        "score": "Score the records of a file.",
        "judge": "Measure a judge.",
        "golden": "Golden sets: cases that an application must pass, from production or from documents.",
        "test": "Run a golden set against an application.",
        "compare": "Compare two runs case by case.",
    },
    "recording": {
        "run": "Run a program with its RAG turns recorded and judged.",
        "collect": "Receive OpenTelemetry spans from programs in any language, and score their RAG turns.",
        "worker": "Judge turns from a spool until stopped; several workers may share one.",
        "queue": "Show what waits in a queue, and list, replay or drop its dead letters.",
        "backfill": "Score stored turns, and write the scores where a Monitor writes them.",
        "records": "Print one JSON record for every RAG turn in OpenTelemetry traces.",
        "doctor": "Say what is taken for question, passages and answer, and why traces give no record.",
        "config": "Show the options of a Monitor as `STEELYARD_*` and `steelyard.toml` set them here.",
    },
    "results": {
        "report": "Sum up the scores of a running application.",
        "explain": "Say why one turn is bad, and try what would have made it good.",
        "gaps": "List the questions that the collection does not answer.",
        "serve": "Show the results in a browser: figures, turns, claims with their evidence, labels.",
        "label": "Say of turns whether they are good; the most useful come first.",
        "labels": "Export labels from a results file, or import them.",
        "calibrate": "Compare each judge with people's labels, and write down what its scores mean.",
        "alarms": "Show the alarms of `steelyard.toml`, where each stands, and what was told.",
        "dashboards": "Write a Grafana dashboard and Prometheus' recording and alert rules.",
        "prune": "Delete the oldest results, and give their space back.",
    },
}
"""The commands by the folder that holds them, in the order of the help page, each in a line."""
_HEADINGS = {
    "scoring": "Score and test",
    "recording": "Record and score applications",
    "results": "Look at results",
}
# What shells and typer itself use for wrong usage, and for a program that Ctrl-C ended.
_USAGE = 2
_INTERRUPTED = 130
_MARKUP: Final = "markdown"


def main() -> None:
    """The `steelyard` command.

    Exit status: 0 fine, 1 finished with findings (bad input lines, a missed `--fail-under`), 2 wrong usage.
    """
    with _shown("stdout"), _shown("stderr"):
        _run()


def _run() -> None:
    try:
        build()()
    except SteelyardError as error:
        _complain(str(error))
        sys.exit(_USAGE)
    except OSError as error:
        _complain(f"{error.strerror or error}{f': {error.filename}' if error.filename else ''}")
        sys.exit(_USAGE)
    except KeyboardInterrupt:
        _complain("interrupted")
        sys.exit(_INTERRUPTED)


@contextmanager
def _shown(name: str) -> Iterator[None]:
    """Have a standard stream write through `ShownStream`."""
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
    """Imports the command that is called, and no other."""

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        """The command that was typed; click's own list only knows what the help page says of it."""
        name, _, rest = super().resolve_command(ctx, args)
        return name, _loaded(str(name)), rest


def build() -> typer.Typer:
    """The application with every command that is there."""
    app = typer.Typer(
        name="steelyard",
        cls=_Commands,
        help="Score RAG answers: in a file, in a running application, or in the demo.",
        epilog="Try `steelyard demo`; it needs no key and no network.",
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
    group = next(group for group, names in _COMMANDS.items() if name in names)
    module = import_module(f"steelyard.cli.commands.{group}._{name}")
    app = typer.Typer(rich_markup_mode=_MARKUP)
    # With this, one command too is a group.
    app.callback()(_root)
    if commands := getattr(module, "app", None):
        app.add_typer(commands, name=name)
    else:
        app.command(name, context_settings=getattr(module, "SETTINGS", None))(getattr(module, name))
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
