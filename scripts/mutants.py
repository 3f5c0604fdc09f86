"""Break promises on purpose, one at a time, and see whether a test notices.

`tests/mutants/` lists the promises: each entry names a file, a piece of it that occurs exactly once, what
to put in its place, and the tests that should fail then. An entry with `survives` argues why no test can
tell. A test that fails on the broken code must pass on the unbroken code, or nothing is proven (`unsound`).

    python scripts/mutants.py [--only WORD] [--jobs 2]

Exit status 1 if a mutant survives that should not, if an entry no longer fits the code, or if its tests fail
without it.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from typing import Literal

ROOT = Path(__file__).resolve().parent.parent
COPIED = ("src", "integrations", "tests", "examples", "docs", "benchmarks", "conftest.py", "pyproject.toml")
SECONDS = 600.0

Outcome = Literal["killed", "survived", "argued", "stale", "unsound"]


@dataclass(frozen=True, kw_only=True)
class Mutant:
    """One promise, broken."""

    promise: str
    """What is promised, in words."""
    file: str
    """Where it is kept."""
    find: str
    """The text that keeps it; it must occur exactly once."""
    replace: str
    """What stands there instead."""
    tests: list[str]
    """Arguments for pytest: at least one of these tests should fail."""
    survives: str = ""
    """Why no test can tell, where none can."""


def load(folder: Path) -> list[Mutant]:
    """The mutants that the files of a folder list, one file for each room."""
    texts = [path.read_text(encoding="utf-8") for path in sorted(folder.glob("*.toml"))]
    return [Mutant(**entry) for text in texts for entry in tomllib.loads(text)["mutant"]]


def main() -> int:
    """Run them all and say which survive."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="only mutants whose promise or file holds this")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="how many at a time")
    options = parser.parse_args()
    mutants = [m for m in load(ROOT / "tests" / "mutants") if options.only in m.promise + m.file]
    with copies(options.jobs) as free, ThreadPoolExecutor(options.jobs) as pool:
        outcomes = list(pool.map(lambda mutant: tried(mutant, free), mutants))
    counts = {outcome: outcomes.count(outcome) for outcome in sorted(set(outcomes))}
    print(f"{len(mutants)} promises broken: " + ", ".join(f"{n} {name}" for name, n in counts.items()))
    return int(bool({"survived", "stale", "unsound"} & set(outcomes)))


@contextmanager
def copies(number: int) -> Iterator[SimpleQueue[Path]]:
    """So many copies of the project to break things in."""
    free: SimpleQueue[Path] = SimpleQueue()
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        for index in range(number):
            place = Path(folder) / str(index)
            place.mkdir()
            for name in COPIED:
                source = ROOT / name
                if source.is_dir():
                    shutil.copytree(source, place / name, ignore=shutil.ignore_patterns("__pycache__"))
                else:
                    shutil.copy(source, place / name)
            free.put(place)
        yield free


def tried(mutant: Mutant, free: SimpleQueue[Path]) -> Outcome:
    """Break one promise in a copy, run its tests, mend the copy."""
    place = free.get()
    try:
        outcome = run(mutant, place)
    finally:
        free.put(place)
    print(f"{outcome:9}{mutant.promise}", flush=True)
    return outcome


def run(mutant: Mutant, place: Path) -> Outcome:
    """What becomes of a mutant."""
    path = place / mutant.file
    whole = path.read_text(encoding="utf-8") if path.exists() else ""
    if whole.count(mutant.find) != 1:
        return "stale"
    path.write_text(whole.replace(mutant.find, mutant.replace), encoding="utf-8")
    try:
        noticed = failure(mutant.tests, place)
    finally:
        path.write_text(whole, encoding="utf-8")
    if not noticed:
        return "argued" if mutant.survives else "survived"
    if problem := unbroken(tuple(mutant.tests), place):
        print(problem, flush=True)
        return "unsound"
    return "killed"


_UNBROKEN: dict[tuple[str, ...], str] = {}


def unbroken(tests: tuple[str, ...], place: Path) -> str:
    """What `failure` says of the code as it is, asked once for each set of tests."""
    if tests not in _UNBROKEN:
        _UNBROKEN[tests] = failure(list(tests), place)
    return _UNBROKEN[tests]


def failure(tests: list[str], place: Path) -> str:
    """How pytest ends where it fails; a run that takes too long has noticed as well."""
    sources = [place / "src", *sorted(place.glob("integrations/*/src"))]
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(map(str, sources)),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-p", "no:xdist", *tests]
    try:
        ran = subprocess.run(
            command, cwd=place, env=environment, capture_output=True, timeout=SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        return f"pytest took longer than {SECONDS:g} s"
    if ran.returncode not in (0, 1):
        raise RuntimeError(f"pytest could not run {tests}: {ran.stdout.decode()[-2000:]}")
    return ran.stdout.decode()[-3000:] if ran.returncode else ""


if __name__ == "__main__":
    sys.exit(main())
