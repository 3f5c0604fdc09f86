"""What a vendor that takes 150 ms a request costs: SQLite beside it, and turns a second at the vendor's.

    python benchmarks/slow_sinks.py

Every turn carries five Scores; LangSmith takes one a request, MLflow is asked first which it has. The server
is on the loopback, in a process of its own, as what is measured is how the sinks wait.
"""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import tempfile
import time
from collections.abc import Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any
from uuid import UUID

from steelyard.metrics import AspectCritique
from steelyard.online import Monitor
from steelyard.questions import Answer, Question, Request, YesNo
from steelyard.record import Context, Record, TraceRef
from steelyard.scores import Evaluation
from steelyard.sinks import LangSmithSink, MLflowSink, Sink, SQLiteSink
from steelyard.testing import ScriptedJudge

SECONDS = 0.15
TURNS = 300
ROUNDS = 3


def serve(pipe: Connection) -> None:
    """Answer every request after a while."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def reply(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            time.sleep(SECONDS)
            body = json.dumps({"trace": {"trace_info": {"assessments": []}}}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_POST = do_PATCH = reply

        def log_message(self, *_: Any) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    pipe.send(server.server_address[1])
    server.serve_forever()


def turn(number: int) -> Record:
    """One turn with a place in a trace."""
    return Record(
        question="Who found polonium?",
        answer="Marie Curie found polonium.",
        contexts=(Context(text="Marie Curie found polonium in 1898."),),
        trace=TraceRef(
            trace_id=f"{number + 1:032x}", span_id=f"{number + 1:016x}", run_id=str(UUID(int=number + 1))
        ),
    )


def yes(question: Question, request: Request) -> Answer:
    """What the judge says."""
    return YesNo(value=True)


class Slow:
    """Takes 150 ms for each turn, and no time of the processor."""

    name = "slow"

    async def write(self, evaluations: Sequence[Evaluation]) -> None:
        """Wait."""
        await asyncio.sleep(SECONDS * len(evaluations))

    async def aclose(self) -> None:
        """Nothing to close."""


def run(sinks: Sequence[Sink]) -> dict[str, float]:
    """Seconds until each sink but the slow one has all turns, by its name."""
    aspects = ("clear", "kind", "short", "polite", "useful")
    metrics = [AspectCritique(aspect=name, criterion=f"The answer is {name}.") for name in aspects]
    monitor = Monitor(metrics=metrics, judge=ScriptedJudge(yes), sinks=sinks)
    monitor.start()
    started = time.perf_counter()
    for number in range(TURNS):
        monitor.submit(turn(number))
    done: dict[str, float] = {}
    names = {sink.name for sink in sinks} - {Slow.name}
    while len(done) < len(names):
        for name, counts in monitor.stats().sinks.items():
            if counts.written == TURNS:
                done.setdefault(name, time.perf_counter() - started)
            assert not counts.lost, counts
        time.sleep(0.002)
    monitor.close(0)
    return done


def main() -> None:
    """Measure and print."""
    ours, theirs = multiprocessing.Pipe()
    server = multiprocessing.get_context("spawn").Process(target=serve, args=(theirs,), daemon=True)
    server.start()
    url = f"http://127.0.0.1:{ours.recv()}"
    with tempfile.TemporaryDirectory() as folder:
        alone: list[float] = []
        beside: list[float] = []
        for number in range(ROUNDS):
            alone += run([SQLiteSink(Path(folder) / f"alone{number}.db")]).values()
            beside += run([SQLiteSink(Path(folder) / f"beside{number}.db"), Slow()]).values()
            for vendor in (LangSmithSink(url, api_key="k"), MLflowSink(url)):
                (seconds,) = run([vendor]).values()
                print(f"{vendor.name}: {TURNS / seconds:.1f} turns a second")
        print(f"SQLite, {TURNS} turns: alone {min(alone):.2f} s, beside a slow sink {min(beside):.2f} s")
    server.terminate()


if __name__ == "__main__":
    main()
