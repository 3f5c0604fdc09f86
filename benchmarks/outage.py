"""A sink is away while turns come and workers are killed: what is in the store afterwards.

    python benchmarks/outage.py                                     each queue, each kind of outage
    python benchmarks/outage.py --queue nats --outage away --seconds 600
    python benchmarks/outage.py --queue amqp://HOST                 a broker that runs already

An application puts turns into a queue and does not judge. Two worker processes judge them, and write to two
stores; one of the two is away for a while, slow, fails or refuses one in ten, has a full disk, or is a
Postgres server that is killed and started again. In the middle one worker is killed with SIGKILL, and another
one comes.
With `--queue memory` the application judges by itself: what a store misses must then be counted as lost.
One line of JSON for each outage; the exit status is 1 if a result is missing, doubled or not counted.
Beside the time that `submit` takes in the application stands that of a little other work there.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import resource
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from pathlib import Path

import psycopg

from steelyard.errors import SinkError
from steelyard.metrics import Faithfulness
from steelyard.online import Monitor, SpoolSettings, Stats
from steelyard.questions import Answer, Question, Reply, Request, YesNo
from steelyard.record import Context, Record
from steelyard.scores import Evaluation
from steelyard.sinks import PostgresSink, Sink, SQLiteSink
from steelyard.testing import ScriptedJudge

sys.path.append(str(Path(__file__).resolve().parents[1] / "tests" / "parts"))
from servers import NatsServer, PostgresServer, RabbitServer

QUEUES = ("memory", "file", "nats", "rabbitmq")
OUTAGES = ("away", "slow", "failing", "refusing", "full", "killed")
SLOW = 1.0  # seconds for a write that takes ten milliseconds otherwise
PATIENCE = 300.0


def yes(question: Question, request: Request) -> Answer:
    """What the judge always says."""
    return YesNo(value=True, probability=0.9)


class Elsewhere(ScriptedJudge):
    """A judge that takes its time on another machine, and keeps a list of what it was asked."""

    def __init__(self, log: Path) -> None:
        super().__init__(yes)
        self._log = log.open("a", buffering=1)

    async def answer(self, request: Request) -> Reply:
        await asyncio.sleep(0.05)
        [first, *_] = request.view.contexts or ()
        self._log.write(f"{first.text.partition('passage ')[2].partition('.')[0]}\n")
        return await super().answer(request)


class Gated:
    """A store that is as a file says: `up`, or with a kind of outage."""

    name = "gated"

    def __init__(self, store: Sink, folder: Path) -> None:
        self._store = store
        self._gate = folder / "gate"
        self._refused = folder / "refused"
        self._writes = 0

    async def write(self, evaluations: Sequence[Evaluation]) -> None:
        """Write, or fail as such a store does."""
        state = self._gate.read_text()
        self._writes += 1
        if state == "away" or (state == "failing" and self._writes % 10 == 0):
            raise SinkError("it cannot be reached", cause="unreachable")
        if state == "full":
            raise sqlite3.OperationalError("database or disk is full")
        if state == "slow":
            await asyncio.sleep(SLOW)
        odd = [one.record_id for one in evaluations if one.record_id.endswith("7")]
        if state == "refusing" and odd:
            if len(evaluations) == 1:
                with self._refused.open("a") as log:
                    log.write(f"{odd[0]}\n")
            raise SinkError("one of them is odd", cause="rejected")
        await self._store.write(evaluations)

    async def aclose(self) -> None:
        """Close the store."""
        await self._store.aclose()


def turn(number: int) -> Record:
    """A turn of some four thousand characters."""
    text = f"Marie Curie found polonium in 1898; this is passage {number}. " * 12
    return Record(
        id=f"turn-{number}",
        question="Who found polonium?",
        answer="Marie Curie found polonium in 1898.",
        contexts=tuple(Context(text=text, score=0.9) for _ in range(5)),
    )


def judging(url: str, folder: Path) -> Monitor:
    """A Monitor that judges, and writes to both stores."""
    server = folder / "postgres"
    store: Sink = PostgresSink(server.read_text()) if server.exists() else SQLiteSink(folder / "gated.db")
    return Monitor(
        metrics=[Faithfulness(claims="sentences")],
        judge=Elsewhere(folder / "judged"),
        sinks=[Gated(store, folder), SQLiteSink(folder / "good.db")],
        spool=SpoolSettings(path=url, lease_seconds=2.0) if url != "memory" else None,
        concurrency=16,
    )


def work(url: str, folder: Path) -> None:
    """A worker process, until SIGTERM."""
    stopped: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _: stopped.append(number))
    monitor = judging(url, folder)
    monitor.start()
    while not stopped:
        time.sleep(0.1)
    monitor.close(1)


@dataclass
class Cell:
    """One queue with one kind of outage."""

    queue: str
    url: str
    folder: Path
    kind: str
    turns: int
    rate: float
    seconds: float
    postgres: PostgresServer | None = None
    workers: list[subprocess.Popen[bytes]] = field(default_factory=list)
    took: list[float] = field(default_factory=list)
    nothing: list[float] = field(default_factory=list)
    away: float = 0.0
    behind: int = 0
    killed: bool = False

    def run(self) -> dict[str, object]:
        """What was stored, and what it cost the application."""
        self._gate("up")
        if self.postgres is not None:
            (self.folder / "postgres").write_text(self.postgres.new_database())
        if self.url == "memory":
            host = judging(self.url, self.folder)
        else:
            spool = SpoolSettings(path=self.url, evaluate=False, lease_seconds=2.0)
            host = Monitor(metrics=[], sinks=[], spool=spool)
            self.workers = [self._worker(), self._worker()]
        try:
            host.submit(turn(0))
            deadline = time.monotonic() + PATIENCE
            # Before that an outage would fall into the time in which workers start.
            while not (self.good() and self.gated()) and time.monotonic() < deadline:
                time.sleep(0.1)
            self._submit(host)
            self._wait(host)
        finally:
            for worker in self.workers:
                worker.terminate()
            for worker in self.workers:
                worker.wait(30)
        stats = host.stats()
        host.close(5)
        return self._found(stats)

    def good(self) -> list[str]:
        """The turns that the store has that was there all the time."""
        return stored_in_file(self.folder / "good.db")

    def gated(self) -> list[str]:
        """The turns that the other one has."""
        if self.postgres is None:
            return stored_in_file(self.folder / "gated.db")
        return stored_in_postgres((self.folder / "postgres").read_text())

    def _refused(self) -> list[str]:
        refusals = self.folder / "refused"
        return refusals.read_text().split() if refusals.exists() else []

    def _submit(self, host: Monitor) -> None:
        started = time.monotonic()
        for number in range(1, self.turns):
            record = turn(number)
            time.sleep(max(0.0, started + number / self.rate - time.monotonic()))
            before = time.perf_counter()
            host.submit(record)
            between = time.perf_counter()
            _nothing()
            self.took.append(between - before)
            self.nothing.append(time.perf_counter() - between)
            if number == self.turns // 5:
                self._begin()
            if number == self.turns // 2 and self.workers:
                self.workers[0].kill()
                self.workers[0].wait()
                self.workers[0], self.killed = self._worker(), True

    def _begin(self) -> None:
        """The outage begins; a thread ends it."""
        self.away = time.monotonic()
        if self.postgres is not None:
            self.postgres.stop(signal.SIGQUIT)  # at once, without writing anything more
        else:
            self._gate(self.kind)
        self._ending = threading.Timer(self.seconds, self._end)
        self._ending.start()

    def _end(self) -> None:
        if self.postgres is not None:
            self.postgres.start()
        self.behind = len(self.good()) - len(self.gated())
        self._gate("up")

    def _wait(self, host: Monitor) -> None:
        """Wait for the end of the outage, and until the queue has nothing to do any more."""
        self._ending.join()
        deadline = time.monotonic() + PATIENCE
        if self.url == "memory":
            host.flush(PATIENCE)
        while time.monotonic() < deadline and self.url != "memory":
            counts = host.stats().spool
            idle = counts is not None and not (counts.pending or counts.undelivered)
            # RabbitMQ's ledger is of one process, so that the stores have to tell whether all were judged.
            if idle and len(self.good()) == len({*self.gated(), *self._refused()}) == self.turns:
                break
            time.sleep(0.5)

    def _found(self, stats: Stats) -> dict[str, object]:
        judged = (self.folder / "judged").read_text().split()
        good, gated = self.good(), self.gated()
        refused = set(self._refused()) - set(gated)
        if self.url == "memory":
            lost = stats.sinks["gated"].lost
            adds_up = stats.evaluated == self.turns and stats.sinks["gated"].written == len(gated)
        else:
            counts, lost = stats.spool, 0
            # The host judges nothing, and counts for itself with RabbitMQ.
            own = (0,) if self.url.startswith("amqp") else ()
            adds_up = stats.spooled == self.turns and counts is not None
            if counts is not None:
                adds_up = adds_up and (counts.pending, counts.undelivered) == (0, 0)
                adds_up = adds_up and counts.evaluated in (self.turns, *own)
        whole = sorted(good) == sorted(f"turn-{number}" for number in range(self.turns))
        once = len(gated) == len(set(gated)) and set(gated) <= set(good)
        return {
            "queue": self.queue,
            "outage": self.kind,
            "seconds": self.seconds,
            "turns": self.turns,
            "killed": self.killed,
            "adds_up": adds_up,
            "stored_good": len(good),
            "stored_gated": len(gated),
            "refused": len(refused),
            "lost": lost,
            "whole": whole and once and adds_up and len(gated) + len(refused) + lost == self.turns,
            "behind_at_the_end_of_the_outage": self.behind,
            "judged_again": len(judged) - len(set(judged)),
            "host_submit_p99_us": _p99_us(self.took),
            "host_nothing_p99_us": _p99_us(self.nothing),
            "host_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
            "load": round(os.getloadavg()[0], 1),
        }

    def _gate(self, state: str) -> None:
        # Renamed into place: a worker that reads meanwhile must not find it empty.
        (self.folder / "gate.new").write_text(state)
        (self.folder / "gate.new").rename(self.folder / "gate")

    def _worker(self) -> subprocess.Popen[bytes]:
        return subprocess.Popen([sys.executable, __file__, "--worker", str(self.folder), self.url])


def _nothing() -> None:
    """Some microseconds of work that is not ours: what the machine makes of them is not ours either."""
    sum(range(200))


def _p99_us(seconds: list[float]) -> int:
    return round(1e6 * sorted(seconds)[int(0.99 * len(seconds))])


def stored_in_file(path: Path) -> list[str]:
    """Which turns a file has."""
    try:
        with closing(sqlite3.connect(path)) as db:
            return [name for (name,) in db.execute("SELECT record_id FROM evaluations")]
    except sqlite3.Error:
        return []


def stored_in_postgres(address: str) -> list[str]:
    """Which turns a database has."""
    try:
        with psycopg.connect(address) as db:
            return [name for (name,) in db.execute("SELECT record_id FROM steelyard.evaluations")]
    except psycopg.Error:
        return []


def address_of(queue: str, folder: Path, running: ExitStack) -> str:
    """Where a queue is; servers are started, and stopped by the stack."""
    if queue not in ("nats", "rabbitmq"):
        return queue
    server: NatsServer | RabbitServer = NatsServer(folder) if queue == "nats" else RabbitServer(folder)
    running.callback(server.stop, signal.SIGKILL)
    return server.start().url + ("/" if queue == "rabbitmq" else "")


def main() -> None:
    """All kinds of outage, one after the other."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--worker", nargs=2, metavar=("FOLDER", "URL"))
    parser.add_argument(
        "--queue", action="append", help="memory, file, nats, rabbitmq, or a broker's address"
    )
    parser.add_argument("--outage", choices=OUTAGES, action="append")
    parser.add_argument("--turns", type=int, default=2000)
    parser.add_argument("--rate", type=float, default=40.0)
    parser.add_argument("--seconds", type=float, default=60.0)
    options = parser.parse_args()
    if options.worker:
        work(options.worker[1], Path(options.worker[0]))
        return
    good = True
    with tempfile.TemporaryDirectory() as name, ExitStack() as running:
        Path(name).chmod(0o755)  # Postgres runs as another user where this runs as root
        for queue in options.queue or QUEUES:
            address = ""
            for kind in options.outage or OUTAGES:
                folder = Path(name) / f"{len(list(Path(name).iterdir()))}-{kind}"
                folder.mkdir()
                address = address or address_of(queue, folder, running)
                url = f"{address}?queue=outage-{kind}-{time.time_ns()}" if "://" in address else address
                postgres = None
                if kind == "killed":
                    postgres = PostgresServer(folder / "server")
                    postgres.folder.mkdir()
                    running.callback(postgres.start().stop)
                cell = Cell(
                    queue=queue.partition("://")[0],
                    url=str(folder / "turns.db") if url == "file" else url,
                    folder=folder,
                    kind=kind,
                    turns=options.turns,
                    rate=options.rate,
                    seconds=options.seconds,
                    postgres=postgres,
                )
                found = cell.run()
                print(json.dumps(found), flush=True)
                good = good and found["whole"] is True
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
