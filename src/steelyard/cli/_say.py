"""How commands print lines; what is drawn goes through `_terminal`."""

from __future__ import annotations

from typing import Any

import typer

from steelyard._internal.text import escaped


def amount(value: Any) -> str:
    """A score with two decimals, or a dash where there is none."""
    return "-" if value is None else f"{value:.2f}"


def say(text: str = "", *, err: bool = False, end: str = "\n") -> None:
    """Print a text: whatever came into it from outside, no character of it acts as code."""
    typer.echo(escaped(text) + end, err=err, nl=False)
