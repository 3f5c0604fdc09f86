"""Content that the GenAI conventions put on log events or span events, in the form it has on spans."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from steelyard_opentelemetry._payload import decode, mappings_in, opened
from steelyard_opentelemetry._printed import (
    is_jaeger,
    pieces,
    printed_in,
    read_id,
    span_printed,
    spans_of_jaeger,
)
from steelyard_opentelemetry._span import Event, Span, is_own, is_remote, service_of, version_of

_INPUT = "gen_ai.input.messages"
_OUTPUT = "gen_ai.output.messages"
_DETAILS = "gen_ai.client.inference.operation.details"
_ROLES = {
    "gen_ai.system.message": "system",
    "gen_ai.user.message": "user",
    "gen_ai.assistant.message": "assistant",
    "gen_ai.tool.message": "tool",
}
_CONTENT = frozenset((_DETAILS, "gen_ai.choice", *_ROLES))
_WHOLE = (("gen_ai.content.prompt", "user", _INPUT), ("gen_ai.content.completion", "assistant", _OUTPUT))


@dataclass(frozen=True, slots=True, repr=False)
class ContentEvent:
    """What a log event says of its span."""

    trace_id: str
    span_id: str
    at: int
    """When it was said, in nanoseconds since the epoch; 0 where this is not told."""
    content: dict[str, Any]
    """As attributes of the span."""


def is_content(name: str) -> bool:
    """Whether a log event of this name carries content of a model call."""
    return name in _CONTENT


def content_of_log(name: str, attributes: Mapping[str, Any], body: object) -> dict[str, Any]:
    """What a log event adds to its span, as span attributes; nothing where it is not a content event.

    The events of the older conventions come one for each message; `add_content` puts them together.
    """
    if name == _DETAILS:
        return {key: value for key, value in attributes.items() if key.startswith("gen_ai.")}
    body = decode(body)  # What comes through Python's logging is JSON in a text.
    if name in _ROLES and isinstance(body, Mapping):
        return {_INPUT: [{"role": _ROLES[name], **body}]}
    if name == "gen_ai.choice" and isinstance(body, Mapping):
        message = body.get("message")
        said = {"content": message} if isinstance(message, (str, list)) else body
        inner = message if isinstance(message, Mapping) else said
        return {_OUTPUT: [{"role": "assistant", **inner}]}
    return {}


def content_of_events(span: Span) -> dict[str, Any]:
    """What events on a span, or in its attribute `events`, say of a model call or a tool, as attributes.

    Every form that the conventions had is read: one event with everything, one for each message, and one for
    the prompt and one for the completion.
    """
    known: dict[str, Any] = {}
    for event in (*span.events, *_events_in(span.attributes.get("events"))):
        add_content(known, content_of_log(event.name, event.attributes, _body(event)) or _older(event))
    return known


def _events_in(value: object) -> tuple[Event, ...]:
    """The events that an attribute holds as one JSON list, each named by its `event.name`.

    A list without a `gen_ai.choice` is the conversation as it ended: what the model said last is its reply.
    """
    items = mappings_in(decode(value))
    events = [Event(name=str(item.get("event.name") or ""), attributes=item) for item in items]
    if events and events[-1].name == "gen_ai.assistant.message":
        events[-1] = Event(name="gen_ai.choice", attributes=events[-1].attributes)
    return tuple(events)


def _body(event: Event) -> Mapping[str, Any]:
    """What stands in a log event's body, out of the attributes of a span event."""
    whole = decode(event.attributes.get("gen_ai.event.content"))
    found = whole if isinstance(whole, Mapping) else event.attributes
    return {key: opened(value) for key, value in found.items()}


def _older(event: Event) -> dict[str, Any]:
    for name, role, key in _WHOLE:
        if event.name == name and (told := opened(event.attributes.get(name.replace("content.", "")))):
            return {key: told if isinstance(told, list) else [{"role": role, "content": told}]}
    return {}


def add_content(known: dict[str, Any], content: Mapping[str, Any]) -> None:
    """Add the content of one more event to what is known of a span."""
    for key, value in content.items():
        before = known.get(key)
        if key in (_INPUT, _OUTPUT) and isinstance(before, list) and isinstance(value, list):
            known[key] = [*before, *value]
        else:
            known[key] = value


