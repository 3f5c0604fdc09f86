"""Spans that a vendor stored, written as OTLP/JSON with OpenInference's attributes, and their own ids."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from steelyard.backfill._rows import Bad
from steelyard.record import Record, TraceRef

if TYPE_CHECKING:
    from steelyard.backfill._source import TracesFound

_HEX: Final = {16: re.compile(r"[0-9a-f]{32}"), 8: re.compile(r"[0-9a-f]{16}")}
_MOST_NAMED: Final = 5


class Tracing:
    """Remembers the vendor's ids of spans whose ids had to be made."""

    def __init__(self) -> None:
        self._own: dict[str, TraceRef] = {}
        self.without: Mapping[str, int] = {}
        """Traces that gave no turn, by cause."""

    def line(
        self,
        *,
        trace_id: str,
        span_id: str,
        parent_id: str | None,
        name: str,
        start: object,
        end: object,
        attributes: Mapping[str, Any],
        error: str = "",
        own: TraceRef | None = None,
    ) -> bytes:
        """One span as an export request; `own` is where its scores belong, if not at these ids."""
        if own is not None:
            self._own[as_id(span_id, 8)] = own
        span = {
            "traceId": as_id(trace_id, 16),
            "spanId": as_id(span_id, 8),
            "parentSpanId": as_id(parent_id, 8) if parent_id else "",
            "name": name,
            "startTimeUnixNano": str(nanoseconds(start)),
            # A span without an end is still taken: vendors store those of programs that were killed.
            "endTimeUnixNano": str(nanoseconds(end) or nanoseconds(start)),
            "status": {"code": 2, "message": error} if error else {},
            "attributes": [{"key": key, "value": _value(value)} for key, value in attributes.items()],
        }
        # By its scope the reader takes a span for one of OpenInference's.
        scope = {"scope": {"name": "openinference.instrumentation.backfill"}, "spans": [span]}
        return json.dumps({"resourceSpans": [{"scopeSpans": [scope]}]}).encode()

    def turns(
        self, lines: Iterable[bytes], read: Callable[[Iterable[bytes]], TracesFound], name: str, bad: Bad
    ) -> Iterator[Record]:
        """The turns in some lines, with the vendor's ids."""
        found = read(lines)
        self.without = found.without
        for problem in found.problems:
            bad(name, problem)
        for record in found.records:
            own = self._own.get(record.trace.span_id or "") if record.trace else None
            if own is None:
                yield record
                continue
            assert record.trace is not None
            yield record.replace(trace=replace(own, framework=record.trace.framework), id=_id(own, record))


def _id(own: TraceRef, record: Record) -> str:
    """The vendor's id of a turn: LangChain's recorder gives the same one to a turn that it sees live."""
    return own.run_id or record.id


def as_id(text: str, size: int) -> str:
    """An id of so many bytes as hex: the vendor's own where it is one, else one made from it."""
    plain = text.lower().replace("-", "")
    # An id of zeros is invalid in OpenTelemetry and would join spans that have nothing in common.
    if _HEX[size].fullmatch(plain) and any(letter != "0" for letter in plain):
        return plain
    return hashlib.blake2b(text.encode(), digest_size=size).hexdigest()


def nanoseconds(value: object) -> int:
    """A time in nanoseconds; 0 where it is none."""
    if value is None or value == "":
        return 0
    if isinstance(value, datetime):
        return int((value if value.tzinfo else value.replace(tzinfo=UTC)).timestamp() * 1e9)
    try:
        given = datetime.fromisoformat(str(value))
    except ValueError:
        return 0
    return int((given if given.tzinfo else given.replace(tzinfo=UTC)).timestamp() * 1e9)


def as_text(value: object) -> str:
    """A payload as an attribute holds it: text, or JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def payload(value: object) -> Any:
    """A payload that may be written as JSON."""
    # Only what can be JSON of use: a plain text may happen to be a number.
    if isinstance(value, str) and value[:1] in '[{"':
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            return value
    return value


def documents(value: object) -> dict[str, Any]:
    """Retrieved documents as attributes, in whichever list the payload holds them."""
    found: dict[str, Any] = {}
    for place, item in enumerate(_listed(payload(value))):
        fields: dict[str, Any] = item if isinstance(item, dict) else {"text": str(item)}
        wrapped = fields.get("kwargs")
        inner: dict[str, Any] = wrapped if isinstance(wrapped, dict) else fields
        keys = ("page_content", "text", "content", "document")
        text = next((inner[key] for key in keys if isinstance(inner.get(key), str)), "")
        prefix = f"retrieval.documents.{place}.document."
        found[f"{prefix}content"] = text
        for name, known in (("id", inner.get("id")), ("score", fields.get("score"))):
            if known is not None:
                found[prefix + name] = known
    return found


def _listed(value: object, depth: int = 3) -> list[Any]:
    if isinstance(value, list):
        return value
    if isinstance(value, dict) and depth:
        for key in ("documents", "output", "outputs", "nodes", "results", "data"):
            if key in value and (found := _listed(payload(value[key]), depth - 1)):
                return found
    return []


def _value(value: object) -> dict[str, Any]:
    # Before int, which True is too.
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        # OTLP/JSON writes 64-bit numbers as strings, since JavaScript has no such numbers.
        return {"intValue": str(value)}
    if isinstance(value, float):
        return {"doubleValue": value}
    if isinstance(value, list | tuple):
        return {"arrayValue": {"values": [_value(item) for item in value]}}
    return {"stringValue": as_text(value)}
