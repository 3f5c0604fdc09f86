"""`steelyard doctor --otlp PORT`: the turns in spans that an application sends, with nothing kept of them."""

from __future__ import annotations

import contextlib
import queue
import threading
import time
from collections import Counter
from collections.abc import Mapping
from typing import Any

import typer

from steelyard.cli._server import check_uvicorn, serve_until_stopped
from steelyard.cli.commands.recording._collect import obey_once
from steelyard.cli.live._looker import Looker
from steelyard.collect import CollectorCounts, Export, JournalFull, Signal, SpanReader, app

_HOST = "127.0.0.1"
_TICK = 0.1
_QUIET = 2.0
"""Seconds without a new span after which a trace is complete; exporters send every five by default."""
_MOST_SPANS = 200_000
_PIECES = 10_000
_EXPECTED = frozenset({"spans", "log_records", "turns"})


def look_at_spans(port: int, *, turns: int) -> int:
    """Receive OTLP on this machine until so many turns were shown, or Ctrl-C; returns the exit status.

    Raises:
        MissingDependency: If a server or protobuf is not installed.
    """
    from steelyard_opentelemetry.received import ReceivedSpans

    check_uvicorn("collect")
    reader = ReceivedSpans(quiet=_QUIET)
    reader.check()
    looker = Looker(turns)
    seen = SpansSeen(reader, looker)

    def ready(address: str) -> None:
        obey_once()
        typer.echo(f"watching spans sent to {address}v1/traces (Ctrl-C ends it)", err=True)

    serve_until_stopped(app(seen), host=_HOST, port=port, ready=ready, lifespan=False, done=looker.done)
    seen.close()
    shown = looker.close()
    causes = {name: count for name, count in reader.counts.items() if name not in _EXPECTED}
    for name, count in causes.items():
        typer.echo(f"{count:>6} {name}")
    return 0 if shown else 1


class SpansSeen:
    """Takes spans in place of a Collector: they are put together and shown, and never written down."""

    def __init__(self, reader: SpanReader[Any], looker: Looker) -> None:
        self.reader = reader
        self._looker = looker
        self._pieces: queue.Queue[bytes] = queue.Queue(_PIECES)
        self._counts: Counter[str] = Counter()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="steelyard-doctor-spans", daemon=True)
        self._thread.start()

    async def store(self, export: Export, *, signal: Signal = "traces") -> None:
        """Take the spans, or the log records, of a request.

        Raises:
            JournalFull: If so many wait already that there is no room.
        """
        if self.reader.spans > _MOST_SPANS or self._pieces.qsize() + len(export.pieces) > _PIECES:
            raise JournalFull("there is no room")
        for piece in export.pieces.values():
            self._pieces.put_nowait(piece)
        self._counts["requests"] += 1
        self._counts["spans"] += export.spans

    def refuse(self, cause: str) -> None:
        """Count a request that was not taken."""
        self._counts[cause] += 1

    @property
    def counts(self) -> CollectorCounts:
        """What has become of everything so far."""
        assembled: Mapping[str, int] = dict(self.reader.counts)
        return CollectorCounts(
            requests=self._counts["requests"],
            spans=self._counts["spans"],
            refused_spans=0,
            assembled=assembled,
        )

    def close(self) -> None:
        """Show what is complete, and stop."""
        self._stopping.set()
        self._thread.join(10)

    def _run(self) -> None:
        while not self._stopping.is_set():
            with contextlib.suppress(queue.Empty):
                self._take(self._pieces.get(timeout=_TICK))
                while True:
                    self._take(self._pieces.get_nowait())
            for record in self.reader.ready(time.monotonic()):
                self._looker.submit(record)

    def _take(self, piece: bytes) -> None:
        # One odd piece must not cost the others; what cannot be read gives no record.
        with contextlib.suppress(Exception):
            self.reader.take(piece, time.monotonic())
