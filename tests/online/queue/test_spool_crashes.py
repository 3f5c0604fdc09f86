"""Processes on one spool file: none holds another's turn, and a kill at any statement loses nothing."""

from __future__ import annotations

import itertools
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from online.helpers import Clock
from online.queue.spools import check, opened, result, spooled

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
