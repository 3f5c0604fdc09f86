"""Files are read and written alike on every machine, whatever its locale says."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
TEXT = ("read_text", "write_text")


def test_every_text_file_is_opened_with_an_encoding() -> None:
    files = [*ROOT.glob("src/**/*.py"), *ROOT.glob("integrations/*/src/**/*.py"), *ROOT.glob("scripts/*.py")]
    assert len(files) > 300
    assert not [where for file in files for where in by_locale(file)]


def by_locale(file: Path) -> Iterator[str]:
    """Where a file opens text without saying how it is encoded."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if not isinstance(node, ast.Call) or any(
            keyword.arg in ("encoding", None) for keyword in node.keywords
        ):
            continue
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        given = (*node.args, *(keyword.value for keyword in node.keywords))
        constants = [one.value for one in given if isinstance(one, ast.Constant)]
        modes = [one for one in constants if isinstance(one, str)]
        is_bytes = any("b" in mode and set(mode) <= set("rwaxb+") for mode in modes)
        # `os.open`, and those of databases and browsers, open no text.
        opens = isinstance(node.func, ast.Name) and name == "open"
        if name in TEXT or (opens and not is_bytes):
            yield f"{file.relative_to(ROOT)}:{node.lineno}"
