"""`steelyard doctor --live PROGRAM`: a program run with every recorder attached, and nothing judged."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import typer

from steelyard.cli._program import Program
from steelyard.cli.live._looker import Looker, in_place_of_monitors
from steelyard.errors import ConfigurationError
from steelyard.recording import attach_recorders

_PYTHON = re.compile(r"python[\d.]{0,8}")


def look_at_program(words: Sequence[str], *, turns: int) -> int:
    """Run a program in this process and print what each of its first turns was taken to be.

    Args:
        words: The program and its arguments, with or without `python` and `-m` before it.
        turns: How many turns to show; the program goes on afterwards.

    Returns:
        The exit status: 1 if no turn was seen.

    Raises:
        ConfigurationError: If there is no such program, or no framework is installed.
        SystemExit: The program's own.
    """
    program = _program(words)
    looker = Looker(turns)
    with in_place_of_monitors(looker):
        names = attach_recorders(looker)
        if not names:
            raise ConfigurationError(
                "there is nothing to record with; run: pip install 'steelyard[langchain]' (or [llamaindex])"
            )
        typer.echo(f"watching {', '.join(names)}; nothing is judged, stored or sent", err=True)
        shown = 0
        try:
            program.become()
        finally:
            shown = looker.close()
            if not shown:
                typer.echo("no RAG turn was seen in this process; turns of other processes are not")
    return 0 if shown else 1


def _program(words: Sequence[str]) -> Program:
    rest = list(words)
    if _PYTHON.fullmatch(Path(rest[0]).name):
        rest = rest[1:]
    is_module = rest[:1] == ["-m"]
    rest = rest[1:] if is_module else rest
    if not rest:
        raise ConfigurationError("name a program: steelyard doctor --live -- app.py")
    if not is_module and Path(rest[0]).suffix in (".json", ".jsonl"):
        raise ConfigurationError(f"{rest[0]!r} is not a program; to read traces leave out --live")
    program = Program(name=rest[0], arguments=rest[1:], is_module=is_module)
    program.find()
    return program
