"""The spool file by itself: nothing is lost or done twice, whoever dies and whatever the clock does."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import stat
import time
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from online.helpers import Clock, turn
from online.queue.spools import check, opened, result, spooled
from steelyard.online.queue._spool import Spool
from steelyard.online.queue._turns import Leased, Selected, Undelivered
from steelyard.record import Context
from steelyard.scores import Evaluation


def test_what_goes_in_comes_out_in_order(tmp_path: Path) -> None:
    spool = opened(tmp_path / "spool.db", keep=0)
    assert spool.put([spooled("a"), spooled("b"), spooled("a")]) == ["new", "new", "known"]
    first, second = spool.lease_turns(5)
    assert [first.turn, second.turn] == [spooled("a"), spooled("b")]
    assert spool.lease_turns(5) == []
    done = spool.finish(first, result(first))
    assert done is not None
    assert spool.lease_results(5) == []
    spool.delivered([done])
    assert spool.dead_letter(second, "metric_error")
    counts = check(spool)
    assert (counts.evaluated, counts.dead, counts.undelivered) == (1, {"metric_error": 1}, 0)
    assert spool.put([spooled("a")]) == ["known"]
    spool.prune()
    assert spool.put([spooled("a")]) == ["new"]


def test_a_result_is_delivered_by_its_holder_alone(tmp_path: Path) -> None:
    clock = Clock()
    spool = opened(tmp_path / "spool.db", clock=clock, lease_seconds=10)
    spool.put([spooled("a")])
    [leased] = spool.lease_turns(1)
    slow = spool.finish(leased, result(leased))
    assert slow is not None
    clock.now += 11
    [taken] = spool.lease_results(5)
    # The first one comes back, and its sink had failed: the other's delivery is not over.
    spool.delivered([slow])
    assert check(spool).undelivered == 1
    spool.delivered([taken])
    assert check(spool).undelivered == 0


def test_only_finished_turns_are_forgotten(tmp_path: Path) -> None:
    spool = opened(tmp_path / "spool.db", keep=0)
    spool.put([spooled("a"), spooled("b")])
    [leased] = spool.lease_turns(1)
    spool.prune()
    assert check(spool).pending == 2
    assert spool.finish(leased, result(leased)) is not None
    assert [one.turn.record.id for one in spool.lease_turns(5)] == ["b"]


def test_a_turn_that_another_queue_has_is_none_of_this_one(tmp_path: Path) -> None:
    spool = opened(tmp_path / "spool.db")
    spool.put([spooled("a"), spooled("b")])
    [leased] = spool.lease_turns(1)
    spool.moved([leased])
    counts = check(spool)
    assert (counts.accepted, counts.pending, counts.evaluated) == (1, 1, 0)
    assert spool.put([spooled("a")]) == ["known"]


def test_only_its_owner_may_read_it(tmp_path: Path) -> None:
    opened(tmp_path / "spool.db").put([spooled("a")])
    for file in tmp_path.iterdir():
        assert stat.S_IMODE(file.stat().st_mode) == 0o600, file


def test_nothing_of_a_finished_turn_stays_in_it(tmp_path: Path) -> None:
    """Nor of a result; long texts lie in pages of their own, which are freed as a whole."""
    spool = opened(tmp_path / "spool.db")
    long = turn("long", contexts=(Context(text="polonium " * 5000),))
    spool.put([spooled("short"), Selected(long, 0.25, 0.5)])
    for leased in spool.lease_turns(2):
        done = spool.finish(leased, Evaluation(record_id="", scores=(), record=leased.turn.record))
        assert done is not None
        spool.delivered([done])
    spool.close()
    assert b"polonium" not in (tmp_path / "spool.db").read_bytes()


def test_it_refuses_what_does_not_fit(tmp_path: Path) -> None:
    measured = opened(tmp_path / "measured.db")
    measured.put([spooled("a")])
    size = measured.counts().bytes
    spool = opened(tmp_path / "spool.db", max_bytes=2 * size + 10)
    assert spool.put([spooled("a"), spooled("b"), spooled("c")]) == ["new", "new", "full"]
    [leased] = spool.lease_turns(1)
    done = spool.finish(leased, result(leased))
    assert done is not None
    spool.delivered([done])
    assert spool.put([spooled("c")]) == ["new"]
    check(spool)


def test_counting_looks_at_no_turn(tmp_path: Path) -> None:
    def steps(pending: int) -> int:
        """How many steps of SQLite a look at the ledger takes."""
        taken = 0

        def step() -> None:
            nonlocal taken
            taken += 1

        spool = opened(tmp_path / f"{pending}.db")
        spool.put([spooled(str(number)) for number in range(pending)])
        with spool._reader.use() as reader:
            reader.set_progress_handler(step, 1)
        assert check(spool).pending == pending
        return taken

    assert steps(1000) == steps(1)


def test_a_lost_lease_finishes_nothing(tmp_path: Path) -> None:
    clock = Clock()
    spool = opened(tmp_path / "spool.db", clock=clock, lease_seconds=10)
    spool.put([spooled("a")])
    [slow] = spool.lease_turns(1)
    clock.now += 11
    [quick] = spool.lease_turns(1)
    assert spool.finish(slow, result(slow)) is None
    assert not spool.dead_letter(slow, "late") and not spool.postpone(slow, 1)
    assert spool.finish(quick, result(quick)) is not None
    check(spool)


def test_processes_with_different_leases_do_not_take_each_others_turns(tmp_path: Path) -> None:
    clock = Clock()
    patient = opened(tmp_path / "spool.db", clock=clock, lease_seconds=600)
    hasty = opened(tmp_path / "spool.db", clock=clock, lease_seconds=2)
    patient.put([spooled("a"), spooled("b")])
    [long] = patient.lease_turns(1)
    [short] = hasty.lease_turns(2)
    done = patient.finish(long, result(long))
    assert done is not None
    assert hasty.lease_results(5) == []
    clock.now += 3
    [taken] = patient.lease_turns(5)
    assert taken.turn == short.turn
    assert hasty.lease_turns(5) == [] and hasty.lease_results(5) == []
    clock.now += 601
    assert hasty.lease_turns(5) and hasty.lease_results(5)


def test_ids_of_finished_turns_are_forgotten_while_it_runs(tmp_path: Path) -> None:
    spool = opened(tmp_path / "spool.db", keep=50)
    for number in range(60):
        spool.put([spooled(f"{number}-{part}") for part in range(50)])
        for leased in spool.lease_turns(50):
            spool.dead_letter(leased, "late")
    with closing(sqlite3.connect(tmp_path / "spool.db")) as file:
        (rows,) = file.execute("SELECT COUNT(*) FROM turns").fetchone()
    assert rows < 1100
    check(spool)


def test_a_renewed_lease_holds(tmp_path: Path) -> None:
    clock = Clock()
    spool = opened(tmp_path / "spool.db", clock=clock, lease_seconds=10)
    spool.put([spooled("a")])
    [leased] = spool.lease_turns(1)
    for _ in range(5):
        clock.now += 8
        spool.renew([leased])
        assert spool.lease_turns(1) == []
    assert spool.finish(leased, result(leased)) is not None


@pytest.mark.faults
def test_a_poison_record_is_dead_lettered_and_others_pass(tmp_path: Path) -> None:
    clock = Clock()
    spool = opened(tmp_path / "spool.db", clock=clock, lease_seconds=10, max_attempts=3)
    spool.put([spooled("poison")])
    for _ in range(3):
        [leased] = spool.lease_turns(1)
        assert leased.turn.record.id == "poison"
        clock.now += 11
    spool.put([spooled("fine")])
    [leased] = spool.lease_turns(2)
    assert leased.turn.record.id == "fine"
    assert spool.counts().dead == {"poison": 1}
    check(spool)


def test_a_turn_that_processes_give_back_at_their_end_is_not_given_up(tmp_path: Path) -> None:
    spool = opened(tmp_path / "spool.db", max_attempts=2)
    spool.put([spooled("a")])
    for _ in range(10):
        [leased] = spool.lease_turns(1)
        spool.release([leased])
    assert (check(spool).pending, spool.counts().dead) == (1, {})


def test_a_dead_turn_that_is_taken_up_again_counts_as_any_other(tmp_path: Path) -> None:
    spool = opened(tmp_path / "spool.db")
    spool.put([spooled("a")])
    before = check(spool)
    [leased] = spool.lease_turns(1)
    spool.dead_letter(leased, "unreadable")
    [_] = spool.dead_letters(lambda letter: "replay", 10)
    assert check(spool) == before
    [again] = spool.lease_turns(1)
    assert again.turn.record.id == "a"


def test_a_turn_that_ended_its_processes_gets_all_its_attempts_again(tmp_path: Path) -> None:
    clock = Clock()
    spool = opened(tmp_path / "spool.db", max_attempts=2, lease_seconds=10, clock=clock)
    spool.put([spooled("a")])
    for _ in range(2):
        for _ in range(2):
            assert len(spool.lease_turns(1)) == 1
            clock.now += 11
        assert spool.lease_turns(1) == [] and spool.counts().dead == {"poison": 1}
        [_] = spool.dead_letters(lambda letter: "replay", 10)
    assert check(spool).pending == 1


def test_the_texts_of_dead_turns_are_kept_within_a_tenth_of_the_bound(tmp_path: Path) -> None:
    spool = opened(tmp_path / "spool.db", max_bytes=100_000)
    spool.put([spooled(f"{number}") for number in range(60)])
    for leased in spool.lease_turns(60):
        spool.dead_letter(leased, "unreadable")
    kept = spool.dead_letters(lambda letter: "keep", 100)
    size = check(spool).bytes
    assert size == 0 and spool.counts().dead == {"unreadable": 60}
    assert 0 < len(kept) < 60


def test_postponing_does_not_count_as_an_attempt(tmp_path: Path) -> None:
    clock = Clock()
    spool = opened(tmp_path / "spool.db", clock=clock, max_attempts=2)
    spool.put([spooled("a")])
    for number in range(10):
        [leased] = spool.lease_turns(1)
        assert leased.postponed == number
        assert spool.postpone(leased, 600)
        assert spool.lease_turns(1) == []
        clock.now += 601
    check(spool)


@pytest.mark.faults
def test_leases_given_while_a_process_waited_for_the_file_are_not_taken_over(tmp_path: Path) -> None:
    clock = Clock()
    first, leased = opened(tmp_path / "spool.db", clock=clock, busy_seconds=0.1), list[Leased]()
    first.put([spooled("a")])

    def read_and_wait() -> float:
        """The time, and then five seconds in which another process may be at the file."""
        now = clock.now
        clock.now += 5
        with contextlib.suppress(sqlite3.OperationalError):
            leased.extend(first.lease_turns(1))
        return now

    second = opened(tmp_path / "spool.db", clock=read_and_wait)
    leased.extend(second.lease_turns(1))
    assert len(leased) == 1


@pytest.mark.faults
def test_a_machine_that_starts_again_begins_with_a_younger_clock(tmp_path: Path) -> None:
    clock = Clock()
    clock.now = 1e6
    spool = opened(tmp_path / "spool.db", clock=clock, lease_seconds=10)
    spool.put([spooled("leased"), spooled("postponed"), spooled("finished")])
    _, postponed, finished = spool.lease_turns(3)
    spool.postpone(postponed, 3600)
    spool.finish(finished, result(finished))
    clock.now = 5.0
    assert [leased.turn.record.id for leased in spool.lease_turns(3)] == ["leased", "postponed"]
    assert [left.evaluation.record_id for left in spool.lease_results(3)] == ["finished"]


@pytest.mark.faults
def test_a_wall_clock_a_day_off_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spool = opened(tmp_path / "spool.db", lease_seconds=10)
    spool.put([spooled("a")])
    [leased] = spool.lease_turns(1)
    with closing(sqlite3.connect(tmp_path / "spool.db")) as file:
        [(until,)] = file.execute("SELECT lease_until FROM turns").fetchall()
    assert 0 < until - time.monotonic() <= 10  # the machine's own clock, whatever the calendar says
    real = time.time
    monkeypatch.setattr("time.time", lambda: real() + 86_400)
    assert spool.lease_turns(1) == []
    monkeypatch.setattr("time.time", lambda: real() - 86_400)
    assert spool.lease_turns(1) == []
    assert spool.finish(leased, result(leased)) is not None


@pytest.mark.faults
def test_a_body_that_cannot_be_read_is_dead_lettered(tmp_path: Path) -> None:
    spool = opened(tmp_path / "spool.db")
    spool.put([spooled("a"), spooled("b")])
    spool.close()
    with closing(sqlite3.connect(tmp_path / "spool.db", isolation_level=None)) as db:
        db.execute("UPDATE turns SET body = 'nonsense' WHERE record_id = 'a'")
    db.close()
    spool = opened(tmp_path / "spool.db")
    assert [leased.turn.record.id for leased in spool.lease_turns(2)] == ["b"]
    assert spool.counts().dead == {"unreadable": 1}
    check(spool)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_cannot_be_written_to(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(OSError, match="denied"):
        Spool(tmp_path / "spool.db")


def test_turns_stored_by_an_older_version_are_read(tmp_path: Path) -> None:
    spool = opened(tmp_path / "spool.db")
    spool.put([spooled("a")])
    with closing(sqlite3.connect(tmp_path / "spool.db", isolation_level=None)) as db:
        changed = db.execute(
            "UPDATE turns SET body = replace(body, '\"sampling_position\"', '\"place\"')"
        ).rowcount
        db.execute("PRAGMA user_version = 1")
    db.close()
    assert changed == 1
    [leased] = opened(tmp_path / "spool.db").lease_turns(1)
    assert leased.turn == spooled("a")
    with closing(sqlite3.connect(tmp_path / "spool.db", isolation_level=None)) as db:
        assert db.execute("PRAGMA user_version").fetchone() == (3,)
    db.close()


@pytest.mark.parametrize(("durability", "synchronous"), [("normal", 1), ("full", 2)])
def test_durability_is_what_sqlite_is_told(tmp_path: Path, durability: Any, synchronous: int) -> None:
    spool = opened(tmp_path / "spool.db", durability=durability)
    with spool._writer.use() as connection:
        assert connection.execute("PRAGMA synchronous").fetchone() == (synchronous,)
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)


def test_ids_that_begin_alike_are_different_turns(tmp_path: Path) -> None:
    spool = opened(tmp_path / "spool.db")
    names = [f"{'0' * 900}{number}" for number in range(3)]
    assert spool.put([spooled(name) for name in names]) == ["new"] * 3
    assert [leased.turn.record.id for leased in spool.lease_turns(5)] == names


def test_nothing_is_leased_while_results_fill_the_file(tmp_path: Path) -> None:
    spool = opened(tmp_path / "spool.db", max_bytes=4_000)
    names = [f"turn {number}" for number in range(100)]
    fit = spool.put([spooled(name) for name in names]).count("new")
    assert 2 < fit < 100
    judged: list[Undelivered] = []
    while leased := spool.lease_turns(1):
        # A result is mostly larger than its turn.
        done = spool.finish(leased[0], replace(result(leased[0]), record=turn("x", answer="y" * 1_000)))
        assert done is not None
        judged.append(done)
    assert len(judged) < fit
    assert spool.put([spooled("one more")]) == ["full"]
    spool.delivered(judged)
    assert spool.lease_turns(1)
