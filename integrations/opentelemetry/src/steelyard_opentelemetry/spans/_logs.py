"""Content that the GenAI conventions put on log events, in the form it has on spans."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_INPUT = "gen_ai.input.messages"
_OUTPUT = "gen_ai.output.messages"
_DETAILS = "gen_ai.client.inference.operation.details"
_ROLES = {
    "gen_ai.system.message": "system",
    "gen_ai.user.message": "user",
    "gen_ai.assistant.message": "assistant",
    "gen_ai.tool.message": "tool",
}


def content_of_log(name: str, attributes: Mapping[str, Any], body: object) -> dict[str, Any]:
    """What a log event adds to its span, as span attributes; nothing where it is not a content event.

    The events of the older conventions come one for each message; `add_content` puts them together.
    """
    if name == _DETAILS:
        return {key: value for key, value in attributes.items() if key.startswith("gen_ai.")}
    if name in _ROLES and isinstance(body, Mapping):
        return {_INPUT: [{"role": _ROLES[name], **body}]}
    if name == "gen_ai.choice" and isinstance(body, Mapping):
        message = body.get("message")
        inner = message if isinstance(message, Mapping) else body
        return {_OUTPUT: [{"role": "assistant", **inner}]}
    return {}


def add_content(known: dict[str, Any], content: Mapping[str, Any]) -> None:
    """Add the content of one more event to what is known of a span."""
    for key, value in content.items():
        before = known.get(key)
        if key in (_INPUT, _OUTPUT) and isinstance(before, list) and isinstance(value, list):
            known[key] = [*before, *value]
        else:
            known[key] = value
