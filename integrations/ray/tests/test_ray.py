"""Turns scored on a real Ray cluster of this machine have the results that one process gives."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from steelyard import Monitor
from steelyard.backfill import Backfill, Columns, TracesFound, open_sources
from steelyard.judge import LocalJudge
from steelyard.metrics import parse_metrics
from steelyard.scores import Evaluation, evaluation_from_json
from steelyard.sinks import SQLiteSink, read_evaluations
from steelyard_ray import RayScorer, ScoreBatch

ray = pytest.importorskip("ray", reason="ray is not installed")
pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
pq = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")
pytest.importorskip("duckdb", reason="duckdb is not installed")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(300),
    # Ray leaves sockets and files to the garbage collector, and warns of what it will change.
    pytest.mark.filterwarnings(
        "ignore::ResourceWarning", "ignore::FutureWarning", "ignore::DeprecationWarning"
    ),
]
MAP = {"question": "prompt", "contexts": "docs", "answer": "reply"}


@pytest.fixture(scope="module", autouse=True)
def cluster() -> Iterator[None]:
    # Reading a dataset needs a CPU beside those of the two actors.
    os.environ["RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO"] = "0"
    ray.init(num_cpus=4, log_to_driver=False, include_dashboard=False, logging_level="ERROR")
    yield
    ray.shutdown()


def parquet(path: Path, count: int) -> Path:
    rows = [
        {
            "prompt": f"Who found element {number}?",
            "docs": ["Marie Curie found polonium in 1898.", f"Element {number} is a metal."],
            "reply": f"Element {number} is a metal. It was found in Paris.",
            "number": number,
        }
        for number in range(count)
    ]
    pq.write_table(pa.Table.from_pylist(rows), path, row_group_size=100)
    return path


def backfill(path: Path, db: Path, **more: Any) -> Backfill:
    def no_traces(_: object) -> TracesFound:
        raise AssertionError("there are no traces here")

    judge = LocalJudge()
    suite = parse_metrics(["faithfulness"], judge)
    options = Monitor(metrics=suite, judge=judge, sinks=[SQLiteSink(db)]).options
    found = open_sources([str(path)], columns=Columns(MAP), read_traces=no_traces)
    return Backfill(found, options=options, results=db, **more)


def ids(db: Path) -> set[str]:
    return {score.id for found in read_evaluations(db) for score in found.scores}


def test_map_batches_gives_the_results_of_a_backfill(tmp_path: Path) -> None:
    path = parquet(tmp_path / "t.parquet", 60)
    asyncio.run(backfill(path, tmp_path / "s.db").run())
    dataset = (
        ray.data.read_parquet(str(path))
        .repartition(4)
        .map_batches(
            ScoreBatch,
            fn_constructor_kwargs={"metrics": ["faithfulness"], "columns": MAP},
            concurrency=2,
            batch_size=16,
        )
    )
    rows = dataset.take_all()
    found = [evaluation_from_json(row["evaluation"]) for row in rows]
    assert {score.id for one in found for score in one.scores} == ids(tmp_path / "s.db")
    assert sorted(row["number"] for row in rows) == list(range(60))
    assert all(row["faithfulness"] == one["faithfulness"].value for row, one in zip(rows, found, strict=True))


def test_a_killed_actor_loses_nothing(tmp_path: Path) -> None:
    path, db = parquet(tmp_path / "t.parquet", 600), tmp_path / "s.db"
    scorer = RayScorer(metrics=["faithfulness"], actors=2)
    first = threading.Event()
    killed: list[int] = []

    def kill() -> None:
        first.wait(120)
        killed.extend(actors()[:1])
        for pid in killed:
            os.kill(pid, signal.SIGKILL)

    def advance(_: Evaluation) -> None:
        first.set()

    thread = threading.Thread(target=kill)
    thread.start()
    counts = asyncio.run(backfill(path, db, scorer=scorer).run(advance))
    thread.join()
    assert killed
    assert (counts.judged, counts.failed) == (600, 0)
    assert len(list(read_evaluations(db))) == 600
    again = asyncio.run(backfill(path, db).run())
    assert (again.known, again.judged) == (600, 0)


def actors() -> list[int]:
    """The processes of our own cluster that are judging now."""
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        found = [pid for pid in _below(os.getpid()) if b"_Actor" in _command(pid)]
        if found:
            return found
        time.sleep(0.05)
    return []


def _below(root: int) -> list[int]:
    parents: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            except OSError:
                continue
    found, ahead = [], [root]
    while ahead:
        parent = ahead.pop()
        children = [pid for pid, above in parents.items() if above == parent]
        found.extend(children)
        ahead.extend(children)
    return found


def _command(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""
