"""`steelyard`: finds its commands, and turns errors that the user can mend into one line.

A command is a file `commands/_<name>.py` with either a function `<name>` (one command) or a
`typer.Typer` called `app` (a group of them). Importing such a file must cost next to nothing: whatever is
heavy is imported inside the function, so that `steelyard --help` stays fast however many commands there are.
"""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.metadata import version
from importlib.util import find_spec
from io import TextIOWrapper

import typer

from steelyard.cli._words import printable
from steelyard.errors import SteelyardError

_COMMANDS = (
    *("demo", "score", "records", "report", "serve", "label", "labels", "calibrate"),
    *("alarms", "dashboards", "golden", "test", "compare", "collect", "backfill"),
    *("run", "doctor", "judge", "config", "worker", "prune"),
)
_USAGE = 2
_INTERRUPTED = 130


def main() -> None:
    """The `steelyard` command.

    Exit status: 0 fine, 1 finished with findings (bad input lines, a missed `--fail-under`), 2 wrong usage.
    """
    for stream in (sys.stdout, sys.stderr):
        # A terminal or pipe that cannot show a character shows a question mark; that is no reason to stop.
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")
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


def build() -> typer.Typer:
    """The application with every command that is there."""
    app = typer.Typer(
        name="steelyard",
        help="Weigh RAG answers: score them in a file, in a running application, or in the demo.",
        epilog="Try `steelyard demo`; it needs no key and no network.",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        rich_markup_mode="markdown",
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_root)
    for name in _COMMANDS:
        path = f"steelyard.cli.commands._{name}"
        if find_spec(path) is None:
            continue
        module = import_module(path)
        if isinstance(group := getattr(module, "app", None), typer.Typer):
            app.add_typer(group, name=name)
        else:
            app.command(name, context_settings=getattr(module, "SETTINGS", None))(getattr(module, name))
    return app


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"steelyard {version('steelyard')}")
        raise typer.Exit


def _root(
    _: bool = typer.Option(
        False, "--version", "-V", callback=_show_version, is_eager=True, help="Show the version and leave."
    ),
) -> None:
    pass


def _complain(message: str) -> None:
    typer.echo(f"steelyard: {printable(message)}", err=True)
