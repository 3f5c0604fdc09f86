"""Why one turn is bad, by what was recorded and by answering it again."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from cli.running import Steelyard
from steelyard.engine import evaluate_one
from steelyard.judge import LocalJudge
from steelyard.metrics import ContextSufficiency, Faithfulness
from steelyard.record import Record
from steelyard.scores import Diagnosis, Evaluation
from writing import write

NINE, SEAT = "The ferry to Skarn leaves at 9 in the morning.", "A seat on the ferry costs 4 crowns."
APP = f"""
def replay(question, contexts):
    texts = [one.text for one in contexts]
    if not texts:
        return "Ask at the harbour office."
    if texts == [{NINE!r}]:
        return {NINE!r}
    return "The ferry to Skarn leaves at 4 in the morning."
"""


@pytest.fixture
def results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A folder with one bad turn and an application that a second passage leads astray."""
    turn = Record(
        id="r1",
        question="When does the ferry to Skarn leave in the morning?",
        contexts=[NINE, SEAT],  # type: ignore[arg-type]
        answer="The ferry to Skarn leaves at 4 in the morning.",
    )
    metrics = [Faithfulness(claims="sentences"), ContextSufficiency()]
    write(tmp_path / "steelyard.db", asyncio.run(evaluate_one(turn, metrics, judge=LocalJudge())))
    (tmp_path / "astray.py").write_text(APP)
    monkeypatch.syspath_prepend(tmp_path)
    return str(tmp_path / "steelyard.db")


def test_what_cannot_be_explained_is_said(results: str, steelyard: Steelyard, tmp_path: Path) -> None:
    unknown = steelyard("explain", "r2", "--db", results)
    assert (unknown.status, "there is no turn 'r2'" in unknown.err) == (2, True)
    without = str(tmp_path / "without.db")
    bare = Evaluation(record_id="r1", scores=(), diagnosis=Diagnosis(cause="invented", because="it is so"))
    write(without, bare)
    assert "it is so" in steelyard("explain", "r1", "--db", without).out
    tried = steelyard("explain", "r1", "--db", without, "--replay", "astray:replay")
    assert tried.status == 2
    assert "store_content = true" in tried.err


def test_a_turn_is_explained_by_rules(results: str, steelyard: Steelyard) -> None:
    said = steelyard("explain", "r1", "--db", results).out
    assert "invented" in said and "Change the prompt" in said


def test_a_turn_is_explained_by_experiment(results: str, steelyard: Steelyard) -> None:
    said = steelyard("explain", "r1", "--db", results, "--replay", "astray:replay").out
    assert "distracted" in said and "its best passage alone" in said
