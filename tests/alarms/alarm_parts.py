"""Scored turns and a server to be told, for the tests of the alarms room."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from steelyard.record import Record, TraceRef
from steelyard.scores import Direction, Evaluation, Provenance, Score

START = 1_760_000_000.0
SHOWS_SOON = 30.0


def scored(
    number: int,
    value: float | None,
    *,
    inclusion: float = 1.0,
    metric: str = "faithfulness",
    direction: Direction = "higher",
    judge: str = "local-lexical",
    prompt: str = "3",
    version: str = "1",
    **record: Any,
) -> Evaluation:
    record = {"session": f"own {number}", **record}
    score = Score(
        metric=metric,
        status="failed" if value is None else "scored",
        value=value,
        direction=direction,
        inclusion_probability=inclusion,
        provenance=Provenance(judge=judge, prompt_version=prompt, metric_version=version),
        id=f"s{number}",
    )
    return Evaluation(
        record_id=f"r{number}",
        scores=(score,),
        record=Record(id=f"r{number}", question="q", answer="a", **record),
        trace=TraceRef(trace_id=f"{number:032x}", span_id=f"{number:016x}"),
        evaluated_at=START + number,
    )


class Ear:
    """A server on the loopback interface that notes what it is told."""

    def __init__(self) -> None:
        self.heard: list[tuple[str, dict[str, Any]]] = []
        self.replies: list[int] = []
        self.release = threading.Event()
        self.release.set()
        self.came = threading.Semaphore(0)
        ear = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                ear.heard.append((self.path, json.loads(body)))
                ear.came.release()
                ear.release.wait(SHOWS_SOON)
                status = ear.replies.pop(0) if ear.replies else 200
                self.send_response(status)
                if status == 302:
                    self.send_header("Location", "/elsewhere")
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def close(self) -> None:
        self.release.set()
        self._server.shutdown()
        self._server.server_close()


@contextmanager
def listening() -> Iterator[Ear]:
    ear = Ear()
    try:
        yield ear
    finally:
        ear.close()
