"""Spans in files that hold no OTLP: as the Python SDK prints them, as Jaeger returns them; JSON in pieces."""

from __future__ import annotations

import base64
import binascii
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


def is_printed(data: Mapping[str, Any]) -> bool:
    """Whether an object is a span in this form; Phoenix's API and exports have it, too."""
    context = data.get("context")
    return isinstance(context, Mapping) and {"trace_id", "span_id"} <= context.keys()


def span_printed(data: Mapping[str, Any]) -> Span | None:
    """The span; None if it cannot be told by its ids. Which instrumentor made it is not printed."""
    trace_id, span_id = _ids(data)
    if not trace_id or not span_id:
        return None
    told = data.get("resource")
    resource = _mapping(told.get("attributes")) if isinstance(told, Mapping) else {}
    status = _mapping(data.get("status"))
    start = _nanoseconds(data.get("start_time"))
    return Span(
        trace_id=trace_id,
        span_id=span_id,
        parent_id=read_id(data.get("parent_id"), 8) or None,
        name=str(data.get("name") or ""),
        service=service_of(resource),
        version=version_of(resource),
        start=start,
        end=max(_nanoseconds(data.get("end_time")), start),
        failed=str(status.get("status_code", data.get("status_code"))).endswith("ERROR"),
        error=str(status.get("description") or data.get("status_message") or ""),
        attributes=_mapping(data.get("attributes")),
        events=tuple(
            Event(name=str(event.get("name") or ""), attributes=_mapping(event.get("attributes")))
            for event in mappings_in(data.get("events"))
        ),
        links=tuple(map(_ids, mappings_in(data.get("links")))),
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
    return int(value) if isinstance(value, (int, float)) else 0


def _ids(data: Mapping[str, Any]) -> tuple[str, str]:
    context = _mapping(data.get("context"))
    return read_id(context.get("trace_id"), 16), read_id(context.get("span_id"), 8)


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _nanoseconds(value: object) -> int:
    """A time, which is written in ISO 8601 or is a number of nanoseconds; 0 if it is neither."""
    if isinstance(value, int):
        return value
    try:
        moment = datetime.fromisoformat(str(value))
    except ValueError:
        return 0
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return (moment - _EPOCH) // timedelta(microseconds=1) * 1_000


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
