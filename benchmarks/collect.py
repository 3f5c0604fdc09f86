"""How many spans a second `steelyard collect` takes, and whether a kill loses any that it acknowledged.

    python benchmarks/collect.py [TURNS] [ENDPOINTS] [--rate SPANS_A_SECOND]

Each turn has 10 spans: 4 of a RAG chain with 3 passages of 600 characters, 6 of HTTP and database clients.
They are sent as the Python exporter sends them, 512 spans a request in protobuf by resource and scope, over
4 connections to each endpoint; a turn lies in one request or in two. Several endpoints have a journal each
and one spool, and all spans of a trace go to the same one, as a Collector's load-balancing exporter sends
them. Turns are only stored (`--no-judge`).

Without a rate everything is sent at once: how fast it is acknowledged, and how fast it is worked off. With
one it is sent at that pace: what is sustained is stored soon after it was sent, however long that goes on (a
trace is complete after 2 seconds without news).
"""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import zip_longest
from pathlib import Path
from typing import Any

import urllib3
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

_BATCH = 512
_CONNECTIONS = 4
_BEGIN = 1_700_000_000_000_000_000
_PASSAGES = [f"Passage {n} says that Paris is the capital of France. ".ljust(600, "x") for n in range(3)]
_COMMAND = [sys.executable, "-c", "from steelyard.cli import main; main()", "collect", "--no-judge"]


def requests(turns: int) -> list[bytes]:
    """The turns as export requests."""
    made, request, count = [], _Request(), 0
    for number in range(turns):
        trace_id = os.urandom(16)
        for place in range(10):
            if count % _BATCH == 0 and count:
                made.append(request.body())
                request = _Request()
            _span(request, trace_id, number, place)
            count += 1
    return [*made, request.body()]


class _Request:
    """An export request of one process with two instrumentation scopes."""

    def __init__(self) -> None:
        self._message = ExportTraceServiceRequest()
        self._block = self._message.resource_spans.add()
        self._block.resource.attributes.add(key="service.name").value.string_value = "shop"
        self._scopes: dict[str, Any] = {}

    def spans(self, scope: str) -> Any:
        """The spans of a scope."""
        if scope not in self._scopes:
            self._scopes[scope] = self._block.scope_spans.add()
            self._scopes[scope].scope.name = scope
        return self._scopes[scope].spans

    def body(self) -> bytes:
        """What is sent."""
        return bytes(self._message.SerializeToString())


def _span(request: _Request, trace_id: bytes, number: int, place: int) -> None:
    spans = request.spans("openinference.instrumentation.langchain" if place < 4 else "http")
    span = spans.add(trace_id=trace_id, span_id=(place + 1).to_bytes(8, "big"))
    if place:
        span.parent_span_id = (1).to_bytes(8, "big")
    span.start_time_unix_nano = _BEGIN + place * 1_000_000
    span.end_time_unix_nano = _BEGIN + (20 - place) * 1_000_000
    question, answer = f"What is the capital of France, in case {number}?", "Paris is the capital of France."
    prompt = f"Context: {' '.join(_PASSAGES)}\nQuestion: {question}"
    kind, given, came = {
        0: ("CHAIN", question, answer),
        1: ("RETRIEVER", question, ""),
        2: ("LLM", prompt, answer),
        3: ("CHAIN", prompt, answer),
    }.get(place, ("", "", ""))
    found = {"openinference.span.kind": kind, "input.value": given, "output.value": came}
    if place == 1:
        found |= {f"retrieval.documents.{n}.document.content": text for n, text in enumerate(_PASSAGES)}
    if place > 3:
        found = {"http.request.method": "GET", "url.full": "http://store/items/1", "server.address": "store"}
    for key, value in found.items():
        if value:
            span.attributes.add(key=key).value.string_value = value


@contextlib.contextmanager
def endpoint(folder: Path, name: str) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """One endpoint with a journal of its own."""
    line = [*_COMMAND, "--port", "0", "--quiet", "2", "--journal", f"{name}.spans"]
    with subprocess.Popen(line, cwd=folder, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        said = process.stderr.readline()
        yield process, int(said.partition("/v1/")[0].rpartition(":")[2])
        process.terminate()


def seconds(pid: int) -> float:
    """Processor time that a process has used."""
    after_name = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(after_name[11]) + int(after_name[12])) / os.sysconf("SC_CLK_TCK")


