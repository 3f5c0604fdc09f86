"""Whatever a user's code does ends its own turn or its own sink, and nothing else."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from online.failures.parts import ENDINGS, finished
from online.helpers import FAITHFUL, SlowJudge, TestDraft, kind_judge, turn, yes
from steelyard.metrics import Faithfulness
from steelyard.online import Monitor, Selection
from steelyard.questions import Reply, Request
from steelyard.record import Record
from steelyard.scores import Evaluation
from steelyard.testing import MemorySink, ScriptedJudge

SECRET = "the patient has diabetes"


class Ends(ScriptedJudge):
    """A judge that raises what it is given, once, for the turn named `bad`."""

    def __init__(self, error: type[BaseException], *, deep: bool) -> None:
        super().__init__(yes)
        self.error = error
        self.deep = deep
        self.raised = 0

    async def answer(self, request: Request) -> Reply:
        if "bad" in str(asdict(request)) and not self.raised:
            self.raised += 1
            await (asyncio.create_task(self._end()) if self.deep else self._end())
        return await super().answer(request)

    async def _end(self) -> None:
        raise self.error


@pytest.mark.parametrize("spooled", [False, True])
@pytest.mark.parametrize("deep", [False, True])
@pytest.mark.parametrize("error", ENDINGS)
def test_a_judge_that_raises_anything_ends_its_own_turn_only(
    error: type[BaseException], deep: bool, spooled: bool, tmp_path: Path
) -> None:
    judge, sink = Ends(error, deep=deep), MemorySink()
    spool = tmp_path / "s.db" if spooled else None
    monitor = Monitor(metrics=FAITHFUL, judge=judge, sinks=[sink], spool=spool)
    monitor.submit(turn("bad", answer="A bad answer."))
    for number in range(10):
        monitor.submit(turn(f"{number}"))
    stats = finished(monitor, turns=11)
    assert judge.raised == 1
    good = {
        evaluation.record_id
        for evaluation in sink.evaluations
        if evaluation["faithfulness"].hard_value == 1.0
    }
    assert good == {str(number) for number in range(10)}
    if spooled:
        assert stats.spool.accepted == stats.spool.evaluated + sum(stats.spool.dead.values()) == 11
    else:
        assert stats.evaluated + sum(stats.dead.values()) == 11


class CancelsEverything(ScriptedJudge):
    """A judge that cancels all tasks of the loop it runs in, once."""

    done = False

    async def answer(self, request: Request) -> Reply:
        if not self.done:
            self.done = True
            for task in asyncio.all_tasks():
                task.cancel()
            await asyncio.sleep(0)
        return await super().answer(request)


def test_a_judge_that_cancels_everything_is_noticed_and_healed(caplog: pytest.LogCaptureFixture) -> None:
    sink = MemorySink()
    monitor = Monitor(metrics=FAITHFUL, judge=CancelsEverything(yes), sinks=[sink])
    with caplog.at_level(logging.ERROR, "steelyard"):
        for number in range(10):
            monitor.submit(turn(f"{number}"))
            time.sleep(0.01)
        stats = finished(monitor, turns=10)
    assert stats.restarts == 1
    assert len(sink.evaluations) >= 8
    assert "it goes on" in caplog.text


class CancelsEverythingSlowly(CancelsEverything, SlowJudge):
    """Counts how many turns it judges at a time."""


def test_after_a_restart_while_no_turn_waited_as_many_are_judged_at_a_time_as_before() -> None:
    judge = CancelsEverythingSlowly(yes)
    monitor = Monitor(metrics=FAITHFUL, judge=judge, sinks=[], concurrency=4)
    monitor.submit(turn("alone"))
    assert finished(monitor, turns=1).restarts == 1
    for number in range(40):
        monitor.submit(turn(f"{number}"))
    finished(monitor, turns=41)
    assert judge.peak == 4


@pytest.mark.parametrize("masked", [False, True])
def test_turns_in_preparation_survive_a_restart_of_the_worker(masked: bool) -> None:
    class Draft(TestDraft):
        def build(self) -> Record | None:
            # This runs in the loop's own thread, on the way to the queue.
            if not self.built:
                for task in asyncio.all_tasks():
                    task.cancel()
            return super().build()

    def mask(record: Record) -> Record:
        time.sleep(0.01)
        return record

    sink, judge = MemorySink(), SlowJudge(yes, seconds=0.02)
    monitor = Monitor(
        metrics=FAITHFUL, judge=judge, sinks=[sink], mask=mask if masked else None, concurrency=4
    )
    for number in range(300):
        made = turn(f"{number}")
        draft = Draft(made, id=made.id) if number == 150 else TestDraft(made, id=made.id)
        monitor.submit(draft if number % 50 == 0 else made)
        if number % 30 == 0:
            time.sleep(0.03)
    stats = finished(monitor, turns=300)
    assert stats.restarts == 1
    # Only what was being judged at that moment may end with it.
    assert not stats.skipped and sum(stats.dead.values()) <= 4
    assert len(sink.by_record) == stats.evaluated == 300 - sum(stats.dead.values())
    # All places to judge in are free again: four turns at a time, as before.
    judge.peak = 0
    for number in range(40):
        monitor.submit(turn(f"later {number}"))
    finished(monitor, turns=340)
    assert judge.peak == 4


@pytest.mark.parametrize("error", ENDINGS)
@pytest.mark.parametrize("place", ["draft", "choose", "mask", "metric", "callback"])
def test_what_any_other_function_raises_ends_its_own_turn_only(
    place: str, error: type[BaseException]
) -> None:
    def sometimes(record: Record) -> None:
        if record.id == "bad":
            raise error

    def mask(record: Record) -> Record:
        sometimes(record)
        return record

    class Metric(Faithfulness):
        def missing(self, record: Record) -> Any:
            sometimes(record)
            return super().missing(record)

    options: dict[str, Any] = {"metrics": FAITHFUL}
    if place == "choose":
        options["selection"] = Selection(choose=sometimes)
    if place == "mask":
        options["mask"] = mask
    if place == "metric":
        options["metrics"] = [Metric(claims="sentences")]
    sink, heard = MemorySink(), []
    monitor = Monitor(judge=kind_judge(), sinks=[sink], **options)
    monitor.on_evaluation(lambda evaluation: heard.append(evaluation.record_id))
    if place == "callback":
        monitor.on_evaluation(lambda evaluation: sometimes(turn(evaluation.record_id)))
    bad: Any = turn("bad")
    if place == "draft":
        bad = TestDraft(made=error())  # type: ignore[arg-type]
        bad.build = lambda: sometimes(turn("bad"))
    monitor.submit(bad)
    for number in range(10):
        monitor.submit(turn(f"{number}"))
    finished(monitor, turns=11)
    assert {str(number) for number in range(10)} <= set(sink.by_record)
    assert {str(number) for number in range(10)} <= set(heard)


def test_helpers_that_hang_do_not_stop_name_resolution() -> None:
    release = threading.Event()

    class Hangs(ScriptedJudge):
        async def answer(self, request: Request) -> Reply:
            if "hang" in str(asdict(request)):
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(0.05):
                        await asyncio.to_thread(release.wait, 120)
            await asyncio.get_running_loop().getaddrinfo("localhost", 80)
            return await super().answer(request)

    sink = MemorySink()
    monitor = Monitor(metrics=FAITHFUL, judge=Hangs(yes), sinks=[sink], concurrency=2)
    for number in range(4):
        monitor.submit(turn(f"hang {number}", answer="It may hang."))
    monitor.submit(turn("fine"))
    finished(monitor, turns=5)
    assert {evaluation["faithfulness"].hard_value for evaluation in sink.evaluations} == {1.0}
    release.set()


@pytest.mark.parametrize(
    "place", ["callback", "decision", "mask", "choose", "draft", "sink", "judge", "metric"]
)
def test_no_log_line_holds_what_an_error_quotes(place: str, caplog: pytest.LogCaptureFixture) -> None:
    def fails(*_: Any) -> Any:
        raise ValueError(SECRET)

    class Bad(MemorySink):
        async def write(self, evaluations: Sequence[Evaluation]) -> None:
            fails()

    class Metric(Faithfulness):
        def missing(self, record: Record) -> Any:
            fails()

    options: Any = {
        "mask": {"mask": fails},
        "choose": {"selection": Selection(choose=fails)},
        "decision": {"selection": Selection(rate=0.0)},
        "sink": {"sinks": [Bad(name="bad")]},
        "judge": {"judge": ScriptedJudge(fails)},
        "metric": {"metrics": [Metric(claims="sentences")]},
    }.get(place, {})
    with caplog.at_level(logging.DEBUG):
        monitor = Monitor(**{"metrics": FAITHFUL, "judge": kind_judge(), "sinks": [], **options})
        if place == "callback":
            monitor.on_evaluation(fails)
        if place == "decision":
            monitor.on_decision(fails)
        monitor.submit(TestDraft(made=ValueError(SECRET)) if place == "draft" else turn("a"))
        finished(monitor, turns=1)
        monitor.close()
    shown = "".join(logging.Formatter().format(record) for record in caplog.records)
    assert SECRET not in shown
    assert ("ValueError" in shown) == (place != "judge")  # on the Score, as judge_error


def test_a_callback_that_raises_costs_others_nothing() -> None:
    heard: list[str] = []
    monitor = Monitor(metrics=[], sinks=[])
    monitor.on_evaluation(lambda evaluation: 1 / 0)
    monitor.on_evaluation(lambda evaluation: heard.append(evaluation.record_id))
    for name in ("a", "b"):
        monitor.submit(turn(name))
    finished(monitor, turns=2)
    monitor.close()
    assert heard == ["a", "b"]


def test_what_is_not_a_turn_is_skipped_also_where_only_some_turns_are_picked() -> None:
    monitor = Monitor(metrics=[], sinks=[], selection=Selection(rate=0.5))
    odd: Any
    for odd in (None, 7, "text", object()):
        monitor.submit(odd)
    assert monitor.stats().skipped == {"unreadable": 4}
