"""Writes the table of options into docs/reference/configuration.md, from the one declaration of them.

python scripts/configuration.py
"""

from __future__ import annotations

import json
from dataclasses import fields
from pathlib import Path

from steelyard.online._settings import Settings, meanings

PAGE = Path("docs/reference/configuration.md")
HEAD = "| option | default | meaning |\n|---|---|---|\n"


def table() -> str:
    """A row for each option that can be written down."""
    told = meanings()
    return HEAD + "".join(
        f"| `{field.name}` | `{json.dumps(getattr(Settings(), field.name))}` | {told[field.name]} |\n"
        for field in fields(Settings)
    )


if __name__ == "__main__":
    page = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(page.partition(HEAD)[0] + table(), encoding="utf-8")
