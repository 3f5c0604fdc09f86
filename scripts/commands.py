"""Writes docs/reference/command-line.md, every command with its options, from the application.

python scripts/commands.py
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from steelyard.cli._app import _COMMANDS, _HEADINGS, _loaded

PAGE = Path("docs/reference/command-line.md")
HEAD = """# Commands

Every command explains itself too: `steelyard score --help`. Exit status: 0 fine, 1 finished with findings, 2
wrong usage, 130 interrupted; a command that has others says so. How to score a file, and what it costs:
[from the command line](../how-to/command-line.md).
"""


def page() -> str:
    """The page, as it should be."""
    return "\n".join([HEAD, *(line for group in _COMMANDS for line in _group(group))])


def _group(group: str) -> Iterator[str]:
    yield f"## {_HEADINGS[group]}\n"
    yield "| command | |\n|---|---|"
    for name, what in _COMMANDS[group].items():
        yield f"| [`steelyard {name}`](#steelyard-{name}) | {what} |"
    yield ""
    for name in _COMMANDS[group]:
        command = _loaded(name)
        inner = getattr(command, "commands", {})
        if inner:
            yield f"### steelyard {name}\n\n{_help(command)}\n"
        for one, inside in (inner or {"": command}).items():
            yield from _command(f"steelyard {name} {one}".strip(), inside, depth=4 if inner else 3)


def _command(name: str, command: Any, *, depth: int) -> Iterator[str]:
    yield f"{'#' * depth} {name}\n\n{_help(command)}\n"
    rows = [_row(one) for one in command.params if not getattr(one, "hidden", False) and one.name != "help"]
    if rows:
        yield "\n".join(["| | default | |", "|---|---|---|", *rows, ""])


def _help(command: Any) -> str:
    return textwrap.dedent(command.help or "").strip()


def _row(one: Any) -> str:
    names = [*one.opts, *one.secondary_opts] if one.opts[0].startswith("-") else []
    shown = ", ".join(f"`{name}`" for name in names)
    if one.metavar or not names:
        shown = f"{shown} `{one.metavar or one.name.upper()}`".strip()
    default = getattr(one.default, "value", one.default)
    if default in (None, "", False, ()) or callable(default):
        default = "needed" if one.required else ""
    else:
        default = f"`{default}`"
    meaning = " ".join((one.help or "").split())
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in (shown, default, meaning)) + " |"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
