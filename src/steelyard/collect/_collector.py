"""The Collector: what is received becomes durable, then turns, then a Monitor's.

    request -> journal (committed: the sender is told) -> turns -> Monitor -> spool -> out of the journal

What is in the journal at a crash is read again at the next start. A turn that was handed over before comes
out with the same id, and the spool knows it.
"""

from __future__ import annotations

import asyncio
import sqlite3
import threading
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, Protocol, TypeVar

from steelyard._internal.logs import SafeLogger, WarnOnce
from steelyard._internal.text import error_place, error_words
from steelyard._internal.threads import DaemonExecutor
from steelyard.collect._journal import JournalFull, SpanJournal
from steelyard.online import Monitor
from steelyard.record import Record, TraceRef

Signal = Literal["traces", "logs"]
"""What a request is about, as its path says."""


class ReadExport(Protocol):
    """What one request holds."""

    @property
    def pieces(self) -> Mapping[str, bytes]:
        """What it holds of each trace, by trace id."""

    @property
    def spans(self) -> int:
        """How many spans there are in the pieces."""

    @property
    def log_records(self) -> int:
        """How many log records there are in the pieces; those without a model call's content are not."""

    @property
    def refused(self) -> int:
        """Spans, or log records with content, that were left out."""


_Export = TypeVar("_Export", bound=ReadExport)


class SpanReader(Protocol[_Export]):
    """Reads requests, answers them, and puts turns together; `take` and what follows run in one thread."""

    def read(self, body: bytes, *, is_json: bool, signal: Signal, session: str) -> _Export:
        """Take a request apart by trace; turns whose spans name no session are given this one."""

    def success(self, export: _Export, *, is_json: bool) -> bytes:
        """The body that answers a request whose spans or log records are safe."""

    def failure(self, message: str, *, is_json: bool, passes: bool) -> bytes:
        """The body that answers any other request; `passes` where it may be sent again."""

    def take(self, piece: bytes, now: float) -> None:
        """Read what a request held of one trace. May raise anything."""

    def ready(self, now: float) -> list[Record]:
        """Take out every turn that is complete now."""

    def holds(self, trace_id: str) -> bool:
        """Whether anything of a trace may still become a turn, or part of one."""

    @property
    def spans(self) -> int:
        """Spans and log records that are held until their turns are complete."""

    @property
    def counts(self) -> Mapping[str, int]:
        """What became of spans and traces."""


_log = SafeLogger("steelyard.collect")
# How late a trace may be noticed as complete where no new spans come.
_TICK: Final = 0.1
_LOOK: Final = 0.01
_PAUSE: Final = 1.0
_TO_STORE: Final = 5.0
"""Seconds for which the last turns may take to be stored when the collector is closed."""
_NEARLY_FULL: Final = 0.9  # so that spans wait in the journal before turns are refused
_MOST_HELD: Final = 200_000
"""Spans that may wait for the rest of their turns; then the journal fills up, and senders come back later."""
_HANDED_AT_ONCE: Final = 500
_LOOKED_EVERY: Final = 16  # asking the queue after each turn would cost more than handing it over


@dataclass(frozen=True, kw_only=True, slots=True)
class CollectorCounts:
    """What has become of everything that was received since the start."""

    requests: int
    """Requests that were stored and acknowledged."""
    spans: int
    """Spans in them."""
    refused_spans: int
    """Spans in them that were refused, and reported as such to the sender."""
    log_records: int = 0
    """Log records in them that carry content of a span; others are not kept."""
    refused_log_records: int = 0
    """Log records with content in them that were refused, since they name no span."""
    refused_requests: Mapping[str, int] = field(default_factory=dict)
    """Requests that were not stored, by cause."""
    assembled: Mapping[str, int] = field(default_factory=dict)
    """What became of what was stored: `spans` and `log_records` read, `turns` handed over, and why the rest
    gave none."""
    unreadable: int = 0
    """Stored pieces that could not be read and were given up."""
    held_spans: int = 0
    """Spans and log records that wait for the rest of their turn."""
    journal_bytes: int = 0
    """Size of what is in the journal."""


