"""Spans in files that hold no OTLP: as SDKs print them, as Jaeger returns them; JSON in pieces."""

from __future__ import annotations

import base64
import binascii
import math
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from steelyard_opentelemetry._payload import mappings_in
from steelyard_opentelemetry._span import Event, Span, service_of, version_of

_EPOCH = datetime.fromtimestamp(0, UTC)


def pieces(lines: Iterable[str | bytes]) -> Iterator[tuple[int, bytes, bool]]:
    """Each JSON value of a file, with the number of its first line, and whether it takes several.

    One a line, objects that are indented over several, whatever a program prints between them, or a list.
    """
    piece: list[bytes] = []
    begun = 0
    for number, line in enumerate(map(_encoded, lines), start=1):
        if piece and _is_cut_off(piece, line):
            yield begun, b"".join(piece), True
            piece = []
        if piece:
            piece.append(line)
        elif _begins(line.rstrip()):
            piece, begun = [line], number
        elif line.strip():
            yield number, line, False
        if piece and line.rstrip() == b"}" and piece[0][:1] == b"{":
            yield begun, b"".join(piece), True
            piece = []
    if piece:
        yield begun, b"".join(piece), True


def _encoded(line: str | bytes) -> bytes:
    return line if isinstance(line, bytes) else line.encode("utf-8", "surrogatepass")


def _begins(line: bytes) -> bool:
    """Whether an indented object, or a list of objects, begins with a line and goes on in the next."""
    # What a program logs may begin with a bracket, too: "[INFO] ready".
    is_list = line[:1] == b"[" and line[1:].lstrip()[:1] in (b"", b"{")
    return line == b"{" or (is_list and line[-1:] != b"]")


def _is_cut_off(piece: list[bytes], line: bytes) -> bool:
    """Whether a line is of another object: within an indented one, only the last begins with a bracket."""
    return piece[0][:1] == b"{" and line[:1] in (b"{", b"[")


_STARTS = ("starttime", "starttimeunixnano", "starttimens", "startns")
_DIGITS = 20
_UNITS = ((10**11, 10**9), (10**14, 10**6), (10**17, 10**3))
"""Below which a number counts seconds, milliseconds and microseconds, with their nanoseconds."""
_ENDS = ("endtime", "endtimeunixnano", "endtimens", "endns")


