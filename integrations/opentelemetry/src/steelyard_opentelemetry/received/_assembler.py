"""Turns out of spans and log records that arrive in any order, from any process, in several requests.

A span processor is told when spans begin; who receives spans is not. A parent that has not come counts as
open, unless the exporter says that it belongs to another process; so does the span of a log record. A trace
that holds parts of a turn and no whole one is kept for a while. Everything else is done as the span processor
does it.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping
from typing import Final

from steelyard._internal.logs import SafeLogger
from steelyard._internal.warn_once import WarnOnce
from steelyard.record import Record
from steelyard_opentelemetry._open_turns import OpenTurns, Started
from steelyard_opentelemetry.building._extractor import Extraction, TurnExtractor
from steelyard_opentelemetry.received._wire import (
    Export,
    Signal,
    content_in,
    failure,
    message,
    read_export,
    spans_in,
    success,
)
from steelyard_opentelemetry.spans._span import Span

_log = SafeLogger("steelyard.opentelemetry")
# Who receives bounds what it takes in by bytes; a second bound here would lose spans that are stored.
_UNBOUNDED: Final = 1 << 40
_MOST_WAITING: Final = 4096
_EXPECTED = frozenset({"no_retrieval", "no_llm_spans", "orphan", "helper_call"})


class ReceivedSpans:
    """Reads OTLP requests, and puts turns together from their spans.

    It loses nothing: who calls it stops taking when `spans` is large enough. One service alone does not bring
    it there: while it holds very many spans, parents that do not come are waited for no longer than is quiet.

    Args:
        quiet: Seconds without news after which a trace whose spans are all there is complete. Exporters send
            every five seconds, so that it should be more than that.
        ttl: Seconds that a parent which does not come, or the rest of a turn, is waited for.
        most_of_sender: Spans of one service that are held for so long.
    """

    def __init__(self, *, quiet: float = 6.0, ttl: float = 60.0, most_of_sender: int = 50_000) -> None:
        self._extractor = TurnExtractor(patience=2 * ttl, most=_MOST_WAITING)
        self._turns = OpenTurns(
            quiet=quiet,
            ttl=ttl,
            max_traces=_UNBOUNDED,
            max_spans=_UNBOUNDED,
            read=self._extractor.candidates,
            patient=True,
            most_of_sender=most_of_sender,
        )
        self._extractor.awaits = self._turns.awaits
        self._lag = 0
        self._counts: Counter[str] = Counter()
        self._skipped: Counter[str] = Counter()
        self._warn_once = WarnOnce(_log)

    @staticmethod
    def check() -> None:
        """Raise a MissingDependency where OTLP in protobuf could not be read."""
        message("traces")

    def read(self, body: bytes, *, is_json: bool, signal: Signal = "traces", session: str = "") -> Export:
        """Take a request apart by trace; spans that name no session are given this one.

        Raises:
            InvalidRecord: If it is not an export request.
        """
        return read_export(body, is_json=is_json, signal=signal, session=session)

    def success(self, export: Export, *, is_json: bool) -> bytes:
        """The body that answers a request whose spans or log records are safe."""
        return success(export, is_json=is_json)

    def failure(self, message: str, *, is_json: bool, passes: bool) -> bytes:
        """The body that answers any other request; `passes` where it may be sent again."""
        return failure(message, is_json=is_json, passes=passes)

    def take(self, piece: bytes, now: float) -> None:
        """Read what a request held of one trace: spans, or log records with content of spans.

        Args:
            piece: A piece of an Export.
            now: The time, on the same clock as ever.

        Raises:
            Exception: Whatever an odd piece makes the readers raise.
        """
        spans = spans_in(piece)
        for span in spans:
            self._counts["spans"] += 1
            self._turns.end(span, now)
            self._expect_parent(span, now)
        for told in content_in(piece):
            self._counts["log_records"] += 1
            self._turns.tell(told, now)
        if spans:
            # A Collector may have kept them for hours: what waits for what is measured on the spans' clock.
            # Otherwise a backlog would look like parts whose rest has been waited for long enough.
            self._lag = time.time_ns() - max(span.end for span in spans)

    def ready(self, now: float) -> list[Record]:
        """Take out every turn that is complete now."""
        found = self._extractor.extract(self._turns.ripe(now))
        late = Extraction()
        if self._extractor.waiting:
            late = self._extractor.overdue(time.time_ns() - self._lag)
        for reading in (found, late):
            self._note(reading)
        return [*found.records, *late.records]

    def holds(self, trace_id: str) -> bool:
        """Whether anything of a trace may still become a turn, or part of one."""
        return trace_id in self._turns or self._extractor.holds(trace_id)

    @property
    def spans(self) -> int:
        """Spans, and log records of spans, that are held until their turns are complete."""
        return self._turns.spans + self._turns.told

    @property
    def counts(self) -> Mapping[str, int]:
        """What became of it all: `spans`, `log_records`, `turns`, `duplicates`, and causes of diagnoses."""
        more = {
            "late_spans": self._extractor.late,
            "repeated_spans": self._turns.repeated,
            "log_records_without_span": self._turns.told_in_vain,
        }
        return {**self._counts, **{name: count for name, count in more.items() if count}, **self._skipped}

    def _expect_parent(self, span: Span, now: float) -> None:
        """Count a parent that is not there yet as open; its scope is likely to be that of its child."""
        parent = span.parent_id
        # A parent of another process may never come; the exporter says so in the span's flags.
        if parent is not None and not span.remote_parent and not self._turns.knows(span.trace_id, parent):
            self._turns.start(Started(span.trace_id, parent, None, span.scope, span.start), now)

    def _note(self, reading: Extraction) -> None:
        self._counts["turns"] += len(reading.records)
        self._counts["duplicates"] += reading.duplicates
        for diagnosis in reading.diagnoses:
            self._skipped[diagnosis.cause] += 1
            if diagnosis.cause not in _EXPECTED:
                self._warn_once(
                    diagnosis.cause,
                    "a trace gives no record; more with the same cause are only counted: %s",
                    diagnosis,
                )
