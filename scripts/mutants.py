"""Break promises on purpose, one at a time, and see whether a test notices.

`tests/mutants/` lists the promises: each entry names a file, a piece of it that occurs exactly once, what
to put in its place, and the tests that should fail then. An entry with `survives` argues why no test can
tell. A test that fails on the broken code must pass on the unbroken code, or nothing is proven (`unsound`).
Where every test of an entry is skipped, for want of a system package, the promise is `untried`.

    python scripts/mutants.py [--only WORD ...] [--jobs 2]

Each line tells the outcome, the seconds it took, the promise, and what noticed that it was broken. The exit
status is 1 if a mutant survives that should not, if an entry no longer fits the code or its tests cannot be
run, or if its tests fail without it.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import re
import shutil
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from typing import Literal

ROOT = Path(__file__).resolve().parent.parent
COPIED = (
    "src",
    "scripts",
    "integrations",
    "tests",
    "examples",
    "docs",
    "benchmarks",
    "conftest.py",
    "pyproject.toml",
)
SECONDS = 600.0
TOGETHER = 20

_SERVER = multiprocessing.get_context("forkserver")
"""Imports what takes long once, and is forked for each run; the project itself is imported after the fork."""
_SERVER.set_forkserver_preload(
    [
        "pytest",
        "hypothesis",
        "numpy",
        "pydantic",
        "httpx",
        "jinja2",
        "langchain_core.runnables",
        "openai",
        "opentelemetry.sdk.metrics",
        "opentelemetry.sdk.trace",
        "psycopg",
        "rich.console",
        "starlette.testclient",
    ]
)

_PLUGINS = (
    "cacheprovider",
    "xdist",
    "xdist.looponfail",
    "langsmith_plugin",
    "inline_snapshot",
    "platformdirs",
)
"""Those of pytest and other libraries that take seconds to import, or write; no test needs them."""

Outcome = Literal["killed", "survived", "argued", "untried", "stale", "unsound"]


class CannotRun(Exception):
    """Pytest ends neither well nor with a failed test; the message is what it says."""


class AllSkipped(Exception):
    """No test could be tried on this machine."""


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
    parser.add_argument("--only", nargs="+", default=[""], help="only promises or files that hold one")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="how many at a time")
    options = parser.parse_args()
    known = load(ROOT / "tests" / "mutants")
    mutants = [one for one in known if any(word in one.promise + one.file for word in options.only)]
    with copies(options.jobs) as free, ThreadPoolExecutor(options.jobs) as pool:
        outcomes: list[Outcome] = list(pool.map(lambda mutant: tried(mutant, free), mutants))
        killed = [mutant for mutant, outcome in zip(mutants, outcomes, strict=True) if outcome == "killed"]
        unsound = pool.map(lambda some: unproven(some, free), batched(killed, TOGETHER))
        for mutant in (one for some in unsound for one in some):
            outcomes[mutants.index(mutant)] = "unsound"
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
                    # With what is compiled already: by its time and size, Python knows what has changed.
                    shutil.copytree(source, place / name)
                else:
                    shutil.copy(source, place / name)
            free.put(place)
        yield free


def tried(mutant: Mutant, free: SimpleQueue[Path]) -> Outcome:
    """Break one promise in a copy, run its tests, mend the copy."""
    place = free.get()
    began = time.monotonic()
    try:
        outcome, why = run(mutant, place)
    except AllSkipped:
        outcome, why = "untried", ""
    except CannotRun as error:
        outcome, why = "stale", str(error)
    finally:
        free.put(place)
    print(f"{outcome:9}{time.monotonic() - began:5.0f} s  {mutant.promise}{why and f'  [{why}]'}", flush=True)
    return outcome


def run(mutant: Mutant, place: Path) -> tuple[Outcome, str]:
    """What becomes of a mutant, and why."""
    path = place / mutant.file
    whole = path.read_text(encoding="utf-8") if path.exists() else ""
    if whole.count(mutant.find) != 1:
        return "stale", f"{mutant.file} does not hold exactly once: {mutant.find!r}"
    path.write_text(whole.replace(mutant.find, mutant.replace), encoding="utf-8")
    try:
        noticed = failure(mutant.tests, place)
    finally:
        path.write_text(whole, encoding="utf-8")
    if not noticed:
        return ("argued", mutant.survives) if mutant.survives else ("survived", "")
    return "killed", noticed


def unproven(killed: Sequence[Mutant], free: SimpleQueue[Path]) -> list[Mutant]:
    """Those whose tests fail on the code as it is; asked of all together, and of each where that fails."""
    place = free.get()
    try:
        if not failure(sorted({test for mutant in killed for test in mutant.tests}), place):
            return []
        found = {mutant.promise: failure(mutant.tests, place) for mutant in killed}
    finally:
        free.put(place)
    for promise in filter(found.get, found):
        print(f"unsound         {promise}  [{found[promise]}]", flush=True)
    return [mutant for mutant in killed if found[mutant.promise]]


def batched(mutants: Sequence[Mutant], size: int) -> Iterator[Sequence[Mutant]]:
    """So many at a time."""
    return (mutants[start : start + size] for start in range(0, len(mutants), size))


def failure(tests: list[str], place: Path) -> str:
    """The test that fails and its error, or nothing; a run that takes too long has noticed as well.

    Raises:
        AllSkipped: no test was tried.
        CannotRun: a test does not exist or cannot be imported.
    """
    said = place / "pytest.txt"
    running = _SERVER.Process(target=_pytest, args=(tests, place, said))
    running.start()
    running.join(SECONDS)
    if running.exitcode is None:
        running.kill()
        running.join()
        return f"pytest took longer than {SECONDS:g} s"
    words = said.read_text(encoding="utf-8", errors="replace")
    if running.exitcode not in (0, 1):
        raise CannotRun(f"pytest could not run {tests}: {words[-2000:]}")
    if running.exitcode == 0 and not re.search(r"\d passed", words):
        raise AllSkipped
    summary = re.findall(r"^(?:FAILED|ERROR) \S*?::(.*)", words, re.MULTILINE) or [words[-2000:]]
    return summary[0][:160] if running.exitcode else ""


def _pytest(tests: list[str], place: Path, said: Path) -> None:
    """Run tests in a copy, in a process that has imported nothing of the project yet."""
    os.chdir(place)
    with said.open("wb") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    sources = [str(place / "src"), *map(str, sorted(place.glob("integrations/*/src")))]
    os.environ |= {"PYTHONPATH": os.pathsep.join(sources), "PYTHONDONTWRITEBYTECODE": "1", "COLUMNS": "250"}
    sys.dont_write_bytecode = True
    sys.path[:0] = sources
    import pytest

    options = ["-q", "-x"]
    for plugin in _PLUGINS:
        options += ["-p", f"no:{plugin}"]
    # Plugins that were imported before the fork are not rewritten, and need not be.
    options += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]
    sys.exit(pytest.main([*options, *tests]))


if __name__ == "__main__":
    sys.exit(main())
