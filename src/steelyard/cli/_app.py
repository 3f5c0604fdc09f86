"""`steelyard`: finds its commands, and turns errors that the user can mend into one line.

A command is a file `commands/<group>/_<name>.py` with either a function `<name>` (one command) or a
`typer.Typer` called `app` (a group of them). Importing such a file must cost next to nothing: whatever is
heavy is imported inside the function, so that `steelyard --help` stays fast however many commands there are.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from importlib.metadata import version
from io import TextIOWrapper

import typer

from steelyard._internal.text import ShownStream, printable
from steelyard.errors import SteelyardError

_COMMANDS = {
    "scoring": ("demo", "score", "judge", "golden", "test", "compare"),
    "recording": ("run", "collect", "worker", "queue", "backfill", "records", "doctor", "config"),
    "results": ("report", "serve", "label", "labels", "calibrate", "alarms", "dashboards", "prune"),
}
"""The commands by the folder that holds them, in the order of the help page."""
_HEADINGS = {
    "scoring": "Score and test",
    "recording": "Record and score applications",
    "results": "Look at results",
}
# What shells and typer itself use for wrong usage, and for a program that Ctrl-C ended.
_USAGE = 2
_INTERRUPTED = 130


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


def build() -> typer.Typer:
    """The application with every command that is there."""
    app = typer.Typer(
        name="steelyard",
        help="Score RAG answers: in a file, in a running application, or in the demo.",
        epilog="Try `steelyard demo`; it needs no key and no network.",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        rich_markup_mode="markdown",
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_root)
    for group, names in _COMMANDS.items():
        for name in names:
            _add(app, group, name)
    return app


def _add(app: typer.Typer, group: str, name: str) -> None:
    module = import_module(f"steelyard.cli.commands.{group}._{name}")
    heading = _HEADINGS[group]
    if isinstance(commands := getattr(module, "app", None), typer.Typer):
        app.add_typer(commands, name=name, rich_help_panel=heading)
        return
    settings = getattr(module, "SETTINGS", None)
    app.command(name, context_settings=settings, rich_help_panel=heading)(getattr(module, name))


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"steelyard {version('steelyard')}")
        raise typer.Exit


def _root(
    _: bool = typer.Option(
        False, "--version", "-V", callback=_show_version, is_eager=True, help="Show the version and exit."
    ),
) -> None:
    pass


def _complain(message: str) -> None:
    typer.echo(f"steelyard: {printable(message)}", err=True)
