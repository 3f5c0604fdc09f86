"""What no file may hold: text without an encoding, a lock that a forked child would find held."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
TEXT = ("read_text", "write_text")


def test_every_text_file_is_opened_with_an_encoding() -> None:
    files = [*ROOT.glob("src/**/*.py"), *ROOT.glob("integrations/*/src/**/*.py"), *ROOT.glob("scripts/*.py")]
    assert len(files) > 250
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


PLAIN = re.compile(r"= threading\.(?:R?Lock|Condition)\(")
MADE_ANEW = {
    "_internal/forks.py": "what ForkLock is made of",
    "_internal/lifecycle.py": "made anew in a child",
    "online/monitor.py": "made anew in a child",
    "online/_run.py": "a child has a run of its own",
    "online/_canaries.py": "a child has a run of its own",
    "online/_sink_writer.py": "a child has a run of its own",
    "online/queue/_inbox.py": "a child has a run of its own",
    "steelyard_opentelemetry/_recorder.py": "made anew in a child",
    "steelyard_opentelemetry/_holding.py": "made anew in a child",
}
PROGRAMS = ("cli", "collect", "view")
"""Programs of our own, which do not fork while they serve."""


def test_no_lock_stays_held_in_a_forked_child() -> None:
    rooms = ROOT / "src" / "steelyard"
    files = [path for path in rooms.rglob("*.py") if path.relative_to(rooms).parts[0] not in PROGRAMS]
    files += (path for path in ROOT.glob("integrations/*/src/**/*.py"))
    found = {path.as_posix() for path in files if PLAIN.search(path.read_text(encoding="utf-8"))}
    assert len(files) > 250
    unknown = {path for path in found if not path.endswith(tuple(MADE_ANEW))}
    assert not unknown, "take steelyard._internal.forks.ForkLock, or make the lock anew in a child"
