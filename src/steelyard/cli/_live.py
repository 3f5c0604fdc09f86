"""What `steelyard doctor` tells of turns while they come: what was taken for what."""

from __future__ import annotations

import contextlib
import queue
import re
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from steelyard._internal.text import printable, shorten
from steelyard.cli._program import Program
from steelyard.cli._say import counted, say
from steelyard.cli._server import check_uvicorn, obey_once, serve_until_stopped
from steelyard.collect import CollectorCounts, JournalFull, ReadExport, Signal, SpanReader, app
from steelyard.errors import ConfigurationError
from steelyard.online import Monitor
from steelyard.record import Record
from steelyard.recording import Draft, attach_recorders
from steelyard.recording.explaining import Part, explain

_WIDTH = 100
_PASSAGES = 12


def lines_of(record: Record, number: int) -> Iterator[str]:
    """The page of one turn."""
    found = explain(record)
    trace = record.trace
    of = [trace.framework or "" if trace else "", trace.trace_id or "" if trace else "", record.status]
    yield f"turn {number}  {shorten('  '.join(filter(None, of)), _WIDTH)}"
    yield _line("question", found.question)
    for at, part in enumerate(found.passages[:_PASSAGES], 1):
        yield _line(f"passage {at}", part)
    if not found.passages:
        yield "  passages    none"
    elif len(found.passages) > _PASSAGES:
        yield f"  and {len(found.passages) - _PASSAGES} more passages"
    yield _line("answer", found.answer)
    for doubt in found.doubts:
        yield f"  note        {shorten(doubt.note, 400)}"
        if doubt.option:
            yield f"  settled by  {doubt.option}"


def _line(name: str, part: Part) -> str:
    if not part.text:
        return f"  {name:<11} not found"
    return f"  {name:<11} {shorten(part.how, 160)}\n              {shorten(part.text, _WIDTH)}"


class Looker:
    """A target of turns that judges nothing, stores nothing and sends nothing: it prints them.

    Args:
        turns: After so many it shows no more, and `done` is set.
    """

    def __init__(self, turns: int) -> None:
        self._most = turns
        self._kinds: Counter[str] = Counter()
        self._others = 0
        # An application ends turns in several threads, and each is a page in one piece.
        self._lock = threading.Lock()
        self.done = threading.Event()
        """Whether enough turns were shown."""

    def submit(self, turn: Record | Draft) -> None:
        """Print a turn; never raises."""
        # The application may have closed what is printed to.
        with self._lock, contextlib.suppress(OSError, ValueError):
            if self.done.is_set():
                return
            # A Draft never raises; a Monitor of the application would leave a turn of None out as well.
            record = turn if isinstance(turn, Record) else turn.build()
            if record is None:
                self._others += 1
                return
            self._kinds[record.evidence or "none"] += 1
            if self._kinds.total() >= self._most:
                self.done.set()
            for line in lines_of(record, self._kinds.total()):
                say(printable(line, lines=True))

    def close(self) -> int:
        """Print what the turns come to; returns how many were shown."""
        with self._lock:
            shown = self._kinds.total()
            kinds = ", ".join(f"{kind} {count}" for kind, count in self._kinds.most_common())
            say(f"{counted(shown, 'turn')} shown{f'; passages: {kinds}' if kinds else ''}")
            if self._others:
                say(f"{counted(self._others, 'run')} answered nothing from passages, and gave no record")
            return shown


@contextmanager
def in_place_of_monitors(looker: Looker) -> Iterator[None]:
    """Within, whatever this process hands to a Monitor goes to the looker, its own Monitors' turns too.

    An application that attaches recorders itself is seen with its own options, and none of its turns is
    judged or stored meanwhile.
    """
    submit = Monitor.submit

    def look(self: Monitor, turn: Record | Draft) -> None:
        looker.submit(turn)

    Monitor.submit = look  # type: ignore[method-assign]
    try:
        yield
    finally:
        Monitor.submit = submit  # type: ignore[method-assign]


_PYTHON = re.compile(r"python[\d.]{0,8}")


def look_at_program(words: Sequence[str], *, turns: int) -> int:
    """Run a program in this process and print what each of its first turns was taken to be.

    Args:
        words: The program and its arguments, with or without `python` and `-m` before it.
        turns: How many turns to show; the program goes on afterwards.

    Returns:
        The exit status: 1 if no turn was seen.
    """
    program = _program(words)
    looker = Looker(turns)
    with in_place_of_monitors(looker):
        names = attach_recorders(looker)
        if not names:
            raise ConfigurationError(
                "there is nothing to record with; run: pip install 'steelyard[langchain]' (or [llamaindex])"
            )
        say(f"watching {', '.join(names)}; nothing is judged, stored or sent", err=True)
        shown = 0
        try:
            program.become()
        finally:
            shown = looker.close()
            if not shown:
                say("no RAG turn was seen in this process; turns of other processes are not")
    return 0 if shown else 1


def _program(words: Sequence[str]) -> Program:
    rest = list(words)
    if _PYTHON.fullmatch(Path(rest[0]).name):
        rest = rest[1:]
    is_module = rest[:1] == ["-m"]
    rest = rest[1:] if is_module else rest
    if not rest:
        raise ConfigurationError("name a program: steelyard doctor --live -- app.py")
    if not is_module and Path(rest[0]).suffix in (".json", ".jsonl"):
        raise ConfigurationError(f"{rest[0]!r} is not a program; to read traces leave out --live")
    program = Program(name=rest[0], arguments=rest[1:], is_module=is_module)
    program.find()
    return program


_HOST = "127.0.0.1"
_TICK = 0.1
_QUIET = 2.0
"""Seconds without a new span after which a trace is complete; exporters send every five by default."""
_MOST_SPANS = 200_000
_PIECES = 10_000
_EXPECTED = frozenset({"spans", "log_records", "turns"})


def look_at_spans(port: int, *, turns: int) -> int:
    """Receive OTLP on this machine until so many turns were shown, or Ctrl-C; returns the exit status."""
    from steelyard_opentelemetry.received import ReceivedSpans

    check_uvicorn("collect")
    reader = ReceivedSpans(quiet=_QUIET)
    reader.check()
    looker = Looker(turns)
    seen = SpansSeen(reader, looker)

    def ready(address: str) -> None:
        obey_once()
        say(f"watching spans sent to {address}v1/traces (Ctrl-C ends it)", err=True)

    serve_until_stopped(app(seen), host=_HOST, port=port, ready=ready, lifespan=False, done=looker.done)
    seen.close()
    shown = looker.close()
    causes = {name: count for name, count in reader.counts.items() if name not in _EXPECTED}
    for name, count in causes.items():
        say(f"{count:>6} {name}")
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

    async def store(self, export: ReadExport, *, signal: Signal = "traces") -> None:
        """Take the spans, or the log records, of a request."""
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
