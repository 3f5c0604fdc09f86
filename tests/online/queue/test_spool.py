"""The spool file by itself: nothing is lost or done twice, whoever dies and whatever the clock does."""

from __future__ import annotations

import contextlib
import itertools
import os
import signal
import sqlite3
import stat
import subprocess
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import programs
from online.helpers import Clock, turn
from online.queue.spools import check, opened, result, spooled
from steelyard.online import Monitor, SpoolSettings
from steelyard.online.queue._spool import Spool
from steelyard.online.queue._sqlite import SQLiteQueue
from steelyard.online.queue._turns import Leased, Selected, Undelivered
from steelyard.record import Context
from steelyard.scores import Evaluation


def test_only_its_owner_may_read_it(tmp_path: Path) -> None:
    opened(tmp_path / "spool.db").put([spooled("a")])
    for file in tmp_path.iterdir():
        assert stat.S_IMODE(file.stat().st_mode) == 0o600, file


# One may strike in a callback of the garbage collector, as hypothesis has one; Python only reports it then.
@pytest.mark.filterwarnings("ignore:Exception ignored in:pytest.PytestUnraisableExceptionWarning")
def test_exceptions_out_of_signals_leave_the_counts_of_a_spool_readable(tmp_path: Path) -> None:
    """A time limit of the application may strike while it asks what is left."""

    class Struck(Exception):
        pass

    def strike(*_: object) -> None:
        raise Struck

    monitor = Monitor(metrics=[], sinks=[], spool=tmp_path / "spool.db")
    monitor.submit(turn())
    assert monitor.flush(30) == 0
    waiting = signal.setitimer(signal.ITIMER_REAL, 0)
    before = signal.signal(signal.SIGALRM, strike)
    try:
        for number in range(400):
            with contextlib.suppress(Struck):
                signal.setitimer(signal.ITIMER_REAL, 0.0002 + number % 23 * 0.00001)
                for _ in range(40):
                    monitor.stats()
                # A signal that comes now is raised here.
                signal.setitimer(signal.ITIMER_REAL, 0)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        signal.setitimer(signal.ITIMER_REAL, *waiting)
    counts = monitor.stats().spool
    assert counts is not None and counts.evaluated == 1
    monitor.close()


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
        assert db.execute("PRAGMA user_version").fetchone() == (4,)
    db.close()


@pytest.mark.parametrize(("durability", "synchronous"), [("normal", 1), ("full", 2)])
async def test_durability_is_what_sqlite_is_told(tmp_path: Path, durability: Any, synchronous: int) -> None:
    queue = SQLiteQueue(SpoolSettings(path=tmp_path / "spool.db", durability=durability))
    queue.start()
    await queue.open()
    assert queue._spool is not None
    with queue._spool._writer.use() as connection:
        assert connection.execute("PRAGMA synchronous").fetchone() == (synchronous,)
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    await queue.close()


def test_ids_that_begin_alike_are_different_turns(tmp_path: Path) -> None:
    spool = opened(tmp_path / "spool.db")
    names = [f"{'0' * 900}{number}" for number in range(3)]
    assert spool.put([spooled(name) for name in names]) == ["new"] * 3
    assert [leased.turn.record.id for leased in spool.lease_turns(5)] == names


def finished(spool: Spool, *names: str) -> list[Undelivered]:
    """Turns that were just judged; this process holds their results."""
    spool.put([spooled(name) for name in names])
    done = [spool.finish(leased, result(leased)) for leased in spool.lease_turns(len(names))]
    return [one for one in done if one is not None]


def test_a_result_that_an_earlier_version_left_is_delivered(tmp_path: Path) -> None:
    spool = opened(tmp_path / "s.db")
    finished(spool, "a", "b")
    spool.park([(one, ["away"]) for one in finished(spool, "c")])
    spool.close()
    with closing(sqlite3.connect(spool.path, isolation_level=None)) as file:  # leases lay beside results
        file.execute("ALTER TABLE results ADD COLUMN lease TEXT")
        file.execute("ALTER TABLE results ADD COLUMN lease_until REAL")
        file.execute("UPDATE results SET lease = 'held', lease_until = 0 WHERE seq <= 2")
        file.execute("DELETE FROM parked WHERE sink = ''")
    spool = opened(tmp_path / "s.db")
    left = spool.parked("", 5)
    assert [one.evaluation.record_id for one in [*left, *spool.parked("away", 5)]] == ["a", "b", "c"]
    spool.delivered(left)
    assert spool.counts().undelivered == 1
    assert opened(tmp_path / "s.db").parked("", 5) == []


