"""How many turns a second the background thread moves into the spool, beside bare inserts of the same text.

python benchmarks/spool.py [--turns 20000] [--durability normal|full]
"""

from __future__ import annotations

import argparse
import sqlite3
import tempfile
import time
from pathlib import Path

from steelyard.online import Monitor, SpoolSettings
from steelyard.record import Context, Record, record_to_json

CONTEXTS = tuple(Context(text="Paris is the capital of France. " * 30, score=0.9) for _ in range(5))


def records(count: int) -> list[Record]:
    """Turns with five contexts of a thousand characters."""
    return [
        Record(
            id=str(number),
            question="What is the capital of France?",
            answer="It is Paris.",
            contexts=CONTEXTS,
        )
        for number in range(count)
    ]


def bare(path: Path, lines: list[str]) -> float:
    """Rows a second of a loop that does nothing but insert, 64 in a transaction."""
    db = sqlite3.connect(path, isolation_level=None)
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("PRAGMA synchronous = NORMAL")
    db.execute("CREATE TABLE turns (seq INTEGER PRIMARY KEY, body TEXT)")
    started = time.perf_counter()
    for at in range(0, len(lines), 64):
        db.execute("BEGIN")
        db.executemany("INSERT INTO turns (body) VALUES (?)", [(line,) for line in lines[at : at + 64]])
        db.execute("COMMIT")
    seconds = time.perf_counter() - started
    db.close()
    return len(lines) / seconds


def spooled(path: Path, turns: list[Record], durability: str) -> tuple[float, int]:
    """Turns a second from the first `submit` to the last commit, and how many were stored."""
    settings = SpoolSettings(path=path, evaluate=False, durability=durability)  # type: ignore[arg-type]
    monitor = Monitor(metrics=[], sinks=[], spool=settings, max_queue=len(turns) + 1, max_queue_bytes=2**40)
    started = time.perf_counter()
    for turn in turns:
        monitor.submit(turn)
    monitor.flush(300)
    seconds = time.perf_counter() - started
    stored = monitor.stats().spooled
    monitor.close()
    return stored / seconds, stored


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=20_000)
    parser.add_argument("--durability", choices=["normal", "full"], default="normal")
    options = parser.parse_args()
    turns = records(options.turns)
    with tempfile.TemporaryDirectory() as folder:
        lines = [record_to_json(turn) for turn in turns]
        floor = bare(Path(folder) / "bare.db", lines)
        rate, stored = spooled(Path(folder) / "spool.db", turns, options.durability)
    print(f"bare inserts {floor:9.0f} a second")
    print(f"the spool    {rate:9.0f} a second   stored {stored} of {len(turns)}   ratio {rate / floor:.2f}")


if __name__ == "__main__":
    main()
