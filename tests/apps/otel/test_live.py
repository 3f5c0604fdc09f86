"""Real applications under the real instrumentors give the turns that they had."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

import programs
from apps.otel.shapes import ANSWER, PASSAGES, QUESTION

TESTS = Path(__file__).parents[2]
PARTS = TESTS.parent / "integrations" / "opentelemetry" / "tests" / "parts"


@pytest.fixture(scope="module")
def told() -> dict[str, list[dict[str, object]]]:
    """The turns of each application."""
    env = {**os.environ, "PYTHONPATH": os.pathsep.join((str(TESTS), str(PARTS))), "PYTHONWARNINGS": "ignore"}
    source = Path(__file__).with_name("live.py").read_text()
    done = programs.run(["-m", "apps.otel.live"], source=source, env=env, timeout=280)
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    return {line["name"]: line["turns"] for line in lines}


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("name", "contexts"),
    [
        ("langgraph_tool_with_texts", PASSAGES),
        ("langgraph_tool_with_objects", PASSAGES),
        ("langgraph_that_grades", PASSAGES[:1]),
        ("llamaindex_workflow_with_its_index", PASSAGES),
    ],
)
def test_a_real_application_gives_its_turn(
    told: dict[str, list[dict[str, object]]], name: str, contexts: tuple[str, ...]
) -> None:
    (turn,) = told[name]
    assert (turn["question"], turn["answer"]) == (QUESTION, ANSWER)
    assert turn["contexts"] == list(contexts)
