"""The promises that `scripts/mutants.py` breaks: each entry fits the code, and its tests exist.

A change of a line that keeps a promise shows here at once, and not only where all of them are broken.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent.parent
PROMISES: list[dict[str, Any]] = [
    entry
    for path in sorted((ROOT / "tests" / "mutants").glob("*.toml"))
    for entry in tomllib.loads(path.read_text(encoding="utf-8"))["mutant"]
]


def misfits(entry: dict[str, Any]) -> list[str]:
    """What is wrong with an entry."""
    path = ROOT / entry["file"]
    places = path.read_text(encoding="utf-8").count(entry["find"]) if path.exists() else 0
    wrong = [] if places == 1 else [f"{places} places in {entry['file']} hold {entry['find']!r}"]
    return wrong + [f"there is no {test}" for test in entry["tests"] if not exists(test)]


def exists(test: str) -> bool:
    """Whether there is such a test; a parameter in brackets is not looked at."""
    file, _, name = test.partition("::")
    path = ROOT / file
    function = rf"^ *(?:async )?def {name.partition('[')[0].rpartition('::')[2]}\("
    return path.exists() and (not name or bool(re.search(function, path.read_text(encoding="utf-8"), re.M)))


def test_every_promise_of_the_list_fits_the_code_and_has_its_tests() -> None:
    wrong = {entry["promise"]: found for entry in PROMISES if (found := misfits(entry))}
    assert wrong == {}
    assert len(PROMISES) >= 160


def test_an_entry_that_fits_no_longer_is_told() -> None:
    entry = PROMISES[0] | {"find": "no such line", "tests": ["tests/internal/test_mutants.py::test_none"]}
    assert [words.split()[0] for words in misfits(entry)] == ["0", "there"]


def test_every_promise_is_said_once() -> None:
    said = [entry["promise"] for entry in PROMISES]
    assert sorted(said) == sorted(set(said))
