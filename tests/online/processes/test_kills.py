"""Hosts and workers that are killed or forked: what was committed to the spool is judged, and once."""

from __future__ import annotations

import itertools
import json
import signal
import sqlite3
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import programs
from online.helpers import check_spool, finish, turn
from servers import NatsServer, PostgresServer, RabbitServer
from steelyard.online import Monitor, SpoolSettings
from steelyard.sinks import SQLiteSink, read_evaluations
from steelyard.testing import MemorySink
from waiting import until

_HOST = """
import asyncio, os, signal, sys, time
from steelyard.online import Monitor, SpoolSettings
from steelyard.record import Record
monitor = Monitor(metrics=[], sinks=[], spool=SpoolSettings(path=sys.argv[1], evaluate=False))
number = 0
print("ready", flush=True)
while True:
    monitor.submit(Record(id=str(number), question="q"))
    number += 1
    if number % 50 == 0:
        print(number, monitor.stats().spooled, flush=True)
    time.sleep(0.0005)
"""


@pytest.mark.faults
def test_killing_the_host_loses_one_commit_window_at_most(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    host = programs.start(["-c", _HOST, path], ours=True, live=True)
    assert host.stdout is not None
    submitted = spooled = 0
    for line in host.stdout:
        if line.strip() != "ready":
            submitted, spooled = map(int, line.split())
        if submitted >= 1000:
            host.send_signal(signal.SIGKILL)
            break
    rest = host.communicate()[0].split("\n")
    for line in filter(None, rest):
        submitted, spooled = map(int, line.split())
    sink = MemorySink()
    monitor = Monitor(metrics=[], sinks=[sink], spool=path)
    monitor.start()
    until(lambda: monitor.stats().spool is not None)
    assert monitor.flush(60) == 0
    ids = sorted(int(evaluation.record_id) for evaluation in sink.evaluations)
    assert ids == list(range(len(ids)))
    assert len(ids) >= spooled
    # Turns of one look into the queue and one transaction: 20 ms and some milliseconds, at 2,000 a second.
    assert len(ids) >= submitted - 256


_WORKER = """
import asyncio, sys, time
from steelyard.online import Monitor, SpoolSettings
class Out:
    name = "out"
    async def write(self, evaluations):
        await asyncio.sleep(0.05)
        with open(sys.argv[2], "a") as file:
            for evaluation in evaluations:
                file.write(evaluation.record_id + "\\n")
    async def aclose(self): pass
settings = SpoolSettings(path=sys.argv[1], lease_seconds=1)
monitor = Monitor(metrics=[], sinks=[Out()], concurrency=2, spool=settings)
monitor.start()
time.sleep(30)
"""


@pytest.mark.faults
def test_killing_the_worker_loses_nothing(tmp_path: Path) -> None:
    path, out = tmp_path / "s.db", tmp_path / "out"
    host = Monitor(metrics=[], sinks=[], spool=SpoolSettings(path=path, evaluate=False))
    finish(host, (turn(f"turn{number}") for number in range(30)))
    for wanted in (3, 12, 30):
        worker = programs.start(["-c", _WORKER, path, out], ours=True)
        try:
            until(partial(_has_lines, out, wanted))
            if wanted == 30:
                until(lambda: check_spool(host.stats()).undelivered == 0)
        finally:
            worker.kill()
            worker.communicate()
    spool = check_spool(host.stats())
    assert (spool.evaluated, spool.pending) == (30, 0)
    assert set(out.read_text().split()) == {f"turn{number}" for number in range(30)}


_ROUNDS = 30


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_a_storm_of_kills_loses_nothing_that_was_committed(tmp_path: Path) -> None:
    """Each round a host and two workers on one spool are killed, at any point of their work."""
    path, results = tmp_path / "s.db", tmp_path / "results.db"
    committed = 0
    for number in range(_ROUNDS):
        started = [
            programs.start(["-c", _STORM, *arguments], ours=True, live=True)
            for arguments in (
                ["host", str(path), str(results), str(number)],
                ["worker", str(path), str(results), ""],
                ["worker", str(path), str(results), ""],
            )
        ]
        host, *workers = started
        assert host.stdout is not None
        for worker in workers:
            assert worker.stdout is not None and worker.stdout.readline() == "ready\n"
        said = [host.stdout.readline() for _ in range(3 + number % 7)]
        for program in started[number % 3 :] + started[: number % 3]:
            program.send_signal(signal.SIGKILL)
        said += host.communicate()[0].split("\n")
        for worker in workers:
            worker.communicate()
        committed += max(int(line) for line in said if line.strip())
    monitor = Monitor(metrics=[], sinks=[SQLiteSink(results)], spool=path)
    monitor.start()
    # What a killed worker held comes back when its lease has ended.
    until(lambda: (spool := monitor.stats().spool) and not spool.pending + spool.undelivered)
    spool = check_spool(monitor.stats())
    monitor.close()
    delivered = [evaluation.record_id for evaluation in read_evaluations(results)]
    assert len(delivered) == len(set(delivered)) == spool.evaluated == spool.accepted
    assert spool.accepted >= committed > _ROUNDS
    assert not spool.dead
    with closing(sqlite3.connect(results)) as file:
        assert file.execute("SELECT COUNT(*) FROM evaluations").fetchone() == (len(delivered),)


_STORM = """
import sys, time
from steelyard.online import Monitor, SpoolSettings
from steelyard.record import Record
from steelyard.sinks import SQLiteSink
kind, path, results, name = sys.argv[1:]
settings = SpoolSettings(path=path, evaluate=kind == "worker", lease_seconds=2)
monitor = Monitor(metrics=[], sinks=[SQLiteSink(results)], spool=settings, concurrency=4)
monitor.start()
number = 0
while kind == "worker":
    print("ready", flush=True)
    time.sleep(60)
while True:
    monitor.submit(Record(id=f"{name}-{number}", question="q"))
    number += 1
    if number % 20 == 0:
        print(monitor.stats().spooled, flush=True)
    time.sleep(0.001)
"""


def _has_lines(path: Path, count: int) -> bool:
    return path.exists() and len(set(path.read_text().split())) >= count


BENCHMARK = Path(__file__).resolve().parents[3] / "benchmarks" / "outage.py"
QUEUES = ("memory", "file", "nats", "rabbit")
KINDS = ("away", "slow", "failing", "refusing", "full", "killed")
FAST = {("file", "away"), ("nats", "away")}
CELLS = [
    pytest.param(queue, kind, marks=[] if (queue, kind) in FAST else [pytest.mark.slow])
    for queue, kind in itertools.product(QUEUES, KINDS)
]


@pytest.mark.timeout(400)
@pytest.mark.parametrize(("queue", "kind"), CELLS)
def test_every_result_is_in_the_store_once_whatever_was_away(
    request: pytest.FixtureRequest, queue: str, kind: str
) -> None:
    if kind == "killed" and not PostgresServer.there():
        pytest.skip("needs Postgres: apt-get install postgresql")
    address = queue
    if queue in ("nats", "rabbit"):
        server: NatsServer | RabbitServer = request.getfixturevalue(f"{queue}_server")
        address = server.url
    found = outage("--queue", address, "--outage", kind, "--turns", "120", "--rate", "40", "--seconds", "4")
    # Each turn once in the store that was there; in the other one, or refused or lost by name.
    assert found["whole"], found
    assert found["refused"] == 0 or kind == "refusing", found
    assert found["lost"] == 0 or queue == "memory", found
    assert found["killed"] is (queue != "memory"), found
    # Judged again is what the killed worker had in work, on RabbitMQ also what it had not written yet, and
    # what a lease of two seconds has cost on a busy machine.
    assert found["judged_again"] <= 60, found


def outage(*options: str) -> dict[str, Any]:
    """What one run of the benchmark says."""
    done = programs.run([BENCHMARK, *options], ours=True, timeout=380)
    assert done.returncode == 0, done.stdout + done.stderr
    said: dict[str, Any] = json.loads(done.stdout)
    return said