def printed_in(data: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The spans that an object is or holds: as an SDK prints one, as a program's own exporter writes it.

    Phoenix's API and exports have this form, too. A log line may tell the ids of its span: it has no start.
    """
    held = [data, *mappings_in(data.get("spans"))]
    return [one for one in held if _is_within_context(one) or _is_flat(_spelled(one))]


def _is_within_context(data: Mapping[str, Any]) -> bool:
    return {"trace_id", "span_id"} <= _mapping(data.get("context")).keys()


def _is_flat(told: Mapping[str, Any]) -> bool:
    is_timed = _first(told, _STARTS) is not None
    return is_timed and isinstance(told.get("attributes"), Mapping) and all(_ids(told))


def _spelled(data: Mapping[str, Any]) -> dict[str, Any]:
    """What an object tells under each name in one spelling: `trace_id`, `traceId` and `_traceId` are one."""
    return {str(key).replace("_", "").lower(): value for key, value in data.items()}


def _first(told: Mapping[str, Any], names: Iterable[str]) -> Any:
    return next((told[name] for name in names if told.get(name) is not None), None)


def span_printed(data: Mapping[str, Any]) -> Span | None:
    """The span; None if it cannot be told by its ids. Few exporters print which instrumentor made it."""
    told = _spelled(data)
    trace_id, span_id = _ids(told)
    if not trace_id or not span_id:
        return None
    resource = _mapping(told.get("resource"))
    resource = _mapping(resource.get("attributes", resource))
    status, scope = _spelled(_mapping(told.get("status"))), told.get("instrumentationscope")
    code = _first(status, ("statuscode", "code")) or told.get("statuscode") or told.get("status")
    above = _spelled(_mapping(_first(told, ("parentspancontext", "parent"))))
    start = _nanoseconds(_first(told, _STARTS))
    return Span(
        trace_id=trace_id,
        span_id=span_id,
        parent_id=read_id(_first(told, ("parentid", "parentspanid")), 8) or _ids(above)[1] or None,
        name=str(told.get("name") or ""),
        scope=str(_mapping(scope).get("name") or ""),
        service=service_of(resource),
        version=version_of(resource),
        start=start,
        end=max(_nanoseconds(_first(told, _ENDS)), start),
        failed=code == 2 or str(code).upper().endswith("ERROR"),
        error=str(_first(status, ("description", "message")) or told.get("statusmessage") or ""),
        attributes=_mapping(told.get("attributes")),
        events=tuple(
            Event(name=str(event.get("name") or ""), attributes=_mapping(event.get("attributes")))
            for event in mappings_in(told.get("events"))
        ),
        links=tuple(_ids(_spelled(link)) for link in mappings_in(told.get("links"))),
    )


def is_jaeger(data: Mapping[str, Any]) -> bool:
    """Whether an object is what Jaeger's pages and API return."""
    return any("spans" in trace for trace in mappings_in(data.get("data")))


def spans_of_jaeger(data: Mapping[str, Any]) -> Iterator[Span | None]:
    """The spans of such a reply; None for one that cannot be told by its ids."""
    for trace in mappings_in(data.get("data")):
        processes = _mapping(trace.get("processes"))
        for item in mappings_in(trace.get("spans")):
            process = _mapping(processes.get(str(item.get("processID"))))
            named = {"service.name": process.get("serviceName"), **_tags(process.get("tags"))}
            yield _span_of_jaeger(item, named)


def _span_of_jaeger(item: Mapping[str, Any], resource: Mapping[str, Any]) -> Span | None:
    trace_id, span_id = _jaeger_ids(item)
    if not trace_id or not span_id:
        return None
    tags, start = _tags(item.get("tags")), _number(item.get("startTime")) * 1_000
    parent_id, links = _pointed_to(item, trace_id)
    logs = [_tags(log.get("fields")) for log in mappings_in(item.get("logs"))]
    return Span(
        trace_id=trace_id,
        span_id=span_id,
        parent_id=parent_id,
        name=str(item.get("operationName") or ""),
        scope=str(tags.get("otel.scope.name") or tags.get("otel.library.name") or ""),
        service=service_of(resource),
        version=version_of(resource),
        start=start,
        end=start + _number(item.get("duration")) * 1_000,
        failed=tags.get("error") in (True, "true") or tags.get("otel.status_code") == "ERROR",
        error=str(tags.get("otel.status_description") or ""),
        attributes=tags,
        events=tuple(Event(name=str(fields.pop("event", "")), attributes=fields) for fields in logs),
        links=links,
    )


def _pointed_to(item: Mapping[str, Any], trace_id: str) -> tuple[str | None, tuple[tuple[str, str], ...]]:
    """The parent of a span, which is of its own trace, and the spans that it is linked to."""
    pointed = [(one.get("refType"), *_jaeger_ids(one)) for one in mappings_in(item.get("references"))]
    above = [own for kind, trace, own in pointed if kind == "CHILD_OF" and trace == trace_id]
    links = tuple((trace, own) for kind, trace, own in pointed if kind != "CHILD_OF")
    return above[0] if above else None, links


def _jaeger_ids(item: Mapping[str, Any]) -> tuple[str, str]:
    """Ids, which are written without their leading zeros."""
    told = (str(item.get(name) or "") for name in ("traceID", "spanID"))
    trace, own = (read_id(one.rjust(2 * size, "0"), size) for one, size in zip(told, (16, 8), strict=True))
    return trace, own


def _tags(value: object) -> dict[str, Any]:
    return {str(one["key"]): one.get("value") for one in mappings_in(value) if "key" in one}


def _number(value: object) -> int:
    if isinstance(value, float):
        return int(value) if math.isfinite(value) else 0
    return value if isinstance(value, int) else 0


def _ids(told: Mapping[str, Any]) -> tuple[str, str]:
    """The ids of a span, which stand in its context or beside its name."""
    context = _spelled(_mapping(_first(told, ("context", "spancontext"))) or told)
    return read_id(context.get("traceid"), 16), read_id(context.get("spanid"), 8)


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _nanoseconds(value: object) -> int:
    """A time: ISO 8601, a number in any unit, or seconds and nanoseconds; 0 if it is neither."""
    if isinstance(value, list):
        seconds, rest = (*map(_number, value), 0, 0)[:2]
        return seconds * 1_000_000_000 + rest
    if isinstance(value, str) and value.isdecimal() and len(value) <= _DIGITS:
        value = int(value)
    if isinstance(value, (int, float)):
        return _since_the_epoch(value) if isinstance(value, int) or math.isfinite(value) else 0
    try:
        moment = datetime.fromisoformat(str(value))
    except ValueError:
        return 0
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return (moment - _EPOCH) // timedelta(microseconds=1) * 1_000


def _since_the_epoch(number: float) -> int:
    """Nanoseconds; how large a number is tells its unit, from 1973 to 5138."""
    size = next((size for limit, size in _UNITS if number < limit), 1)
    # A fraction of a second is not told more finely than in microseconds.
    return number * size if isinstance(number, int) else round(number * size / 1_000) * 1_000


def read_id(value: object, size: int) -> str:
    """An id as lower-case hex, which may have been written with `0x` or as base64; empty if it is none."""
    if not isinstance(value, str) or not value:
        return ""
    value = value.removeprefix("0x")
    try:
        raw = bytes.fromhex(value) if len(value) == 2 * size else base64.b64decode(value, validate=True)
    except (ValueError, binascii.Error):
        return ""
    return raw.hex() if len(raw) == size and any(raw) else ""
