"""What a backfill costs beside its judge.

    python benchmarks/backfill.py DATA.jsonl [TURNS]

DATA holds records (`question`, `contexts`, `answer`), repeated under numbered questions until there are TURNS
of them (default 2,000). They are written to Parquet; then the local judge scores them alone, out of memory,
and `Backfill` scores them from Parquet into SQLite, in turns, three times each; the fastest of each counts.
Both seconds and CPU seconds of the process are shown: other programs disturb the second less.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from steelyard import Monitor
from steelyard.backfill import Backfill, Columns, TracesFound, open_sources, read_records
from steelyard.engine import evaluate
from steelyard.judge import LocalJudge
from steelyard.metrics import default_metrics
from steelyard.record import Record
from steelyard.sinks import SQLiteSink

_ROUNDS = 3


def records(path: str, count: int) -> list[Record]:
    """So many records, no two of them alike."""
    with open(path, "rb") as file:
        known = list(read_records(file, bad=lambda *_: None))
    return [
        known[n % len(known)].replace(id=f"turn-{n}", question=f"{known[n % len(known)].question} ({n})")
        for n in range(count)
    ]


def alone(turns: list[Record]) -> tuple[float, float]:
    """Seconds and CPU seconds that the judge takes by itself."""
    started, worked = time.perf_counter(), time.process_time()
    evaluate(turns, judge=LocalJudge(), concurrency=16, progress=False)
    return time.perf_counter() - started, time.process_time() - worked


def backfilled(path: Path) -> tuple[float, float]:
    """Seconds and CPU seconds from Parquet to SQLite."""

    def no_traces(_: object) -> TracesFound:
        raise AssertionError("there are no traces here")

    with tempfile.TemporaryDirectory() as folder:
        db = Path(folder) / "results.db"
        judge = LocalJudge()
        options = Monitor(
            metrics=default_metrics(judge), judge=judge, sinks=[SQLiteSink(db)], concurrency=16
        ).options
        found = open_sources([str(path)], columns=Columns(), read_traces=no_traces)
        work = Backfill(found, options=options, results=db)
        started, worked = time.perf_counter(), time.process_time()
        counts = asyncio.run(work.run())
        ended = time.perf_counter()
        assert counts.judged == counts.read
        return ended - started, time.process_time() - worked


def main() -> None:
    """Measure."""
    count = int(sys.argv[2]) if len(sys.argv) > 2 and sys.argv[2].isdecimal() else 2_000
    turns = records(sys.argv[1], count)
    rows = [
        {
            "id": one.id,
            "question": one.question,
            "answer": one.answer,
            "contexts": [c.text for c in one.contexts],
        }
        for one in turns
    ]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "turns.parquet"
        pq.write_table(pa.Table.from_pylist(rows), path)
        evaluate(turns[:20], judge=LocalJudge(), progress=False)  # word vectors are loaded once
        times = [(*alone(turns), *backfilled(path)) for _ in range(_ROUNDS)]
    judge, judge_cpu, whole, whole_cpu = (min(one) for one in zip(*times, strict=True))
    print(f"{count:,} turns: judge alone {judge:.1f} s, backfill {whole:.1f} s: {whole / judge:.2f} x")
    print(f"CPU: judge alone {judge_cpu:.1f} s, backfill {whole_cpu:.1f} s: {whole_cpu / judge_cpu:.2f} x")


if __name__ == "__main__":
    main()
