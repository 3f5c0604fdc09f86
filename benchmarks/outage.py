"""A sink is away while turns come and workers are killed: what is in the store afterwards.

    python benchmarks/outage.py                                   a spool file, each kind of outage
    python benchmarks/outage.py --queue nats                      starts a nats-server of its own
    python benchmarks/outage.py --queue amqp://HOST --outage away --seconds 600

An application puts turns into a queue and does not judge. Two worker processes judge them, and write to two
SQLite files; one of the two sinks is away for a while, slow, refuses one in ten, or has a full disk. In the
middle one worker is killed with SIGKILL, and another one comes. One line of JSON for each kind of outage; the
exit status is 1 if a result is missing.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import resource
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from steelyard.errors import SinkError
from steelyard.metrics import Faithfulness
from steelyard.online import Monitor, SpoolSettings
from steelyard.questions import Answer, Question, Reply, Request, YesNo
from steelyard.record import Context, Record
from steelyard.scores import Evaluation
from steelyard.sinks import SQLiteSink
from steelyard.testing import ScriptedJudge

OUTAGES = ("away", "slow", "refusing", "full")
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


class Gated(SQLiteSink):
    """A store that is as a file says: `up`, or with a kind of outage."""

    def __init__(self, path: Path, gate: Path) -> None:
        super().__init__(path)
        self.name = "gated"
        self._gate = gate

    async def write(self, evaluations: Sequence[Evaluation]) -> None:
        state = self._gate.read_text()
        if state == "away":
            raise SinkError("it cannot be reached", cause="unreachable")
        if state == "full":
            raise sqlite3.OperationalError("database or disk is full")
        if state == "slow":
            await asyncio.sleep(SLOW)
        if state == "refusing" and any(one.record_id.endswith("7") for one in evaluations):
            raise SinkError("one of them is odd", cause="rejected")
        await super().write(evaluations)


def turn(number: int) -> Record:
    """A turn of some four thousand characters."""
    text = f"Marie Curie found polonium in 1898; this is passage {number}. " * 12
    return Record(
        id=f"turn-{number}",
        question="Who found polonium?",
        answer="Marie Curie found polonium in 1898.",
        contexts=tuple(Context(text=text, score=0.9) for _ in range(5)),
    )


def work(url: str, folder: Path) -> None:
    """A worker process, until SIGTERM."""
    monitor = Monitor(
        metrics=[Faithfulness(claims="sentences")],
        judge=Elsewhere(folder / "judged"),
        sinks=[Gated(folder / "gated.db", folder / "gate"), SQLiteSink(folder / "good.db")],
        spool=SpoolSettings(path=url, lease_seconds=2.0),
        concurrency=16,
    )
    stopped: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _: stopped.append(number))
    monitor.start()
    while not stopped:
        time.sleep(0.1)
    monitor.close(1)


def stored(path: Path) -> int:
    """How many turns a store has."""
    try:
        with closing(sqlite3.connect(path)) as db:
            (count,) = db.execute("SELECT COUNT(*) FROM evaluations").fetchone()
    except sqlite3.Error:
        return 0
    return int(count)


def outage(
    url: str, folder: Path, kind: str, *, turns: int, rate: float, seconds: float
) -> dict[str, object]:
    """One kind of outage: what was stored, and what it cost the application."""
    gate = folder / "gate"
    gate.write_text("up")
    host = Monitor(metrics=[], sinks=[], spool=SpoolSettings(path=url, evaluate=False, lease_seconds=2.0))
    command = [sys.executable, __file__, "--worker", str(folder), url]
    workers = [subprocess.Popen(command) for _ in range(2)]
    host.submit(turn(0))
    deadline = time.monotonic() + PATIENCE
    # Before that an outage would fall into the time in which workers start.
    while not (stored(folder / "good.db") and stored(folder / "gated.db")) and time.monotonic() < deadline:
        time.sleep(0.1)
    took: list[float] = []
    started, away, killed, most_behind = time.monotonic(), 0.0, False, 0
    try:
        for number in range(1, turns):
            time.sleep(max(0.0, started + number / rate - time.monotonic()))
            before = time.perf_counter()
            host.submit(turn(number))
            took.append(time.perf_counter() - before)
            if number == turns // 5:
                gate.write_text(kind)
                away = time.monotonic()
            if number == turns // 2:
                workers[0].kill()
                workers[0].wait()
                workers[0], killed = subprocess.Popen(command), True
            if away and time.monotonic() - away > seconds and gate.read_text() != "up":
                most_behind = stored(folder / "good.db") - stored(folder / "gated.db")
                gate.write_text("up")
        submitted = time.monotonic()
        while time.monotonic() - away < seconds:
            time.sleep(0.1)
        if gate.read_text() != "up":
            most_behind = stored(folder / "good.db") - stored(folder / "gated.db")
            gate.write_text("up")
        while time.monotonic() - submitted < seconds + PATIENCE:
            counts = host.stats().spool
            # RabbitMQ's ledger is of one process, so that the store has to tell whether all were judged.
            if counts and not (counts.pending or counts.undelivered) and stored(folder / "good.db") == turns:
                break
            time.sleep(0.2)
    finally:
        for worker in workers:
            worker.terminate()
        for worker in workers:
            worker.wait(30)
    stats = host.stats()
    host.close(5)
    judged = (folder / "judged").read_text().split()
    took.sort()
    counts = stats.spool
    own = (0,) if url.startswith("amqp") else ()  # the host judges nothing, and counts for itself there
    return {
        "outage": kind,
        "seconds": seconds,
        "turns": turns,
        "killed": killed,
        "spooled": stats.spooled,
        "adds_up": stats.spooled == turns and counts is not None and counts.evaluated in (turns, *own),
        "evaluated": counts.evaluated if counts else None,
        "pending": counts.pending if counts else None,
        "undelivered": counts.undelivered if counts else None,
        "stored_gated": stored(folder / "gated.db"),
        "stored_good": stored(folder / "good.db"),
        "behind_at_the_end_of_the_outage": most_behind,
        "judged_again": len(judged) - len(set(judged)),
        "host_submit_p99_us": round(1e6 * took[int(0.99 * len(took))]),
        "host_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
    }


def whole(found: dict[str, object]) -> bool:
    """Whether every result is where it belongs, and the ledger adds up."""
    turns = found["turns"]
    assert isinstance(turns, int)
    # The sink refuses by name while it is up in between; what came before or after is written.
    gated = found["stored_gated"]
    assert isinstance(gated, int)
    refused = sum(f"turn-{number}".endswith("7") for number in range(turns))
    least = turns - refused if found["outage"] == "refusing" else turns
    settled = found["stored_good"] == turns and found["undelivered"] == 0 and found["adds_up"] is True
    return least <= gated <= turns and settled


class Nats:
    """A nats-server of our own."""

    def __init__(self, folder: Path, port: int) -> None:
        binary = Path(sys.executable).with_name("nats-server")
        command = f"{binary} -js -a 127.0.0.1 -p {port} -sd {folder}".split()
        self._process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        self.url = f"nats://127.0.0.1:{port}"
        time.sleep(1)

    def stop(self) -> None:
        """End it."""
        self._process.terminate()
        self._process.wait()


def main() -> None:
    """All kinds of outage, one after the other."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--worker", nargs=2, metavar=("FOLDER", "URL"))
    parser.add_argument("--queue", default="file", help="file, nats, or a broker's address")
    parser.add_argument("--outage", choices=OUTAGES, action="append")
    parser.add_argument("--turns", type=int, default=2000)
    parser.add_argument("--rate", type=float, default=40.0)
    parser.add_argument("--seconds", type=float, default=60.0)
    options = parser.parse_args()
    if options.worker:
        work(options.worker[1], Path(options.worker[0]))
        return
    good = True
    with tempfile.TemporaryDirectory() as name:
        server = Nats(Path(name) / "nats", 42_272) if options.queue == "nats" else None
        try:
            for kind in options.outage or OUTAGES:
                folder = Path(name) / kind
                folder.mkdir()
                address = server.url if server else options.queue
                url = (
                    str(folder / "turns.db")
                    if address == "file"
                    else f"{address}?queue=outage-{kind}-{time.time_ns()}"
                )
                found = outage(
                    url, folder, kind, turns=options.turns, rate=options.rate, seconds=options.seconds
                )
                print(json.dumps(found), flush=True)
                good = good and whole(found)
        finally:
            if server is not None:
                server.stop()
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
