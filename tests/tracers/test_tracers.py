"""Beside every vendor's tracer, a score goes on a span of its own run or on none, never on another's.

`bed.py` runs one tracer beside one framework; twenty tenants ask at once, and each name is in all that its
turn says. `pytest --slow tests/tracers` runs every arrangement of the tracers that are installed
(`pip install -e '.[tracers]'` brings the large ones); `make test-tracers` has an environment of its own.
"""

from __future__ import annotations

import importlib.util
import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import programs
from tracers.limits import LIMITS, limit_of

HERE = Path(__file__).parent
DOCS = Path(__file__).parents[2] / "docs" / "reference" / "results.md"
PACKAGES = {
    ("openinference", "langchain"): "openinference.instrumentation.langchain",
    ("openinference", "llamaindex"): "openinference.instrumentation.llama_index",
    ("openllmetry", "langchain"): "opentelemetry.instrumentation.langchain",
    ("openllmetry", "llamaindex"): "opentelemetry.instrumentation.llamaindex",
    ("genai", "langchain"): "opentelemetry.instrumentation.genai.langchain",
    ("genai", "llamaindex"): "opentelemetry.instrumentation.genai.llama_index",
    ("langsmith", "langchain"): "langsmith",
    ("langfuse", "langchain"): "langfuse",
    ("langfuse", "llamaindex"): "langfuse",
    ("logfire", "langchain"): "logfire",
    ("logfire", "llamaindex"): "logfire",
    ("mlflow", "langchain"): "mlflow",
    ("mlflow", "llamaindex"): "mlflow",
    ("ddtrace", "langchain"): "ddtrace",
    ("ddtrace", "llamaindex"): "ddtrace",
}
FRAMEWORKS = ("langchain", "langgraph", "llamaindex")
WAYS = ("handler", "attach", "processor")
ALL_MODES = ("sync", "threads", "async", "stream", "streams in turn", "async stream")
RIGHT = {"root", "part", "own"}
IMPORTS = "import langchain_core.runnables\nimport langgraph.graph\nimport llama_index.core\n"


def installed(tracer: str, framework: str) -> bool:
    try:
        return importlib.util.find_spec(PACKAGES[tracer, framework]) is not None
    except ModuleNotFoundError:
        return False


def cells(
    folder: Path, tracer: str, framework: str, ways: str, arounds: str, modes: tuple[str, ...]
) -> Iterator[dict[str, Any]]:
    """Run the bed, and give what it told of each arrangement."""
    kind = "langchain" if framework == "langgraph" else framework
    if not installed(tracer, kind):
        pytest.skip(f"{PACKAGES[tracer, kind]} is not installed: pip install -e '.[tracers]'")
    command = [str(HERE / "bed.py"), tracer, framework, ways, arounds, "+".join(modes)]
    done = programs.run(command, source=IMPORTS, cwd=folder, timeout=600)
    assert done.returncode == 0, done.stderr[-3000:]
    told = [json.loads(line) for line in done.stdout.splitlines() if line.startswith('{"tracer"')]
    expected = len(ways.split("+")) * 2 * len(arounds.split("+")) * len(modes)
    assert len(told) == expected
    yield from told


def check(cell: dict[str, Any]) -> str | None:
    """What is wrong with an arrangement, if anything is."""
    places = set(cell["places"])
    limit = limit_of(cell["tracer"], cell["framework"], cell["way"], cell["mode"])
    allowed = RIGHT if limit is None else RIGHT | {"none", "missing"}
    return None if places <= allowed and sum(cell["places"].values()) == 20 else json.dumps(cell)


FAST = [
    ("openinference", "langchain", "handler"),
    ("openllmetry", "langchain", "handler"),
    ("genai", "langchain", "attach"),
    ("openinference", "llamaindex", "attach"),
    ("openllmetry", "llamaindex", "attach"),
]


@pytest.mark.parametrize(("tracer", "framework", "way"), FAST)
def test_scores_of_tenants_at_once_go_on_their_own_spans(
    tracer: str, framework: str, way: str, tmp_path: Path
) -> None:
    told = cells(tmp_path, tracer, framework, way, "none", ("async", "stream"))
    assert [problem for cell in told if (problem := check(cell))] == []


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("around", ["none", "own"])
@pytest.mark.parametrize(
    ("tracer", "framework"),
    [*PACKAGES, *((tracer, "langgraph") for tracer, kind in PACKAGES if kind == "langchain")],
)
def test_every_arrangement_is_right_or_named_as_impossible(
    tracer: str, framework: str, around: str, tmp_path: Path
) -> None:
    told = cells(tmp_path, tracer, framework, "handler+attach+processor", around, ALL_MODES)
    assert [problem for cell in told if (problem := check(cell))] == []


def test_what_is_impossible_stands_in_the_docs() -> None:
    text = " ".join(DOCS.read_text().split())
    assert [limit.says for limit in LIMITS if limit.says not in text] == []
    arrangements = itertools.product({tracer for tracer, _ in PACKAGES}, FRAMEWORKS, WAYS, ALL_MODES)
    named = {limit_of(*arrangement) for arrangement in arrangements}
    assert named - {None} == set(LIMITS)
