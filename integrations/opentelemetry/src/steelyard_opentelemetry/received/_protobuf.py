"""Spans, and what log records say of them, out of OTLP in protobuf."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from steelyard_opentelemetry.spans._logs import ContentEvent, content_of_log
from steelyard_opentelemetry.spans._span import Event, Span, is_own, is_remote, service_of, version_of

if TYPE_CHECKING:
    from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
    from opentelemetry.proto.logs.v1.logs_pb2 import LogsData
    from opentelemetry.proto.trace.v1.trace_pb2 import Span as Message
    from opentelemetry.proto.trace.v1.trace_pb2 import TracesData

_FAILED = 2


def spans_of(data: TracesData) -> Iterator[Span]:
    """The spans of a message, without Steelyard's own."""
    for block in data.resource_spans:
        resource = _attributes(block.resource.attributes)
        for scoped in block.scope_spans:
            scope = scoped.scope.name
            for message in scoped.spans:
                trace_id = message.trace_id.hex()
                if not is_own(scope, trace_id):
                    yield _span(message, trace_id, scope=scope, resource=resource)


def told_in(data: LogsData) -> Iterator[ContentEvent]:
    """What the log records of a message say of spans."""
    for block in data.resource_logs:
        for scoped in block.scope_logs:
            for record in scoped.log_records:
                attributes = _attributes(record.attributes)
                name = record.event_name or str(attributes.get("event.name") or "")
                content = content_of_log(name, attributes, _value(record.body))
                if content:
                    moment = record.time_unix_nano or record.observed_time_unix_nano
                    yield ContentEvent(record.trace_id.hex(), record.span_id.hex(), moment, content)


def _span(message: Message, trace_id: str, *, scope: str, resource: Mapping[str, Any]) -> Span:
    start, parent = message.start_time_unix_nano, message.parent_span_id
    return Span(
        trace_id=trace_id,
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
    return getattr(value, kind)