def stored(folder: Path) -> int:
    """How many turns lie in the spool."""
    with contextlib.closing(sqlite3.connect(f"file:{folder / 'steelyard.spool'}?mode=ro", uri=True)) as db:
        return int(db.execute("SELECT COUNT(*) FROM turns").fetchone()[0])


def send(ports: list[int], bodies: list[list[bytes]], rate: float = float("inf")) -> int:
    """Send each endpoint its requests, so many spans a second; returns how many were acknowledged."""
    started = time.perf_counter()
    with ThreadPoolExecutor(_CONNECTIONS * len(ports)) as threads:
        pools = [urllib3.HTTPConnectionPool("127.0.0.1", port, maxsize=_CONNECTIONS) for port in ports]
        headers = {"content-type": "application/x-protobuf"}

        def post(to: urllib3.HTTPConnectionPool, body: bytes) -> int:
            try:
                reply = to.request("POST", "/v1/traces", body=body, headers=headers, retries=False)
                return int(reply.status == 200)
            except urllib3.exceptions.HTTPError:
                return 0

        # By turns, so that every endpoint has something to do from the first request to the last.
        sent: list[Future[int]] = []
        for each in zip_longest(*bodies):
            for pool, body in zip(pools, each, strict=True):
                if body:
                    time.sleep(max(0.0, started + len(sent) * _BATCH / rate - time.perf_counter()))
                    sent.append(threads.submit(post, pool, body))
        return sum(future.result() for future in sent)


def measure(turns: int, endpoints: int, rate: float) -> None:
    """How fast spans are acknowledged, and how fast their turns are stored."""
    shares = [requests(turns // endpoints + (at < turns % endpoints)) for at in range(endpoints)]
    spans = turns * 10
    with tempfile.TemporaryDirectory() as place, contextlib.ExitStack() as stack:
        folder = Path(place)
        running = [stack.enter_context(endpoint(folder, f"e{n}")) for n in range(endpoints)]
        before = sum(seconds(process.pid) for process, _ in running)
        started = time.perf_counter()
        assert send([port for _, port in running], shares, rate) == sum(map(len, shares))
        taken = time.perf_counter() - started
        print(
            f"{endpoints} endpoint(s): {spans:,} spans acknowledged in {taken:.1f} s: {spans / taken:,.0f}/s"
        )
        while stored(folder) < turns:
            time.sleep(0.1)
        whole = time.perf_counter() - started
        cpu = sum(seconds(process.pid) for process, _ in running) - before
        print(f"all {turns:,} turns in the spool after {whole:.1f} s: {spans / whole:,.0f} spans/s")
        print(f"the last of them {whole - taken:.1f} s after they were sent")
        print(f"processor time of the endpoints: {cpu / turns * 1e3:.2f} ms a turn")


def kill(turns: int) -> None:
    """How many turns are there after a kill right after the last 200."""
    bodies = requests(turns)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        with endpoint(folder, "e0") as (process, port):
            assert send([port], [bodies]) == len(bodies)
            os.kill(process.pid, signal.SIGKILL)
        before = stored(folder)
        with endpoint(folder, "e0"):
            deadline = time.monotonic() + 300
            while stored(folder) < turns and time.monotonic() < deadline:
                time.sleep(0.2)
        after = stored(folder)
        print(f"killed after the last 200: {before:,} turns stored; after a restart {after:,} of {turns:,}")


def main() -> None:
    """Measure, then kill."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("turns", type=int, nargs="?", default=5_000)
    parser.add_argument("endpoints", type=int, nargs="?", default=1)
    parser.add_argument("--rate", type=float, default=float("inf"))
    options = parser.parse_args()
    measure(options.turns, options.endpoints, options.rate)
    if options.rate == float("inf"):
        kill(options.turns)


if __name__ == "__main__":
    main()
