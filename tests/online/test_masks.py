"""Masks: nothing leaves without them, one that fails drops the content, one that hangs holds up nobody."""

from __future__ import annotations

import itertools
import logging
import threading
import time
from typing import Any

import pytest

from online.helpers import FAITHFUL, finish, kind_judge, traced, turn
from steelyard.online import Monitor
from steelyard.record import Record, Timings, TraceRef
from steelyard.testing import MemorySink


@pytest.mark.faults
def test_a_mask_is_applied_before_everything_else() -> None:
    judge, sink = kind_judge(), MemorySink()
    monitor = Monitor(
        metrics=FAITHFUL,
        judge=judge,
        sinks=[sink],
        mask=lambda record: record.replace(answer=record.answer.replace("Marie Curie", "[name]")),
    )
    finish(monitor, [turn()])
    assert "Curie" not in repr([request.view.answer for request in judge.requests])
    [evaluation] = sink.evaluations
    assert evaluation.record is not None and evaluation.record.answer.startswith("[name]")
    assert "Curie" not in evaluation["faithfulness"].verdicts[0].about


def test_a_mask_does_not_change_whose_result_it_is() -> None:
    """Scores would go on another trace, or take the place of another turn's."""
    sink = MemorySink()
    monitor = Monitor(
        metrics=[], sinks=[sink], mask=lambda record: Record(question="?", answer=record.answer)
    )
    came = traced(1, id="mine", timings=Timings(started_at=7.0))
    finish(monitor, [came])
    [evaluation] = sink.evaluations
    kept = evaluation.record
    assert kept is not None and kept.question == "?"
    assert (evaluation.record_id, kept.id, kept.timings) == ("mine", "mine", came.timings)
    assert evaluation.trace == kept.trace == came.trace


@pytest.mark.faults
@pytest.mark.parametrize("mask", [lambda record: 1 / 0, lambda record: "text", lambda record: time.sleep(3)])
def test_a_mask_that_fails_drops_the_content(mask: Any, caplog: pytest.LogCaptureFixture) -> None:
    judge, sink = kind_judge(), MemorySink()
    monitor = Monitor(metrics=FAITHFUL, judge=judge, sinks=[sink], mask=mask, mask_timeout=0.2)
    with caplog.at_level(logging.ERROR, "steelyard"):
        finish(monitor, [turn(), turn()])
    assert not judge.requests and not sink.evaluations
    assert monitor.stats().skipped == {"mask_failed": 2}
    assert len(caplog.records) == 1 and "Curie" not in caplog.text


def test_a_turn_whose_mask_failed_may_come_again() -> None:
    def mask(record: Record) -> Record:
        if down.is_set():
            raise ConnectionError
        return record

    down, sink = threading.Event(), MemorySink()
    monitor = Monitor(metrics=[], sinks=[sink], mask=mask)
    down.set()
    finish(monitor, [turn("a")])
    down.clear()
    finish(monitor, [turn("a"), turn("a")])
    stats = monitor.stats()
    assert (stats.evaluated, stats.skipped) == (1, {"mask_failed": 1, "duplicate": 1})
    assert list(sink.by_record) == ["a"]


def test_two_recorders_of_one_turn_are_noticed_whatever_a_mask_makes_of_it(
    caplog: pytest.LogCaptureFixture,
) -> None:
    numbers = itertools.count()

    def mask(record: Record) -> Record:
        # Each time another name in place of the person's.
        return record.replace(answer=record.answer.replace("Curie", f"person {next(numbers)}"))

    monitor = Monitor(metrics=[], sinks=[], mask=mask)
    # What no framework recorded, or has no answer, is the same turn as none.
    for name, framework, answer in (
        *(
            ("1", "", "So."),
            ("2", "opentelemetry", "So."),
            ("3", "langchain", ""),
            ("4", "opentelemetry", ""),
        ),
        ("a", "langchain", "Marie Curie found it."),
        ("b", "opentelemetry", "Marie Curie found it."),
    ):
        assert "scored twice" not in caplog.text
        finish(monitor, [turn(name, answer=answer).replace(trace=TraceRef(framework=framework))])
    assert "by the recorder for langchain, and is scored twice" in caplog.text
    assert "Curie" not in caplog.text


def test_equal_turns_are_judged_once_while_a_mask_is_at_work() -> None:
    """Also where the mask is through with one of them only after the other was judged and is forgotten."""
    masking, decided, judged = threading.Event(), threading.Event(), threading.Event()

    def mask(record: Record) -> Record:
        if masking.is_set():
            decided.set()
            judged.wait(120)
        else:
            masking.set()
            decided.wait(120)
        return record

    monitor = Monitor(metrics=[], sinks=[], mask=mask, mask_timeout=30)
    monitor.on_decision(lambda trace, reason: decided.set())
    monitor.on_evaluation(lambda evaluation: judged.set())
    monitor.submit(turn("same"))
    assert masking.wait(120)
    monitor.submit(turn("same"))
    assert judged.wait(120)
    assert monitor.flush(60) == 0
    stats = monitor.stats()
    assert (stats.evaluated, stats.skipped) == (1, {"duplicate": 1})


@pytest.mark.faults
def test_masks_that_hang_do_not_use_up_the_threads_of_later_ones() -> None:
    release = threading.Event()

    def mask(record: Record) -> Record:
        if record.id.startswith("hangs"):
            release.wait(120)
        return record

    monitor = Monitor(metrics=[], sinks=[], mask=mask, mask_timeout=0.2)
    finish(monitor, (turn(name) for name in ("hangs 1", "hangs 2", "hangs 3")))
    finish(monitor, [turn("passes")])
    stats = monitor.stats()
    release.set()
    assert (stats.evaluated, stats.skipped) == (1, {"mask_failed": 3})
