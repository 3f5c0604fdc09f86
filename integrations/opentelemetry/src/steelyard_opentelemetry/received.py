"""Turns out of OTLP requests: spans and log records that arrive in any order, from any process.

A request is cut into one piece for each trace, which can be stored and forgotten with its trace: spans in
protobuf stay protobuf, whose reading can wait; all else becomes JSON. Of log records, only those with a model
call's content are kept: the others may hold anything, and nothing here needs them.

A span processor is told when spans begin; who receives spans is not. A parent that has not come counts as
open, unless the exporter says that it belongs to another process; so does the span of a log record. A trace
that holds parts of a turn and no whole one is kept for a while. Everything else is done as the span processor
does it.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from operator import attrgetter
from typing import Any, Final, Literal

from steelyard._internal.logs import SafeLogger
from steelyard.errors import InvalidRecord, MissingDependency
from steelyard.record import Record
from steelyard_opentelemetry._diagnosis import DiagnosisTally
from steelyard_opentelemetry._extractor import Extraction, TurnExtractor
from steelyard_opentelemetry._joining import REQUEST_SESSION
from steelyard_opentelemetry._open_turns import OpenTurns, Started
from steelyard_opentelemetry._otlp import ContentEvent, logs_in, spans_in
from steelyard_opentelemetry._span import Event, Span, is_own

Signal = Literal["traces", "logs"]

_log = SafeLogger("steelyard.opentelemetry")
# Who receives bounds what it takes in by bytes; a second bound here would lose spans that are stored.
_UNBOUNDED: Final = 1 << 40
_MOST_WAITING: Final = 4096
_INVALID_ARGUMENT, _UNAVAILABLE = 3, 14
_ITEMS: Final[Mapping[Signal, str]] = {"traces": "spans", "logs": "log records"}
_LISTS: Final[Mapping[Signal, str]] = {"traces": "resourceSpans", "logs": "resourceLogs"}
_REFUSED: Final[Mapping[Signal, str]] = {"traces": "rejectedSpans", "logs": "rejectedLogRecords"}
_FIELDS: Final = tuple(one.name for one in fields(Span) if one.name != "events")
_values = attrgetter(*_FIELDS)


@dataclass(slots=True)
class Export:
    """What one export request holds."""

    signal: Signal = "traces"
    """What it is about."""
    pieces: dict[str, bytes] = field(default_factory=dict)
    """What it holds of each trace, by trace id."""
    spans: int = 0
    """How many spans there are in the pieces."""
    log_records: int = 0
    """How many log records with content there are in the pieces."""
    refused: int = 0
    """Spans, or log records with content, that were left out."""


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
        self._skipped = DiagnosisTally(_log)

    @staticmethod
    def check() -> None:
        """Raise a MissingDependency where OTLP in protobuf could not be read."""
        _protobuf()

    def read(self, body: bytes, *, is_json: bool, signal: Signal = "traces", session: str = "") -> Export:
        """Take a request apart by trace; turns whose spans name no session are given this one.

        Raises:
            InvalidRecord: If it is not an export request.
        """
        export, parts = Export(signal), dict[str, list[Any]]()
        if signal == "traces" and not is_json:
            found = _protobuf().cut(body, session=(REQUEST_SESSION, session))
            export.pieces, export.spans, export.refused = found
            return export
        for item in _items(body, signal, is_json=is_json):
            if not (item and item.trace_id and item.span_id):
                export.refused += 1
            elif isinstance(item, ContentEvent):
                export.log_records += 1
                parts.setdefault(item.trace_id, []).append(asdict(item))
            elif not is_own(item.scope, item.trace_id):
                export.spans += 1
                # As JSON can hold it: its fields in their order, and its events.
                events = [(event.name, event.attributes) for event in item.events]
                if session:
                    item = replace(item, attributes={**item.attributes, REQUEST_SESSION: session})
                told = [*_values(item), events]
                parts.setdefault(item.trace_id, []).append(told)
        for trace_id, found in parts.items():
            text = json.dumps({signal: found}, separators=(",", ":"), ensure_ascii=False)
            export.pieces[trace_id] = text.encode("utf-8", "surrogatepass")
        return export

    def success(self, export: Export, *, is_json: bool) -> bytes:
        """The body that answers a request whose spans or log records are safe; it says what was refused."""
        why = f"{_ITEMS[export.signal]} without a trace id of 16 bytes and a span id of 8 bytes were refused"
        if not export.refused:
            return b"{}" if is_json else b""
        if is_json:
            told = {_REFUSED[export.signal]: str(export.refused), "errorMessage": why}
            return json.dumps({"partialSuccess": told}).encode()
        made: bytes = _protobuf().partial_success(export.refused, why)
        return made

    def failure(self, message: str, *, is_json: bool, passes: bool) -> bytes:
        """The body that answers any other request, a `google.rpc.Status`; `passes`: it may be sent again."""
        code = _UNAVAILABLE if passes else _INVALID_ARGUMENT
        if is_json:
            return json.dumps({"code": code, "message": message}).encode()
        from google.rpc.status_pb2 import Status

        made: bytes = Status(code=code, message=message).SerializeToString()
        return made

    def take(self, piece: bytes, now: float) -> None:
        """Read what a request held of one trace: spans, or log records with content of spans.

        Args:
            piece: A piece of an Export.
            now: The time, on the same clock as ever.

        Raises:
            Exception: Whatever an odd piece makes the reader raise.
        """
        spans: list[Span] = []
        logs: list[ContentEvent] = []
        if not piece.startswith(b"{"):
            spans = _protobuf().spans_in(piece)
        elif "traces" in (data := json.loads(piece)):
            spans = [_unpacked(packed) for packed in data["traces"]]
        else:
            logs = [ContentEvent(**told) for told in data["logs"]]
        self._counts["spans"] += len(spans)
        self._counts["log_records"] += len(logs)
        for span in spans:
            self._turns.end(span, now)
            self._expect_parent(span, now)
        for told in logs:
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
            self._counts["turns"] += len(reading.records)
            self._counts["duplicates"] += reading.duplicates
            self._skipped.note(reading.diagnoses)
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
        told = {name: count for name, count in more.items() if count}
        return {**self._counts, **told, **self._skipped.counts}

    def _expect_parent(self, span: Span, now: float) -> None:
        """Count a parent that is not there yet as open; its scope is likely to be that of its child."""
        parent = span.parent_id
        # A parent of another process may never come; the exporter says so in the span's flags.
        if parent is not None and not span.remote_parent and not self._turns.knows(span.trace_id, parent):
            self._turns.start(Started(span.trace_id, parent, None, span.scope, span.start), now)


def _protobuf() -> Any:
    try:
        from steelyard_opentelemetry import _protobuf as found
    except ImportError:
        raise MissingDependency("opentelemetry-proto", extra="collect") from None
    return found


def _items(body: bytes, signal: Signal, *, is_json: bool) -> Iterator[Span | ContentEvent | None]:
    """The spans of OTLP/JSON, or the log records with content; None for what cannot be told by its ids."""
    if not is_json:
        found: Iterator[ContentEvent | None] = _protobuf().logs_in(body)
        return found
    try:
        data = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise InvalidRecord(f"the body is not JSON: {type(error).__name__}") from None
    if not isinstance(data, dict) or not isinstance(data.get(_LISTS[signal], []), list):
        raise InvalidRecord(
            f"the body is not an export request for {signal}: {_LISTS[signal]!r} is not a list"
        )
    return spans_in(data) if signal == "traces" else logs_in(data)


def _unpacked(packed: list[Any]) -> Span:
    told = dict(zip(_FIELDS, packed, strict=False))
    told["links"] = tuple(map(tuple, told["links"]))
    return Span(**told, events=tuple(Event(name=name, attributes=found) for name, found in packed[-1]))
