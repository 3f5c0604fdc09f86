"""The spool file by itself: nothing is lost or done twice, whoever dies and whatever the clock does."""

from __future__ import annotations

import itertools
import os
import sqlite3
import stat
import subprocess
import sys
import tempfile
import textwrap
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, multiple, rule

from online.helpers import turn
from steelyard.online.queue._protocol import QueueCounts
from steelyard.online.queue._spool import Spool
from steelyard.online.queue._turns import Leased, Selected, Undelivered
from steelyard.record import Context
from steelyard.scores import Evaluation


class Clock:
    """A monotonic clock that moves only when told to."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


_open: list[Spool] = []


def opened(path: Path, **options: Any) -> Spool:
    """A spool that is closed when the test is over."""
    _open.append(Spool(path, **options))
    return _open[-1]


@pytest.fixture(autouse=True)
def nothing_stays_open() -> Iterator[None]:
    yield
    while _open:
        _open.pop().close()


def spooled(name: str) -> Selected:
    return Selected(turn(name), 0.25, 0.5)


def result(leased: Leased) -> Evaluation:
    return Evaluation(record_id=leased.turn.record.id, scores=())


def check(spool: Spool) -> QueueCounts:
    """The ledger, checked against the rows themselves."""
    counts = spool.counts()
    assert counts.accepted == counts.pending + counts.evaluated + sum(counts.dead.values())
    assert (counts.bytes == 0) == (counts.pending == 0)
    with closing(sqlite3.connect(spool.path)) as db:
        (pending,) = db.execute("SELECT COUNT(*) FROM turns WHERE state IN ('waiting', 'leased')").fetchone()
    assert counts.pending == pending
    return counts


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
    spool.finish(leased, result(leased))
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
        spool._reader.set_progress_handler(step, 1)
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
    command = [sys.executable, "-c", _WORKER, str(path)]
    workers = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
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
    script = textwrap.dedent(_CRASH)
    killed = subprocess.run([sys.executable, "-c", script, point, path], timeout=150, check=False)
    assert killed.returncode == -9
    clock = Clock()
    clock.now = 1e9
    spool = opened(path, clock=clock, lease_seconds=0.2)
    before = check(spool)
    assert (before.accepted, before.evaluated, before.undelivered) == (3, evaluated, undelivered)
    results = spool.lease_results(5)
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

    spool._db.set_trace_callback(copy)
    spool.put([spooled("a")])
    [leased] = spool.lease_turns(1)
    done = spool.finish(leased, result(leased))
    assert done is not None
    spool.delivered([done])
    spool._db.set_trace_callback(None)
    states = []
    for folder in copies:
        left = check(opened(folder / "spool.db"))
        states.append((left.pending, left.evaluated, left.undelivered))
    assert [state for state, _ in itertools.groupby(states)] == [(0, 0, 0), (1, 0, 0), (0, 1, 1)]


class SpoolMachine(RuleBasedStateMachine):
    """Several workers on one spool, dying and coming back, while time passes."""

    leases = Bundle("leases")
    results = Bundle("results")

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.path = Path(self.folder.name) / "spool.db"
        self.clock = Clock()
        self.spool = self.open()
        self.put: set[str] = set()
        self.finished: list[str] = []
        self.delivered: set[str] = set()
        self.held: dict[str, float] = {}

    def open(self) -> Spool:
        return Spool(self.path, clock=self.clock, lease_seconds=10, max_attempts=10**6)

    def teardown(self) -> None:
        self.spool.close()
        self.folder.cleanup()

    @rule(names=st.lists(st.integers(0, 30).map(str), min_size=1, max_size=3))
    def submit(self, names: list[str]) -> None:
        outcomes = self.spool.put([spooled(name) for name in names])
        for name, outcome in zip(names, outcomes, strict=True):
            assert (outcome == "new") == (name not in self.put)
            self.put.add(name)

    @rule(target=leases, most=st.integers(1, 3))
    def leased(self, most: int) -> object:
        claimed = self.spool.lease_turns(most)
        for leased in claimed:
            name = leased.turn.record.id
            assert name not in self.finished
            assert self.held.get(name, 0) <= self.clock.now
            self.held[name] = self.clock.now + 10
        return multiple(*claimed)

    @rule(target=results, leased=consumes(leases))
    def finish(self, leased: Leased) -> object:
        done = self.spool.finish(leased, result(leased))
        if done is None:
            return multiple()
        self.finished.append(leased.turn.record.id)
        self.held.pop(leased.turn.record.id, None)
        return done

    @rule(leased=consumes(leases), seconds=st.floats(0, 100))
    def postpone(self, leased: Leased, seconds: float) -> None:
        if self.spool.postpone(leased, seconds):
            self.held.pop(leased.turn.record.id, None)

    @rule(leased=consumes(leases))
    def release(self, leased: Leased) -> None:
        before = self.spool.counts().pending
        self.spool.release([leased])
        assert self.spool.counts().pending == before
        if self.held.get(leased.turn.record.id, 0) > self.clock.now:
            self.held.pop(leased.turn.record.id, None)

    @rule(leased=consumes(leases))
    def crash(self, leased: Leased) -> None:
        """Nobody ever hears of this lease again."""

    @rule(leased=leases)
    def renew(self, leased: Leased) -> None:
        self.spool.renew([leased])
        self.held[leased.turn.record.id] = self.clock.now

    @rule(done=consumes(results))
    def acknowledge(self, done: Undelivered) -> None:
        self.spool.delivered([done])
        self.delivered.add(done.evaluation.record_id)

    @rule(target=results, most=st.integers(1, 3))
    def take_over(self, most: int) -> object:
        left = self.spool.lease_results(most)
        assert all(done.evaluation.record_id in self.finished for done in left)
        return multiple(*left)

    @rule()
    def restart(self) -> None:
        self.spool.close()
        self.spool = self.open()

    @rule(seconds=st.floats(0, 30))
    def time_passes(self, seconds: float) -> None:
        self.clock.now += seconds

    @rule()
    def machine_starts_again(self) -> None:
        self.clock.now = 1.0
        self.held.clear()

    @invariant()
    def nothing_is_lost_or_done_twice(self) -> None:
        counts = check(self.spool)
        assert counts.accepted == len(self.put)
        assert len(self.finished) == len(set(self.finished)) == counts.evaluated


SpoolMachine.TestCase.settings = settings(
    max_examples=25,
    stateful_step_count=30,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
TestSpoolMachine = SpoolMachine.TestCase


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
    assert spool._db.execute("PRAGMA synchronous").fetchone() == (synchronous,)
    assert spool._db.execute("PRAGMA journal_mode").fetchone() == ("wal",)


def test_ids_that_begin_alike_are_different_turns(tmp_path: Path) -> None:
    spool = opened(tmp_path / "spool.db")
    names = [f"{'0' * 900}{number}" for number in range(3)]
    assert spool.put([spooled(name) for name in names]) == ["new"] * 3
    assert [leased.turn.record.id for leased in spool.lease_turns(5)] == names
