"""Spans, and what log records say of them, out of OTLP in protobuf; needs opentelemetry-proto."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from google.protobuf.message import DecodeError
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTracePartialSuccess,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.logs.v1.logs_pb2 import LogsData
from opentelemetry.proto.trace.v1.trace_pb2 import Span as Message
from opentelemetry.proto.trace.v1.trace_pb2 import TracesData

from steelyard.errors import InvalidRecord
from steelyard_opentelemetry._otlp import ContentEvent, content_of_log
from steelyard_opentelemetry._span import Event, Span, is_own, is_remote, service_of, version_of

_FAILED = 2


def cut(body: bytes, *, session: tuple[str, str]) -> tuple[dict[str, bytes], int, int]:
    """Take a request's spans apart by trace.

    Args:
        body: The request's body.
        session: The attribute that every span is given, and its value; none if that is empty.

    Returns:
        What `spans_in` reads, by trace id; how many spans it is, and how many were refused.

    Raises:
        InvalidRecord: If it is not an export request.
    """
    parts, taken, refused = dict[str, Any](), 0, 0
    for block in _message(TracesData, body, "traces").resource_spans:
        for scoped in block.scope_spans:
            places: dict[str, Any] = {}
            for span in scoped.spans:
                if not _has_ids(span):
                    refused += 1
                    continue
                taken, trace_id = taken + 1, span.trace_id.hex()
                if trace_id not in places:
                    part = parts.setdefault(trace_id, TracesData()).resource_spans.add(
                        resource=block.resource
                    )
                    places[trace_id] = part.scope_spans.add(scope=scoped.scope).spans
                if session[1]:
                    span.attributes.add(key=session[0]).value.string_value = session[1]
                places[trace_id].append(span)
    return {trace_id: part.SerializeToString() for trace_id, part in parts.items()}, taken, refused


def _message(kind: Any, body: bytes, signal: str) -> Any:
    """A request, by the message that has its fields by number and type."""
    try:
        return kind.FromString(body)
    except DecodeError:
        raise InvalidRecord(f"the body is not an export request for {signal} in protobuf") from None


def partial_success(refused: int, why: str) -> bytes:
    """The body that answers a request of which some items were refused; spans and log records share it."""
    told = ExportTracePartialSuccess(rejected_spans=refused, error_message=why)
    made: bytes = ExportTraceServiceResponse(partial_success=told).SerializeToString()
    return made


def spans_in(piece: bytes) -> list[Span]:
    """The spans of a piece, without Steelyard's own."""
    found = []
    for block in TracesData.FromString(piece).resource_spans:
        resource = _attributes(block.resource.attributes)
        for scoped in block.scope_spans:
            spans = (_span(message, scope=scoped.scope.name, resource=resource) for message in scoped.spans)
            found += [span for span in spans if not is_own(span.scope, span.trace_id)]
    return found


def logs_in(body: bytes) -> Iterator[ContentEvent | None]:
    """What the log records with content in a request say of spans; None for one that names no span.

    Raises:
        InvalidRecord: If it is not an export request.
    """
    blocks = _message(LogsData, body, "logs").resource_logs
    for record in (record for block in blocks for each in block.scope_logs for record in each.log_records):
        attributes = _attributes(record.attributes)
        name = record.event_name or str(attributes.get("event.name") or "")
        if content := content_of_log(name, attributes, _value(record.body)):
            moment = record.time_unix_nano or record.observed_time_unix_nano
            told = ContentEvent(record.trace_id.hex(), record.span_id.hex(), moment, content)
            yield told if _has_ids(record) else None


def _has_ids(item: Any) -> bool:
    return all(len(value) == size and any(value) for value, size in ((item.trace_id, 16), (item.span_id, 8)))


def _span(message: Message, *, scope: str, resource: Mapping[str, Any]) -> Span:
    start, parent = message.start_time_unix_nano, message.parent_span_id
    return Span(
        trace_id=message.trace_id.hex(),
        span_id=message.span_id.hex(),
        # Eight zero bytes stand for no parent, as an empty field does.
        parent_id=parent.hex() if any(parent) else None,
        name=message.name,
        scope=scope,
        service=service_of(resource),
        version=version_of(resource),
        start=start,
        # A clock that was set back during the span would give it a negative length.
        end=max(message.end_time_unix_nano, start),
        failed=message.status.code == _FAILED,
        error=message.status.message,
        attributes=_attributes(message.attributes),
        events=tuple(
            [Event(name=event.name, attributes=_attributes(event.attributes)) for event in message.events]
        ),
        links=tuple([(link.trace_id.hex(), link.span_id.hex()) for link in message.links]),
        dropped=message.dropped_attributes_count + message.dropped_events_count,
        remote_parent=is_remote(message.flags),
    )


def _attributes(pairs: Iterable[KeyValue]) -> dict[str, Any]:
    # Most values are texts, which need no question of what they are.
    return {pair.key: (value := pair.value).string_value or _value(value) for pair in pairs}


def _value(value: AnyValue) -> Any:
    """The Python form of an AnyValue. How deep they nest, protobuf itself limits where it reads them."""
    kind = value.WhichOneof("value")
    if kind is None:
        return None
    if kind == "array_value":
        return [_value(item) for item in value.array_value.values]
    if kind == "kvlist_value":
        return _attributes(value.kvlist_value.values)
    found = getattr(value, kind)
    return base64.b64encode(found).decode() if kind == "bytes_value" else found
