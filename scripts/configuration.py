"""Writes the table of options into docs/reference/configuration.md, from the one declaration of them.

python scripts/configuration.py
"""

from __future__ import annotations

import ast
import inspect
import json
from dataclasses import fields
from itertools import pairwise
from pathlib import Path

from steelyard.online.config._plain import PlainOptions
from steelyard.online.config._settings import Settings

PAGE = Path("docs/reference/configuration.md")
HEAD = "| option | default | meaning |\n|---|---|---|\n"


def declared() -> dict[str, str]:
    """The docstrings under the options, by name."""
    found: dict[str, str] = {}
    for kind in (PlainOptions, Settings):
        [body] = [
            node.body for node in ast.parse(inspect.getsource(kind)).body if isinstance(node, ast.ClassDef)
        ]
        for option, doc in pairwise(body):
            if isinstance(option, ast.AnnAssign) and isinstance(option.target, ast.Name):
                assert isinstance(doc, ast.Expr) and isinstance(doc.value, ast.Constant), ast.unparse(option)
                found[option.target.id] = " ".join(str(doc.value.value).split())
    return found


def table() -> str:
    """A row for each option that can be written down."""
    meanings = declared()
    return HEAD + "".join(
        f"| `{field.name}` | `{json.dumps(getattr(Settings(), field.name))}` | {meanings[field.name]} |\n"
        for field in fields(Settings)
    )


if __name__ == "__main__":
    page = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(page.partition(HEAD)[0] + table(), encoding="utf-8")
