"""Writes docs/reference/api.md, the list of public names, and docs/reference/python/, their docstrings.

python scripts/api.py
"""

from __future__ import annotations

import importlib
import inspect
from pathlib import Path
from types import NoneType
from typing import get_args

HEAD = """# Public names

What you may build upon. A name on this page changes or goes only with a warning for one minor version and a
line in the changelog ([upgrading](../moving/upgrading.md)). What is not here is the project's own, even if
you can import it, and may change with any release. `python scripts/api.py` writes this page.
"""

PACKAGES = [
    "steelyard",
    "steelyard.metrics",
    "steelyard.record",
    "steelyard.scores",
    "steelyard.judge",
    "steelyard.judge.chat",
    "steelyard.judge.middleware",
    "steelyard.questions",
    "steelyard.diagnosis",
    "steelyard.probing",
    "steelyard.online",
    "steelyard.sinks",
    "steelyard.report",
    "steelyard.view",
    "steelyard.alarms",
    "steelyard.stats",
    "steelyard.calibration",
    "steelyard.golden",
    "steelyard.golden.making",
    "steelyard.golden.mining",
    "steelyard.pytest_plugin",
    "steelyard.backfill",
    "steelyard.collect",
    "steelyard.cli.demo",
    "steelyard.errors",
    "steelyard.testing",
    "steelyard_langchain",
    "steelyard_llamaindex",
    "steelyard_opentelemetry",
]
"""What is public, in the order of the page; of each, what its `__all__` lists."""

PUBLIC: dict[str, list[str]] = {
    package: sorted(importlib.import_module(package).__all__, key=str.lower) for package in PACKAGES
}


def described(package: str, name: str) -> str:
    """The first sentence of a name's docstring; of a type, what it may be."""
    value = getattr(importlib.import_module(package), name)
    if get_args(value):
        return "One of " + ", ".join(f"`{choice}`" for choice in choices(value)) + "."
    return " ".join((inspect.getdoc(value) or "").split("\n\n")[0].split()).replace("|", "\\|")


def choices(value: object) -> list[str]:
    """What a union of types or of texts may be."""
    if value is NoneType:
        return ["None"]
    if isinstance(value, type):
        return [value.__name__]
    return [one for part in get_args(value) for one in choices(part)] or [repr(value)]


def page() -> str:
    """The whole list."""
    rows = [
        f"| `{package}` | "
        + ", ".join(f"[`{name}`]({file_of(package)}#{package}.{name})" for name in names)
        + " |"
        for package, names in PUBLIC.items()
    ]
    return "\n".join([HEAD, "| package | names |", "|---|---|", *rows]) + "\n"


def file_of(package: str) -> str:
    """Where a package's names are shown whole, seen from the list."""
    return f"python/{package.removeprefix('steelyard.').replace('.', '-')}.md"


def pages() -> dict[str, str]:
    """What each file under docs/reference holds; the site puts docstrings where a line begins with `:::`."""
    shown = {
        file_of(package): f"# `{package}`\n\n" + "\n\n".join(f"::: {package}.{name}" for name in names) + "\n"
        for package, names in PUBLIC.items()
    }
    return {"api.md": page(), **shown}


if __name__ == "__main__":
    for file, text in pages().items():
        (Path("docs/reference") / file).write_text(text, encoding="utf-8")