_WORKER = """
import sys
from steelyard.online.queue._spool import Spool
from steelyard.scores import Evaluation
spool = Spool(sys.argv[1])
while leases := spool.lease_turns(3):
    for leased in leases:
        print(leased.turn.record.id, flush=True)
        spool.finish(leased, Evaluation(record_id=leased.turn.record.id, scores=()))
"""


@pytest.mark.faults
def test_two_processes_never_hold_the_same_turn(tmp_path: Path) -> None:
    path = tmp_path / "spool.db"
    spool = opened(path)
    spool.put([spooled(str(number)) for number in range(300)])
    workers = [programs.start(["-c", _WORKER, str(path)], ours=True) for _ in range(2)]
    taken = [worker.communicate(timeout=150)[0].split() for worker in workers]
    assert [worker.returncode for worker in workers] == [0, 0]
    assert len(taken[0] + taken[1]) == len({*taken[0], *taken[1]}) == 300
    counts = check(spool)
    assert (counts.evaluated, counts.pending) == (300, 0)


_CRASH = """
import os, signal, sys
from steelyard.online.queue._spool import Spool
from steelyard.online.queue._turns import Selected
from steelyard.record import Record
from steelyard.scores import Evaluation
point, path = sys.argv[1:]
spool = Spool(path, lease_seconds=0.2)
def crash(at):
    if at == point:
        os.kill(os.getpid(), signal.SIGKILL)
spool.put([Selected(Record(id=name, question="q"), 0.1, 1.0) for name in "abc"])
crash("stored")
leases = spool.lease_turns(2)
crash("claimed")
done = spool.finish(leases[0], Evaluation(record_id=leases[0].turn.record.id, scores=()))
crash("finished")
spool.delivered([done])
crash("delivered")
"""


@pytest.mark.faults
@pytest.mark.parametrize(
    ("point", "evaluated", "undelivered"),
    [
        ("stored", 0, 0),
        ("claimed", 0, 0),
        ("finished", 1, 1),
        ("delivered", 1, 0),
    ],
)
def test_a_kill_loses_nothing_and_does_nothing_twice(
    tmp_path: Path, point: str, evaluated: int, undelivered: int
) -> None:
    path = tmp_path / "spool.db"
    killed = programs.run(["-c", _CRASH, point, path], ours=True, timeout=150)
    assert killed.returncode == -9
    clock = Clock()
    clock.now = 1e9
    spool = opened(path, clock=clock, lease_seconds=0.2)
    before = check(spool)
    assert (before.accepted, before.evaluated, before.undelivered) == (3, evaluated, undelivered)
    results = spool.parked("", 5)
    for leased in spool.lease_turns(5):
        done = spool.finish(leased, result(leased))
        assert done is not None
        results.append(done)
    delivered = {left.evaluation.record_id for left in results}
    assert len(delivered) == len(results) == 3 - (point == "delivered")
    check(spool)
    assert spool.counts().evaluated == 3


@pytest.mark.faults
def test_a_kill_before_any_statement_leaves_no_turn_ended_without_its_result(tmp_path: Path) -> None:
    """Before each statement the files are copied: what they hold then is what a killed process leaves."""
    spool = opened(tmp_path / "spool.db")
    copies: list[Path] = []

    def copy(statement: str) -> None:
        copies.append(tmp_path / str(len(copies)))
        copies[-1].mkdir()
        # In a process of its own: to close a database's file here would end the locks that SQLite has on it.
        files = [spool.path, spool.path.with_name("spool.db-wal")]
        subprocess.run(["cp", *files, copies[-1]], check=True, timeout=150)

    with spool._writer.use() as connection:
        connection.set_trace_callback(copy)
    spool.put([spooled("a")])
    [leased] = spool.lease_turns(1)
    done = spool.finish(leased, result(leased))
    assert done is not None
    spool.delivered([done])
    connection.set_trace_callback(None)
    states = []
    for folder in copies:
        left = check(opened(folder / "spool.db"))
        states.append((left.pending, left.evaluated, left.undelivered))
    assert [state for state, _ in itertools.groupby(states)] == [(0, 0, 0), (1, 0, 0), (0, 1, 1)]
