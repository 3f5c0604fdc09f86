"""The folder tree is the architecture: a room imports only from rooms listed before it."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CORE = ROOT / "src" / "steelyard"
ROOMS = [
    "errors",
    "_internal",
    "record",
    "text",
    "recording",
    "scores",
    "questions",
    "judge",
    "metrics",
    "stats",
    "diagnosis",
    "engine",
    "probing",
    "calibration",
    "results",
    "sinks",
    "alarms",
    "online",
    "report",
    "dashboards",
    "golden",
    "backfill",
    "collect",
    "view",
]
LAST = ["testing", "pytest_plugin", "cli"]
INTEGRATIONS = {"steelyard_langchain", "steelyard_llamaindex", "steelyard_opentelemetry"}
SHARED = "_internal"


@cache
def imports(path: Path) -> list[str]:
    """Dotted names that a file imports, wherever in it."""
    return [name for node in ast.walk(ast.parse(path.read_text())) for name in imports_of(node)]


def imports_of(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom) and node.module:
        yield node.module


def room(path: Path) -> str:
    return path.relative_to(CORE).parts[0].removesuffix(".py")


def module(path: Path) -> str:
    return ".".join(("steelyard", *path.relative_to(CORE).with_suffix("").parts)).removesuffix(".__init__")


def runtime_imports(path: Path, known: Mapping[str, Path]) -> Iterator[str]:
    """The files of `known` that a file needs at its own import; what is only for types is left out."""
    for node in ast.parse(path.read_text()).body:
        for name in imports_of(node):
            if name in known:
                yield name


FROM_INTEGRATIONS = sorted((ROOT / "integrations").glob("*/src/**/*.py"))
NO_CIRCLE = [
    *("questions", "judge", "metrics", "scores", "engine", "probing", "text", "cli", "online", "sinks"),
    "results",
    *("backfill", "collect"),
    *("golden", "report", "view", "diagnosis"),
]
FILES = [path for path in sorted(CORE.rglob("*.py")) if path.parent != CORE or path.stem != "__init__"]


def test_each_room_has_its_place() -> None:
    assert {room(path) for path in FILES} == {*ROOMS, *LAST}


@pytest.mark.parametrize("here", [*ROOMS, *LAST])
def test_a_room_imports_only_from_rooms_before_it(here: str) -> None:
    order = [*ROOMS, *LAST]
    for path, name in imports_in(here):
        parts = name.split(".")
        if parts[0] == "steelyard" and len(parts) > 1 and parts[1] != here:
            assert order.index(parts[1]) < order.index(here), f"{path} imports {name}"
        if here != "cli":
            assert parts[0] not in INTEGRATIONS, f"{path} imports {name}"


@pytest.mark.parametrize("here", [*ROOMS, *LAST])
def test_a_room_does_not_reach_into_another_rooms_private_files(here: str) -> None:
    for path, name in imports_in(here):
        parts = name.split(".")
        if parts[0] == "steelyard" and len(parts) > 2 and parts[1] != here:
            private = [part for part in parts[2:] if part.startswith("_")]
            assert not private, f"{path} imports {name}"


def imports_in(here: str) -> list[tuple[Path, str]]:
    """What the files of a room import."""
    return [(path, name) for path in FILES if room(path) == here for name in imports(path)]


def test_log_lines_are_written_where_a_handler_that_raises_harms_nothing() -> None:
    for path in [*FILES, *FROM_INTEGRATIONS]:
        if path.stem != "logs":
            assert 'getLogger("steelyard' not in path.read_text(), f"{path} needs SafeLogger"


@pytest.mark.parametrize(
    "path", FROM_INTEGRATIONS, ids=lambda path: path.relative_to(ROOT / "integrations").as_posix()
)
def test_an_integration_imports_only_what_is_public(path: Path) -> None:
    here = path.relative_to(ROOT / "integrations").parts[2]
    for name in imports(path):
        root, *parts = name.split(".")
        if root == "steelyard" and parts[:1] != [SHARED]:
            assert not [part for part in parts if part.startswith("_")], f"{here} imports {name}"
        if root in INTEGRATIONS - {here}:
            assert not [part for part in parts if part.startswith("_")], f"{here} imports {name}"


@pytest.mark.parametrize("name", NO_CIRCLE)
def test_no_circle_inside_a_room(name: str) -> None:
    files = {module(path): path for path in CORE.rglob("*.py") if room(path) == name}
    arrows = {
        here: {found for found in runtime_imports(path, files) if found != here}
        for here, path in files.items()
    }
    while leaves := {here for here, found in arrows.items() if not found}:
        arrows = {here: found - leaves for here, found in arrows.items() if here not in leaves}
    assert not arrows, f"circle among {sorted(arrows)}"


BRANCHES = (
    *(ast.If, ast.IfExp, ast.For, ast.AsyncFor, ast.While, ast.ExceptHandler, ast.match_case),
    *(ast.BoolOp, ast.comprehension),
)


@pytest.mark.parametrize("folder", ["src", "integrations"])
def test_no_function_has_more_than_twelve_branches(folder: str) -> None:
    """Stricter than ruff, which counts neither `and` and `or` nor comprehensions."""
    worst = [
        f"{path.relative_to(ROOT)}:{node.lineno} {node.name} has {count}"
        for path in (ROOT / folder).rglob("*.py")
        if "tests" not in path.parts
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (count := 1 + sum(isinstance(part, BRANCHES) for part in ast.walk(node))) > 12
    ]
    assert worst == []


def test_importing_the_package_brings_nothing_heavy() -> None:
    check = (
        "import sys; import steelyard, steelyard.record, steelyard.scores; "
        "heavy = {'openai', 'aiohttp', 'numpy', 'tokenizers', 'rich', 'langchain_core', 'llama_index'}; "
        "sys.exit(', '.join(heavy & set(sys.modules)) or None)"
    )
    subprocess.run([sys.executable, "-c", check], check=True)


def test_using_the_core_brings_no_framework() -> None:
    check = (
        "import sys; import steelyard; steelyard.Monitor; steelyard.evaluate; import steelyard.metrics; "
        "heavy = {'openai', 'aiohttp', 'langchain_core', 'llama_index', 'opentelemetry.sdk', 'pandas'}; "
        "sys.exit(', '.join(heavy & set(sys.modules)) or None)"
    )
    subprocess.run([sys.executable, "-c", check], check=True)


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


PLAIN = re.compile(r"= (?:threading\.)?(?:R?Lock|Condition)\(")
MADE_ANEW = {
    "_internal/forks.py": "what ForkLock is made of",
    "_internal/lifecycle.py": "made anew in a child",
    "_internal/native.py": "tells of one thread, which no child has",
    "_internal/threads.py": "belongs to one call, which no child waits for",
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


def test_the_list_of_long_tests_names_tests_that_are_there() -> None:
    names = (ROOT / "tests/long.txt").read_text(encoding="utf-8").split()
    assert len(names) > 100 and names == sorted(names)
    gone = []
    for name in names:
        file, *_, test = name.split("::")
        if not (ROOT / file).is_file() or f"def {test}(" not in (ROOT / file).read_text(encoding="utf-8"):
            gone.append(name)
    assert not gone, "python scripts/long.py writes it anew"
