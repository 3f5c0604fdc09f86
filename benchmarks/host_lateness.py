"""How late a 1 ms timer of the application is while turns are judged beside it.

Blocks of two seconds take turns: in one the Monitor has nothing to do, in the next it is given five turns a
second, each with five contexts of 60 words. So whatever else goes on in the machine hits both alike, and what
is added is what judging costs the application's own latency. Ticks in which Python's garbage collector went
through everything that the process holds (generation 2), ours and the application's, count in, and what is
the largest without them is printed too.

    python benchmarks/host_lateness.py --judge local
    python benchmarks/host_lateness.py --judge openai --base-url http://127.0.0.1:8099/v1 --model stub
    python benchmarks/host_lateness.py --judge local --worker      (a worker process on a spool)
"""

from __future__ import annotations

import argparse
import gc
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from steelyard.judge import judge_from
from steelyard.online import Monitor, SpoolSettings
from steelyard.record import Context, Record

TEXT = """
the river city of old stone was built in 1432 by masons from Lyon and later sold to a duke who never paid
for its seven bridges although every winter ice broke two of them and no repair lasted longer than nine
years until engineers from Vienna found that sand under the piers had moved with each spring flood
"""
BLOCK = 2.0
WORDS = TEXT.split()


def record(rng: random.Random) -> Record:
    """A turn whose answer has four sentences, two of them taken from its contexts."""
    sentences = [" ".join(rng.choices(WORDS, k=15)).capitalize() + "." for _ in range(22)]
    contexts = tuple(Context(text=" ".join(sentences[i : i + 4])) for i in range(0, 20, 4))
    answer = " ".join([sentences[0], sentences[9], sentences[20], sentences[21]])
    return Record(question="Who built the bridges, and when?", answer=answer, contexts=contexts)


class Collections:
    """When the garbage collector went through everything, in seconds of `time.perf_counter`."""

    def __init__(self) -> None:
        self.pauses: list[tuple[float, float]] = []
        self._began = 0.0
        gc.callbacks.append(self)

    def __call__(self, phase: str, info: dict[str, int]) -> None:
        """Called by the collector at the start and at the end of each collection."""
        if phase == "start":
            self._began = time.perf_counter()
        elif info["generation"] == 2:
            self.pauses.append((self._began, time.perf_counter()))

    def touch(self, tick: Tick) -> bool:
        """Whether one was going on at some moment of a tick."""
        begun, late = tick
        end = begun + 0.001 + late / 1000
        return any(start < end and stop > begun for start, stop in self.pauses)


Tick = tuple[float, float]
"""When a tick of the timer was begun to be waited for, and by how many milliseconds it was late."""


def lateness(seconds: float, rate: float, submit: Callable[[Record], object]) -> list[Tick]:
    """How late each tick of a 1 ms timer was."""
    rng = random.Random(1)
    late = []
    end = time.perf_counter() + seconds
    due = time.perf_counter() + 1 / rate
    while (now := time.perf_counter()) < end:
        if now >= due:
            submit(record(rng))
            due += 1 / rate
        start = time.perf_counter()
        time.sleep(0.001)
        late.append((start, (time.perf_counter() - start - 0.001) * 1000))
    return late


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--judge", default="local")
    parser.add_argument("--model")
    parser.add_argument("--base-url")
    parser.add_argument("--rate", type=float, default=5)
    parser.add_argument("--seconds", type=float, default=40)
    parser.add_argument("--worker", action="store_true", help="judge in a process of its own")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "spool.db"
        worker = None
        if options.worker:
            command = [sys.executable, "-c", "from steelyard.cli import main; main()", "worker"]
            worker = subprocess.Popen([*command, "--spool", str(path), "--judge", options.judge], cwd=folder)
            monitor = Monitor(sinks=[], spool=SpoolSettings(path=path, evaluate=False))
        elif options.judge == "local":
            monitor = Monitor(sinks=[])
        else:
            judge = judge_from(options.judge, model=options.model, base_url=options.base_url)
            monitor = Monitor(judge=judge, sinks=[])
        monitor.submit(record(random.Random(0)))
        monitor.flush(10)
        time.sleep(2 if worker else 0)
        alone: list[Tick] = []
        beside: list[Tick] = []
        collections = Collections()
        for _ in range(max(1, round(options.seconds / 2 / BLOCK))):
            alone += lateness(BLOCK, options.rate, lambda _: None)
            beside += lateness(BLOCK, options.rate, monitor.submit)
            left = monitor.flush(20)
        gc.callbacks.remove(collections)
        stats = monitor.stats()
        monitor.close()
        if worker is not None:
            worker.terminate()
            worker.wait()
    p99s = [shown(name, ticks, collections) for name, ticks in (("alone", alone), ("beside", beside))]
    judged = stats.spool.evaluated if stats.spool else stats.evaluated
    print(f"added at p99 {p99s[1] - p99s[0]:.3f} ms   full garbage collections {len(collections.pauses)}")
    print(f"judged {judged}   left {left}   spooled {stats.spooled}")


def shown(name: str, ticks: list[Tick], collections: Collections) -> float:
    """Print how late some ticks were; the 99th percentile."""
    late = sorted(each for _, each in ticks)
    p50, p99, p999 = (late[int(len(late) * share)] for share in (0.5, 0.99, 0.999))
    without = max(tick[1] for tick in ticks if not collections.touch(tick))
    print(
        f"{name:7} p50 {p50:6.3f} ms   p99 {p99:6.3f} ms   p99.9 {p999:6.3f} ms   max {late[-1]:7.2f} ms   "
        f"without full collections {without:7.2f} ms"
    )
    return p99


if __name__ == "__main__":
    main()
