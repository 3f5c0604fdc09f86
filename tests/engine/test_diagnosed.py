"""The diagnosis beside the scores: it never costs them, nor holds up the loop."""

from __future__ import annotations

import asyncio
import threading

import pytest

from steelyard.engine import evaluate_one
from steelyard.judge import LocalJudge
from steelyard.metrics import Faithfulness
from steelyard.record import Context, Record
from steelyard.scores import Diagnosis

RECORD = Record(
    question="When does the ferry leave?",
    contexts=(Context(text="The ferry leaves at nine."),),
    answer="The ferry leaves at nine.",
)


def evaluated(record: Record = RECORD) -> tuple[float | None, Diagnosis | None]:
    """The score and the diagnosis of a turn."""
    found = asyncio.run(evaluate_one(record, [Faithfulness(claims="sentences")], judge=LocalJudge()))
    return found["faithfulness"].value, found.diagnosis


def test_scores_stand_if_a_diagnosis_fails(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fails(*_: object) -> None:
        raise TypeError("of a verdict that a judge of one's own made")

    monkeypatch.setattr("steelyard.engine._evaluate.diagnose", fails)
    value, diagnosis = evaluated()
    assert value is not None
    assert diagnosis is None
    assert "of a verdict" not in caplog.text, "errors may hold content"


@pytest.mark.parametrize("is_large", [False, True])
def test_large_passages_are_read_beside_the_loop(monkeypatch: pytest.MonkeyPatch, is_large: bool) -> None:
    where: list[bool] = []

    def noted(*_: object) -> Diagnosis:
        where.append(threading.current_thread() is threading.main_thread())
        return Diagnosis()

    monkeypatch.setattr("steelyard.engine._evaluate.diagnose", noted)
    more = (Context(text="The pier is long. " * 1_000),) if is_large else ()
    evaluated(RECORD.replace(retrieved=(*RECORD.contexts, *more)))
    assert where == [not is_large]


def test_of_guessed_passages_nothing_is_concluded() -> None:
    guessed = RECORD.replace(contexts_source="guessed", answer="I do not know.")
    assert evaluated(guessed) == (None, None)