class Collector:
    """Receives spans and turns them into a Monitor's turns; nothing that was acknowledged is lost by a crash.

    Args:
        journal: Where spans are stored until their turns are safe.
        reader: Reads requests and puts turns together.
        monitor: Takes the turns. It should have a spool: without one, turns that wait to be judged keep their
            spans in the journal.
    """

    def __init__(self, *, journal: SpanJournal, reader: SpanReader[Any], monitor: Monitor) -> None:
        self.reader = reader
        self._journal = journal
        self._monitor = monitor
        self._waiting: list[tuple[Mapping[str, bytes], asyncio.Future[None]]] = []
        self._on_the_way = 0
        self._committing: asyncio.Task[None] | None = None
        self._executor = DaemonExecutor(1, name="steelyard-journal")
        self._read = 0
        self._open: dict[str, None] = {}
        self._turns: list[Record] = []
        self._kept: set[str] = set()
        self._settled: list[str] = []
        self._settled_upto = 0
        self._refused: Counter[str] = Counter()
        self._counts: Counter[str] = Counter()
        self._warn = WarnOnce(_log)
        self._stopping = threading.Event()
        self._news = threading.Event()
        self._thread: threading.Thread | None = None

    # In the server's event loop.

    async def store(self, export: ReadExport, *, signal: Signal = "traces") -> None:
        """Return when the spans, or the log records, of a request are safe.

        Raises:
            JournalFull: If there is no room for them now.
            sqlite3.Error: If they cannot be stored.
        """
        # With what is being stored, or requests side by side would pass the bound together.
        size = sum(map(len, export.pieces.values()))
        if not self._journal.room_for(size + self._on_the_way):
            raise JournalFull("the journal is full")
        if export.pieces:
            stored: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append((export.pieces, stored))
            self._on_the_way += size
            # One task for all: whatever comes while it commits goes into its next commit.
            if self._committing is None:
                self._committing = asyncio.create_task(self._commit())
            await stored
        self._counts["requests"] += 1
        self._counts["spans"] += export.spans
        self._counts["log_records"] += export.log_records
        self._counts["refused_spans" if signal == "traces" else "refused_log_records"] += export.refused

    async def _commit(self) -> None:
        """Store what waits: whatever comes during one commit shares the next."""
        try:
            while self._waiting:
                batch, self._waiting = self._waiting, []
                adding = self._executor.submit(self._journal.add, [pieces for pieces, _ in batch])
                problem: Exception | None = None
                try:
                    await asyncio.wrap_future(adding)
                except Exception as error:  # noqa: BLE001 - told to each sender
                    problem = error
                finally:
                    self._on_the_way -= sum(len(body) for pieces, _ in batch for body in pieces.values())
                for _, stored in batch:
                    if stored.done():
                        continue  # its sender has gone away
                    if problem is None:
                        stored.set_result(None)
                    else:
                        stored.set_exception(problem)
                # In any case: the thread looks for itself what is there.
                self._news.set()
        finally:
            self._committing = None

    def refuse(self, cause: str) -> None:
        """Count a request that was not stored."""
        self._refused[cause] += 1

    # In a thread of its own.

    def start(self) -> None:
        """Begin, with what an earlier process has left in the journal."""
        self._monitor.on_decision(self._decided)
        self._monitor.start()
        self._thread = threading.Thread(target=self._run, name="steelyard-collect", daemon=True)
        self._thread.start()

    def close(self, timeout: float = 10.0) -> int:
        """Stop. What is not complete stays in the journal for the next start.

        Returns:
            How many pieces of traces are left there.
        """
        self._stopping.set()
        self._news.set()
        if self._thread is not None:
            self._thread.join(timeout)
        self._executor.shutdown()
        left = len(self._journal)
        self._journal.close()
        return left

    @property
    def counts(self) -> CollectorCounts:
        """What has become of everything so far."""
        return CollectorCounts(
            requests=self._counts["requests"],
            spans=self._counts["spans"],
            refused_spans=self._counts["refused_spans"],
            log_records=self._counts["log_records"],
            refused_log_records=self._counts["refused_log_records"],
            refused_requests=dict(self._refused),
            assembled=dict(self.reader.counts),
            unreadable=self._counts["unreadable"],
            held_spans=self.reader.spans,
            journal_bytes=self._journal.bytes,
        )

    def _run(self) -> None:
        while not self._stopping.is_set():
            busy = False
            try:
                busy = self._work()
            except sqlite3.Error as error:
                self._warn("journal", "the journal cannot be used: %s; trying on", error_words(error))
                self._stopping.wait(_PAUSE)
            except Exception as error:  # noqa: BLE001 - nothing may end the thread
                self._warn("failed", "putting turns together failed: %s; trying on", error_place(error))
                self._stopping.wait(_PAUSE)
            if not busy:
                self._news.wait(_TICK)
                self._news.clear()
        self._end()

    def _end(self) -> None:
        """Forget what was handed over last, if it is stored soon; if not, the next start reads it again."""
        deadline = time.monotonic() + _TO_STORE
        try:
            while self._monitor.stats().pending:
                if time.monotonic() > deadline:
                    return
                time.sleep(_LOOK)
            self._forget_settled()
        except sqlite3.Error as error:
            self._warn(
                "journal", "the journal cannot be used: %s; check its disk and rights", error_words(error)
            )

    def _work(self) -> bool:
        """Read on, hand over what is complete, forget what is settled; whether there is more to read."""
        # Turns would go into memory, which a crash loses, while their spans are forgotten here.
        if self._waits_for_spool():
            return False
        # Full of traces that wait: reading on would only make it fuller.
        rows = self._journal.after(self._read) if self.reader.spans < _MOST_HELD else []
        now = time.monotonic()
        for seq, trace_id, body in rows:
            self._take(seq, trace_id, body, now)
        try:
            self._turns.extend(self.reader.ready(now))
        except Exception:
            # Which of the open traces have lost their turns cannot be told: the next start reads them again.
            self._kept.update(self._open)
            raise
        # What was handed over last time has been stored while these were read and put together.
        if not self._is_stored():
            return False
        self._forget_settled()
        if not self._hand_over():
            return False
        self._settled = [trace_id for trace_id in self._open if not self.reader.holds(trace_id)]
        # Later pieces of the same trace are not covered by this, and stay.
        self._settled_upto = self._read
        for trace_id in self._settled:
            del self._open[trace_id]
        return bool(rows)

    def _forget_settled(self) -> None:
        """Take out of the journal what was settled the last time; its turns are stored by now."""
        # The trace of a turn for which there was no room comes again at the next start.
        gone = [trace_id for trace_id in self._settled if trace_id not in self._kept]
        if gone:
            self._journal.forget(gone, upto=self._settled_upto)
        self._settled = []

    def _take(self, seq: int, trace_id: str, body: bytes, now: float) -> None:
        self._read = seq
        self._open[trace_id] = None
        try:
            self.reader.take(body, now)
        except Exception as error:  # noqa: BLE001 - one odd piece must not cost the others
            self._counts["unreadable"] += 1
            self._warn("unreadable", "a piece of a trace cannot be read: %s", error_place(error))

    def _waits_for_spool(self) -> bool:
        """Whether the spool takes nothing now. What it does not take would be judged here, out of memory."""
        spool = self._monitor.options.spool
        counts = self._monitor.stats().spool
        if spool is None or (counts is not None and counts.bytes <= _NEARLY_FULL * spool.max_bytes):
            return False
        if counts is not None:  # else the Monitor says why it cannot be used
            self._warn(
                "spool",
                "the spool is nearly full; spans stay in the journal until there is room; "
                "start another worker, or raise its max_bytes",
            )
        self._stopping.wait(_TICK if counts is None else _PAUSE)
        return True

    def _decided(self, trace: TraceRef | None, reason: str) -> None:
        """A turn is not to be judged. One for which there was no room stays here, for the next start."""
        if (
            reason in ("queue_full", "queue_unavailable", "spool_full")
            and trace is not None
            and trace.trace_id is not None
        ):
            self._kept.add(trace.trace_id)
            self._warn(
                "full",
                "the spool is full; the spans of some turns stay in the journal until the next start; "
                "start another worker, or raise its max_bytes",
            )

    def _is_stored(self) -> bool:
        """Wait until the Monitor has stored or decided all that it was given; False where this is to end."""
        while self._monitor.stats().pending:
            if self._stopping.wait(_LOOK):
                return False
        return True

    def _hand_over(self) -> bool:
        """Give turns to the Monitor, so many at a time as it has room for; False where this is to end."""
        options = self._monitor.options
        while self._turns:
            batch = self._turns[: min(_HANDED_AT_ONCE, options.max_queue)]
            for number, record in enumerate(batch):
                # Not before each of them: this costs as much as a good part of what a turn does.
                if not number % _LOOKED_EVERY:
                    # Half, since the other half may be taken by what is on the way meanwhile.
                    while self._monitor.stats().queued_bytes > options.max_queue_bytes // 2:
                        time.sleep(_LOOK)
                self._monitor.submit(record)
            del self._turns[: len(batch)]
            if self._turns and not self._is_stored():
                return False
        return True
