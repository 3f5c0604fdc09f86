"""What a backfill costs beside its judge, and what a second Ray actor brings.

    python benchmarks/backfill.py DATA.jsonl [TURNS] [--ray [URL]]

DATA holds records (`question`, `contexts`, `answer`), repeated under numbered questions until there are TURNS
of them (default 2,000). They are written to Parquet; then the local judge scores them alone, out of memory,
and `Backfill` scores them from Parquet into SQLite, in turns, three times each; the fastest of each counts.
Both seconds and CPU seconds of the process are shown: other programs disturb the second less.

With `--ray`, one and two actors judge instead: with the local judge and its defaults, or with the server
at URL, one metric and two turns in flight in each actor, where the time is that of waiting and cores matter
little.
"""

from __future__ import annotations

import asyncio
import logging
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

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


def backfilled(path: Path, scorer: Any = None) -> tuple[float, float]:
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
        work = Backfill(found, options=options, results=db, scorer=scorer)
        first: list[float] = []
        started, worked = time.perf_counter(), time.process_time()
        counts = asyncio.run(work.run(lambda _: first.append(time.perf_counter())))
        ended = time.perf_counter()
        assert counts.judged == counts.read
        # Actors take seconds to start; what counts is how fast they go.
        return ended - (started if scorer is None else first[0]), time.process_time() - worked


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
        if "--ray" in sys.argv:
            _ray(path, count)
            return
        evaluate(turns[:20], judge=LocalJudge(), progress=False)  # word vectors are loaded once
        times = [(*alone(turns), *backfilled(path)) for _ in range(_ROUNDS)]
    judge, judge_cpu, whole, whole_cpu = (min(one) for one in zip(*times, strict=True))
    print(f"{count:,} turns: judge alone {judge:.1f} s, backfill {whole:.1f} s: {whole / judge:.2f} x")
    print(f"CPU: judge alone {judge_cpu:.1f} s, backfill {whole_cpu:.1f} s: {whole_cpu / judge_cpu:.2f} x")


def _ray(path: Path, count: int) -> None:
    import ray

    from steelyard_ray import RayScorer

    ray.init(num_cpus=3, log_to_driver=False, include_dashboard=False, logging_level=logging.ERROR)
    server: dict[str, Any] = {}
    if sys.argv[-1] != "--ray":
        server = {"judge": "openai:stub", "base_url": sys.argv[-1], "metrics": ["faithfulness"]}
    one, two = (backfilled(path, RayScorer(actors=actors, concurrency=2, **server))[0] for actors in (1, 2))
    print(f"{count:,} turns in Ray: 1 actor {one:.1f} s, 2 actors {two:.1f} s: {one / two:.2f} x")
    ray.shutdown()


if __name__ == "__main__":
    main()