def with_content(span: Span, told: Iterable[Mapping[str, Any]]) -> Span:
    """A span with what its log events say, in their order; what the span itself says goes first."""
    known: dict[str, Any] = {}
    for content in told:
        add_content(known, content)
    return replace(span, attributes={**known, **span.attributes}) if known else span


_DEPTH = 40
_REQUEST = frozenset(("resourceSpans", "resourceLogs", "resourceMetrics", "batches"))


@dataclass(frozen=True, slots=True)
class Otlp:
    """What some files of traces hold."""

    spans: list[Span] = field(default_factory=list)
    """Every span once, without Steelyard's own."""
    problems: list[str] = field(default_factory=list)
    """What could not be read, each with its line."""
    repeated: int = 0
    """How many spans came more than once; the first of each counts."""


def read_otlp(lines: Iterable[str | bytes]) -> Otlp:
    """Read OTLP/JSON, spans as SDKs and exporters print them, or traces that Jaeger or Tempo return.

    One object a line, indented objects, or a list of them.

    Log events that carry the content of a model call (`gen_ai.client.inference.operation.details` and the
    older `gen_ai.*.message`) are put on the span they belong to. What a program printed between
    indented spans is passed over.
    """
    found: dict[tuple[str, str], Span] = {}
    logs: dict[tuple[str, str], list[ContentEvent]] = {}
    problems: list[_Problem] = []
    repeated, is_console = 0, False
    for number, piece, is_indented in pieces(lines):
        for data in _loaded(piece, number, problems, is_indented=is_indented):
            is_console = is_console or (is_indented and bool(printed_in(data)))
            for span in _spans_of(data):
                if span is None:
                    problems.append(_Problem(number, "a span without a trace id and a span id was left out"))
                    continue
                key = (span.trace_id, span.span_id)
                repeated += key in found
                found.setdefault(key, span)
            for told in logs_in(data):
                logs.setdefault((told.trace_id, told.span_id), []).append(told)
    spans = [span for span in _with_logs(found, logs) if not is_own(span.scope, span.trace_id)]
    said = [f"line {one.line}: {one.why}" for one in problems if not (one.is_lone and is_console)]
    return Otlp(spans, said, repeated)


def _spans_of(data: Mapping[str, Any]) -> Iterable[Span | None]:
    if is_jaeger(data):
        return spans_of_jaeger(data)
    return spans_in(data) if _REQUEST & data.keys() else map(span_printed, printed_in(data))


def _with_logs(
    found: Mapping[tuple[str, str], Span], logs: Mapping[tuple[str, str], Iterable[ContentEvent]]
) -> Iterator[Span]:
    for key, span in found.items():
        # A Collector may write what an application sent later first.
        in_order = sorted(logs.get(key, ()), key=lambda told: told.at)
        yield with_content(span, (told.content for told in in_order))


@dataclass(frozen=True, slots=True)
class _Problem:
    line: int
    why: str
    is_lone: bool = False
    """Whether it is of a line that is no span, so that on a console the program may have printed it."""


def _loaded(
    piece: bytes, number: int, problems: list[_Problem], *, is_indented: bool
) -> Iterator[dict[str, Any]]:
    try:
        data = json.loads(piece)
    except (ValueError, RecursionError) as error:
        why = f"not JSON ({type(error).__name__}: {error})"
        problems.append(_Problem(number, why, is_lone=not is_indented))
        return
    told = [one for one in (data if isinstance(data, list) else [data]) if isinstance(one, dict)]
    spans = [one for one in told if _REQUEST & one.keys() or printed_in(one) or is_jaeger(one)]
    if not spans:
        why = "neither an OTLP export request (no 'resourceSpans') nor a span"
        problems.append(_Problem(number, why, is_lone=not is_indented))
    yield from spans


def spans_in(data: Mapping[str, Any]) -> Iterator[Span | None]:
    """The spans of an export request; None for one that cannot be told by its ids."""
    # Tempo's API calls them batches.
    for block in mappings_in(data.get("resourceSpans", data.get("batches"))):
        told = block.get("resource")
        resource = _attributes(told.get("attributes")) if isinstance(told, dict) else {}
        for scoped in mappings_in(block.get("scopeSpans")):
            scope = scoped.get("scope")
            name = scope.get("name") if isinstance(scope, dict) else ""
            items = scoped.get("spans")
            for item in items if isinstance(items, list) else ():
                span = item if isinstance(item, dict) else {}
                yield _span(span, scope=name if isinstance(name, str) else "", resource=resource)


