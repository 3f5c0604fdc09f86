"""Ways into the recorder: the same spans as OTLP/JSON, as the SDK prints them, and ended by it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import Event, ReadableSpan, TracerProvider
from opentelemetry.trace import Span as LiveSpan
from opentelemetry.trace import SpanContext, set_span_in_context

from fakes.receiver import Receiver
from steelyard.record import Record
from steelyard_opentelemetry import EvaluationSpanProcessor, NoRecord, Span


@dataclass(frozen=True)
class Told:
    """What the recorder made of some spans."""

    records: Sequence[Record]
    diagnoses: Sequence[NoRecord]


def as_otlp(spans: Sequence[Span]) -> dict[str, Any]:
    """One export request, a block for each span."""
    return {"resourceSpans": [_block(span) for span in spans]}


def _block(span: Span) -> dict[str, Any]:
    written = {
        "traceId": span.trace_id,
        "spanId": span.span_id,
        "parentSpanId": span.parent_id or "",
        "name": span.name,
        "startTimeUnixNano": str(span.start),
        "endTimeUnixNano": str(span.end),
        "attributes": _attributes(span.attributes),
        "events": [{"name": e.name, "attributes": _attributes(e.attributes)} for e in span.events],
    }
    resource = {"attributes": _attributes({"service.name": span.service})}
    return {"resource": resource, "scopeSpans": [{"scope": {"name": span.scope}, "spans": [written]}]}


def _attributes(attributes: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [{"key": key, "value": _value(value)} for key, value in attributes.items()]


def _value(value: object) -> dict[str, Any]:
    if isinstance(value, (list, tuple)):
        return {"arrayValue": {"values": [_value(item) for item in value]}}
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}
    return {"doubleValue": value} if isinstance(value, float) else {"stringValue": value}


def as_printed(spans: Sequence[Span], *, indent: int | None = 4) -> str:
    """What a `ConsoleSpanExporter` writes, which does not tell the scopes."""
    return "\n".join(_printed(span).to_json(indent=indent) for span in spans)


def _printed(span: Span) -> ReadableSpan:
    return ReadableSpan(
        span.name,
        context=_context(span.trace_id, span.span_id),
        parent=_context(span.trace_id, span.parent_id) if span.parent_id else None,
        resource=Resource({"service.name": span.service}),
        attributes=span.attributes,
        events=[Event(event.name, event.attributes, span.start) for event in span.events],
        start_time=span.start,
        end_time=span.end,
    )


def _context(trace_id: str, span_id: str) -> SpanContext:
    return SpanContext(int(trace_id, 16), int(span_id, 16), is_remote=False)


def as_jaeger(spans: Sequence[Span]) -> dict[str, Any]:
    """What Jaeger returns for these traces: it keeps no lists."""
    traces: dict[str, list[Span]] = {}
    for span in spans:
        traces.setdefault(span.trace_id, []).append(span)
    processes = {span.service: {"serviceName": span.service, "tags": []} for span in spans}
    return {
        "data": [
            {"traceID": trace_id, "spans": list(map(_jaeger, own)), "processes": processes}
            for trace_id, own in traces.items()
        ]
    }


def _jaeger(span: Span) -> dict[str, Any]:
    above = {"refType": "CHILD_OF", "traceID": span.trace_id, "spanID": span.parent_id}
    return {
        "traceID": span.trace_id.lstrip("0"),
        "spanID": span.span_id,
        "operationName": span.name,
        "references": [above] if span.parent_id else [],
        "startTime": span.start // 1_000,
        "duration": (span.end - span.start) // 1_000,
        "tags": _tags({**span.attributes, "otel.scope.name": span.scope}),
        "logs": [{"fields": _tags({"event": e.name, **e.attributes})} for e in span.events],
        "processID": span.service,
    }


def _tags(attributes: Mapping[str, Any]) -> list[dict[str, Any]]:
    pairs = ((k, json.dumps(v) if isinstance(v, (list, tuple)) else v) for k, v in attributes.items())
    return [{"key": key, "type": "string", "value": value} for key, value in pairs]


def through_processor(spans: Sequence[Span]) -> Told:
    """Start and end the spans with the SDK, in the order of their times."""
    receiver = Receiver()
    processor = EvaluationSpanProcessor(receiver, quiet=60)
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(processor)
    live: dict[str, LiveSpan] = {}
    moments = [(span.start, span, True) for span in spans] + [(span.end, span, False) for span in spans]
    for moment, span, starts in sorted(moments, key=lambda found: found[0]):
        if starts:
            parent = live.get(span.parent_id or "")
            tracer = provider.get_tracer(span.scope)
            context = set_span_in_context(parent) if parent else None
            live[span.span_id] = tracer.start_span(span.name, context, start_time=moment)
            continue
        live[span.span_id].set_attributes(span.attributes)
        for event in span.events:
            live[span.span_id].add_event(event.name, event.attributes)
        live[span.span_id].end(moment)
    provider.force_flush()
    # What waits for its other half is given up, or told, when the processor is closed.
    provider.shutdown()
    return Told(receiver.records, processor.diagnoses)
