"""What `steelyard worker` costs for a turn: processor time, the way it is run in production.

Turns of five passages are put into a spool file; `steelyard worker --once` judges them with a chat model
behind HTTP on this machine and writes the results into a SQLite file. What a run with a hundred turns takes
is left out: starting, importing and opening. The judge's server runs in this process and is not counted.

    python benchmarks/worker.py [--turns 2000] [--metrics faithfulness] [--against OTHER/bin/steelyard]

With `--against`, another version takes turns with this one, on the same turns and server; the ratio is of
the medians.
"""

from __future__ import annotations

import argparse
import json
import os
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path

from steelyard.online import Monitor, SpoolSettings
from steelyard.record import Context, Record

sys.path.append(str(Path(__file__).resolve().parents[1] / "tests" / "parts"))
from judge_server import JudgeServer

_FEW = 100
OWN = Path(sys.executable).with_name("steelyard")


def turn(number: int) -> Record:
    """A turn of some four thousand characters."""
    text = f"Marie Curie found polonium in 1898; this is passage {number}. " * 12
    return Record(
        id=f"turn-{number}",
        question="Who found polonium, and when?",
        answer="Marie Curie found polonium in 1898. She named it after Poland. It is radioactive.",
        contexts=tuple(Context(text=f"{text} ({rank})", score=0.9, rank=rank) for rank in range(5)),
    )


def filled(spool: Path, turns: int) -> None:
    """Put turns into a spool file, as an application that does not judge does."""
    monitor = Monitor(
        metrics=[], sinks=[], max_queue=turns + 1, spool=SpoolSettings(path=spool, evaluate=False)
    )
    for number in range(turns):
        monitor.submit(turn(number))
    monitor.close(120)


def worked(
    command: Path, server: JudgeServer, turns: int, metrics: str, concurrency: int
) -> tuple[float, float]:
    """Seconds of processor time, and by the clock, of a worker that judges so many turns."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        filled(folder / "turns.db", turns)
        environment = {
            **os.environ,
            "STEELYARD_SINKS": f"sqlite:{folder / 'results.db'}",
            "STEELYARD_METRICS": metrics,
            "STEELYARD_JUDGE": "openai:served",
            "STEELYARD_BASE_URL": server.url,
        }
        arguments = ["worker", "--spool", str(folder / "turns.db"), "--once"]
        arguments += ["--concurrency", str(concurrency)]
        started = time.perf_counter()
        process = subprocess.Popen(
            [command, *arguments], env=environment, cwd=folder, stdout=subprocess.DEVNULL
        )
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        took = time.perf_counter() - started
        assert process.returncode == 0, process.returncode
        with closing(sqlite3.connect(folder / "results.db")) as results:
            (stored,) = results.execute("SELECT count(*) FROM scores WHERE status = 'scored'").fetchone()
            assert stored == turns * len(metrics.split(",")), stored
        server.received.clear()
        return used.ru_utime + used.ru_stime, took


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--turns", type=int, default=2000)
    parser.add_argument("--metrics", default="faithfulness", help="two requests for each turn")
    parser.add_argument("--concurrency", type=int, default=25)
    parser.add_argument("--latency", type=float, default=0.05, help="of the judge, in seconds")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--against", type=Path, action="append", default=[])
    options = parser.parse_args()
    found: dict[Path, list[float]] = {command: [] for command in (OWN, *options.against)}
    with JudgeServer(latency=options.latency) as server:
        for _ in range(options.rounds):
            for command, costs in found.items():
                how = (options.metrics, options.concurrency)
                idle, quick = worked(command, server, _FEW, *how)
                busy, slow = worked(command, server, _FEW + options.turns, *how)
                costs.append((busy - idle) / options.turns * 1e3)
                print(
                    f"{command}: {costs[-1]:.2f} ms, {options.turns / (slow - quick):.0f} turns a second",
                    flush=True,
                )
    medians = {str(command): round(statistics.median(costs), 2) for command, costs in found.items()}
    ratios = {name: round(median / medians[str(OWN)], 2) for name, median in medians.items()}
    print(json.dumps({"ms_per_turn": medians, "ratio": ratios, "load": round(os.getloadavg()[0], 1)}))


if __name__ == "__main__":
    main()