def _span(item: Mapping[str, Any], *, scope: str, resource: Mapping[str, Any]) -> Span | None:
    trace_id, span_id = read_id(item.get("traceId"), 16), read_id(item.get("spanId"), 8)
    if not trace_id or not span_id:
        return None
    status = item.get("status")
    status = status if isinstance(status, dict) else {}
    start = _integer(item.get("startTimeUnixNano"))
    return Span(
        trace_id=trace_id,
        span_id=span_id,
        parent_id=read_id(item.get("parentSpanId"), 8) or None,
        name=str(item.get("name") or ""),
        scope=scope,
        service=service_of(resource),
        version=version_of(resource),
        start=start,
        end=max(_integer(item.get("endTimeUnixNano")), start),
        failed=status.get("code") in (2, "2", "STATUS_CODE_ERROR"),
        error=str(status.get("message") or ""),
        attributes=_attributes(item.get("attributes")),
        events=tuple(
            Event(name=str(event.get("name") or ""), attributes=_attributes(event.get("attributes")))
            for event in mappings_in(item.get("events"))
        ),
        links=tuple(
            (read_id(link.get("traceId"), 16), read_id(link.get("spanId"), 8))
            for link in mappings_in(item.get("links"))
        ),
        dropped=_integer(item.get("droppedAttributesCount")) + _integer(item.get("droppedEventsCount")),
        # Exporters are given sampled spans only, and not all of them write that bit into `flags`.
        sampled=True,
        remote_parent=is_remote(_integer(item.get("flags"))),
    )


def logs_in(data: Mapping[str, Any]) -> Iterator[ContentEvent]:
    """What the log records of an export request say of spans; whatever cannot be read is passed over."""
    for block in mappings_in(data.get("resourceLogs")):
        for scoped in mappings_in(block.get("scopeLogs")):
            for item in mappings_in(scoped.get("logRecords")):
                body = _value(item.get("body"), _DEPTH)
                content = content_of_log(_log_name(item), _attributes(item.get("attributes")), body)
                if content:
                    trace_id, span_id = read_id(item.get("traceId"), 16), read_id(item.get("spanId"), 8)
                    at = _integer(item.get("timeUnixNano")) or _integer(item.get("observedTimeUnixNano"))
                    yield ContentEvent(trace_id, span_id, at, content)


def _log_name(item: Mapping[str, Any]) -> str:
    """The name of a log record's event: a field of its own, an attribute in older releases."""
    named = item.get("eventName")
    if not named:
        pairs = mappings_in(item.get("attributes"))
        named = next((_value(pair.get("value"), 1) for pair in pairs if pair.get("key") == "event.name"), "")
    return named if isinstance(named, str) else ""


def _attributes(value: object) -> dict[str, Any]:
    return {
        str(item["key"]): _value(item.get("value"), _DEPTH) for item in mappings_in(value) if "key" in item
    }


def _value(value: object, depth: int) -> Any:
    """The Python form of an OTLP AnyValue; what is none becomes None."""
    if not isinstance(value, dict) or depth <= 0:
        return None
    if "stringValue" in value:
        return value["stringValue"] if isinstance(value["stringValue"], str) else None
    if "arrayValue" in value:
        return [_value(item, depth - 1) for item in _values(value["arrayValue"])]
    if "kvlistValue" in value:
        pairs = _values(value["kvlistValue"])
        return {str(item.get("key")): _value(item.get("value"), depth - 1) for item in pairs}
    if "intValue" in value:
        return _integer(value["intValue"])
    return next((value[kind] for kind in ("boolValue", "doubleValue", "bytesValue") if kind in value), None)


def _values(inner: object) -> Iterable[Mapping[str, Any]]:
    return mappings_in(inner.get("values")) if isinstance(inner, dict) else ()


def _integer(value: object) -> int:
    try:
        return int(value) if isinstance(value, (int, str)) else 0
    except ValueError:
        return 0
