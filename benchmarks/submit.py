"""What `Monitor.submit` costs the application's threads.

Four threads submit the same kind of turn while the Monitor works in the background, at a pace that a busy
server could have; next to it, in the same threads, the cost of `queue.Queue.put`, as a yardstick for this
machine.

    python benchmarks/submit.py [--threads 4] [--turns 20000] [--pace-us 100] [--spool]
"""

from __future__ import annotations

import argparse
import queue
import statistics
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

from steelyard.online import Monitor
from steelyard.record import Context, Record, TraceRef

CONTEXTS = tuple(Context(text="Paris is the capital of France. " * 30, score=0.9) for _ in range(5))


def record(number: int) -> Record:
    """A turn like many: five contexts of a thousand characters."""
    return Record(
        question="What is the capital of France?",
        answer="Paris is the capital of France.",
        contexts=CONTEXTS,
        trace=TraceRef(trace_id=f"{number:032x}", span_id=f"{number:016x}"),
    )


def timed(call: Callable[[Record], object], records: list[Record], pace: float) -> list[int]:
    """Nanoseconds of each call, with some work of the host's own between two calls."""
    clock = time.perf_counter_ns
    taken = []
    for item in records:
        start = clock()
        call(item)
        taken.append(clock() - start)
        until = clock() + pace * 1000
        while clock() < until:
            pass
    return taken


def measure(call: Callable[[Record], object], threads: int, turns: int, pace: float) -> list[float]:
    """Microseconds of every call, over all threads."""
    taken: list[int] = []
    lots = [[record(lot * turns + number) for number in range(turns)] for lot in range(threads)]
    workers = [threading.Thread(target=lambda lot=lot: taken.extend(timed(call, lot, pace))) for lot in lots]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return sorted(nanoseconds / 1000 for nanoseconds in taken)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=4)
    parser.add_argument("--turns", type=int, default=20_000)
    parser.add_argument("--pace-us", type=float, default=100)
    parser.add_argument("--spool", action="store_true", help="with a spool file behind the queue")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        spool = Path(folder) / "spool.db" if options.spool else None
        monitor = Monitor(metrics=[], sinks=[], spool=spool)
        yardstick: queue.Queue[Record] = queue.Queue()
        rows = {
            "queue.Queue.put": measure(yardstick.put, options.threads, options.turns, options.pace_us),
            "Monitor.submit": measure(monitor.submit, options.threads, options.turns, options.pace_us),
        }
        left = monitor.flush(60)
        stats = monitor.stats()
        monitor.close()
    for name, taken in rows.items():
        p50, p99, worst = statistics.median(taken), taken[int(len(taken) * 0.99)], taken[-1]
        print(f"{name:18} p50 {p50:7.2f} us   p99 {p99:7.2f} us   max {worst:9.1f} us   n {len(taken)}")
    ratio = statistics.median(rows["Monitor.submit"]) / statistics.median(rows["queue.Queue.put"])
    print(f"ratio of medians {ratio:.2f}   left {left}   seen {stats.seen}   skipped {dict(stats.skipped)}")


if __name__ == "__main__":
    main()
