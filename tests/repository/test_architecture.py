"""The folder tree is the architecture: a room imports only from rooms listed before it."""

from __future__ import annotations

import ast
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
