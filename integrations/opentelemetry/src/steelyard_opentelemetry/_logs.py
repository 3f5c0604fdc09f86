"""Content that the GenAI conventions put on log events or span events, in the form it has on spans."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from steelyard_opentelemetry._payload import decode, mappings_in, opened
from steelyard_opentelemetry._span import Event, Span

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
