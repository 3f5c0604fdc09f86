"""What a Monitor makes of the session, tenant, user and time of a turn."""

from __future__ import annotations

import sqlite3
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from online.helpers import FAITHFUL, finish, kind_judge, turn
from steelyard.online import Monitor
from steelyard.record import Record, Timings
from steelyard.scores import Evaluation
from steelyard.sinks import SQLiteSink
from steelyard.testing import MemorySink

KEY = "a key of more than sixteen"


def judged(record: Record, **options: Any) -> Evaluation:
    sink = MemorySink()
    with closing(Monitor(metrics=FAITHFUL, judge=kind_judge(), sinks=[sink], **options)) as monitor:
        finish(monitor, [record])
    (evaluation,) = sink.evaluations
    return evaluation


def test_who_asked_is_dropped_unless_there_is_a_key() -> None:
    evaluation = judged(turn(user="ann", session="s", tenant="t"))
    assert evaluation.record is not None
    assert (evaluation.user, evaluation.record.user) == (None, None)
    assert (evaluation.session, evaluation.tenant) == ("s", "t")


@pytest.mark.parametrize("store_content", [True, False])
@pytest.mark.parametrize("spool", [False, True])
def test_with_a_key_only_its_hash_is_stored(tmp_path: Path, store_content: bool, spool: bool) -> None:
    path = tmp_path / "results.db"
    options: dict[str, Any] = {"spool": tmp_path / "spool.db"} if spool else {}
    monitor = Monitor(
        metrics=FAITHFUL,
        judge=kind_judge(),
        sinks=[SQLiteSink(path)],
        user_key=KEY,
        store_content=store_content,
        **options,
    )
    with closing(monitor):
        for name, user in (("a", "ann"), ("b", "bob"), ("c", "ann")):
            monitor.submit(turn(name, user=user, session="s", tenant="t"))
        assert monitor.flush(60) == 0
    with closing(sqlite3.connect(path)) as connection:
        query = "SELECT record_id, user_hash, session, tenant FROM evaluations"
        rows = {name: rest for name, *rest in connection.execute(query)}
    assert rows["a"] == rows["c"] != rows["b"]
    assert rows["a"][1:] == ["s", "t"]
    for file in tmp_path.iterdir():
        assert b"ann" not in file.read_bytes()


def test_a_mask_may_take_session_and_tenant_off_but_not_the_time() -> None:
    def mask(record: Record) -> Record:
        return Record(question=record.question, answer=record.answer, contexts=record.contexts)

    evaluation = judged(turn(session="s", tenant="t", timings=Timings(started_at=5.0)), mask=mask)
    assert (evaluation.session, evaluation.tenant, evaluation.happened_at) == (None, None, 5.0)


def test_what_a_mask_leaves_of_a_user_is_hashed() -> None:
    def mask(record: Record) -> Record:
        return record.replace(user=str(record.user).lower())

    one, other = (judged(turn(user=user), mask=mask, user_key=KEY) for user in ("Ann", "ANN"))
    assert one.user == other.user and one.user is not None and "ann" not in one.user


@pytest.mark.parametrize("timings", [None, Timings(total=2.0)])
def test_a_turn_that_does_not_say_when_it_was_is_dated_by_its_recording(timings: Timings | None) -> None:
    before = time.time()
    evaluation = judged(turn(timings=timings))
    assert evaluation.happened_at is not None
    assert before <= evaluation.happened_at <= evaluation.evaluated_at
    assert evaluation.record is not None and evaluation.record.timings is not None
    assert evaluation.record.timings.total == (timings.total if timings else None)
