"""How commands print lines; what is drawn goes through `_terminal`."""

from __future__ import annotations

from typing import Any

import typer

from steelyard._internal.text import escaped


def counted(number: int, noun: str, plural: str | None = None) -> str:
    """A number and its noun.

    >>> counted(1, "record"), counted(1200, "record"), counted(2, "reply", "replies")
    ('1 record', '1,200 records', '2 replies')
    """
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def amount(value: Any) -> str:
    """A score with two decimals, or a dash where there is none."""
    return "-" if value is None else f"{value:.2f}"


def say(text: str = "", *, err: bool = False, end: str = "\n") -> None:
    """Print a text: whatever came into it from outside, no character of it acts as code."""
    typer.echo(escaped(text) + end, err=err, nl=False)
