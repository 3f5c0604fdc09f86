"""pydantic-ai: what its spans say beyond the GenAI conventions, in the formats 1 to 5."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from steelyard.recording.reading import Message, messages_in, spoken
from steelyard_opentelemetry.dialects._dialect import Dialect
from steelyard_opentelemetry.spans._parsed import ParsedSpan
from steelyard_opentelemetry.spans._payload import Broken, answer_in, decode
from steelyard_opentelemetry.spans._span import Span

__all__ = ["PydanticAI"]

_SCOPES = ("pydantic-ai", "logfire.pydantic-ai")
_ALL = ("pydantic_ai.all_messages", "all_messages_events")


class PydanticAI(Dialect):
    """Spans of the scope `pydantic-ai`; model calls of today's formats are left to the conventions."""

    name = "pydantic_ai"
    scopes = _SCOPES
    scope_signs = _SCOPES
    content_switch = "leave include_content of pydantic-ai's InstrumentationSettings at True (its default)"

    def is_instrumentor(self, distribution: str) -> bool:
        """Whether an installed distribution is pydantic-ai, which writes its spans by itself."""
        return distribution in ("pydantic-ai", "pydantic-ai-slim")

    def parse(self, span: Span) -> ParsedSpan | None:
        """The span as pydantic-ai writes it."""
        if not span.scope.startswith(_SCOPES):
            return None
        attributes = span.attributes
        if "gen_ai.tool.name" in attributes:
            result = attributes.get("gen_ai.tool.call.result", attributes.get("tool_response"))
            tool = span.text("gen_ai.tool.name")
            return ParsedSpan(dialect=self.name, kind="tool", tool=tool, result=result, hidden=result is None)
        if "gen_ai.request.model" in attributes:
            return self._model(span)
        if "agent_name" in attributes or any(key in attributes for key in _ALL):
            return self._agent(span)
        return None

    def _agent(self, span: Span) -> ParsedSpan:
        given = next((decode(span.attributes[key]) for key in _ALL if key in span.attributes), None)
        said = () if isinstance(given, Broken) else messages_in(given)
        # What tools return comes back in messages of the user's, but not as texts of theirs.
        asked = spoken(_typed(given))
        final = span.attributes.get("final_result")
        return ParsedSpan(
            dialect=self.name,
            kind="agent",
            question=asked[-1] if asked else "",
            answer=answer_in(final),
            hidden=bool(said) and not any(message.text for message in said),
            broken=given.cause if isinstance(given, Broken) else "",
        )

    def _model(self, span: Span) -> ParsedSpan:
        """A model call: in format 1 an attribute holds what was sent, event by event, and the choice."""
        events = decode(span.attributes.get("events"))
        told = [item for item in events if isinstance(item, Mapping)] if isinstance(events, list) else []
        chosen = [item.get("message") for item in told if item.get("event.name") == "gen_ai.choice"]
        sent = [item for item in told if item.get("event.name") != "gen_ai.choice"]
        return ParsedSpan(
            dialect=self.name,
            kind="llm",
            answer=answer_in([chosen[-1]]) if chosen else "",
            messages=messages_in([_event(item) for item in sent]),
        )


def _typed(given: object) -> tuple[Message, ...]:
    """The messages with what was typed alone."""
    if not isinstance(given, list):
        return ()
    return messages_in([_without_results(item) for item in given if isinstance(item, Mapping)])


def _without_results(item: Mapping[str, Any]) -> Mapping[str, Any]:
    parts = item.get("parts")
    if not isinstance(parts, list):
        return _event(item)
    return {
        "role": item.get("role"),
        "parts": [p for p in parts if isinstance(p, Mapping) and p.get("type") == "text"],
    }


def _event(item: Mapping[str, Any]) -> Mapping[str, Any]:
    """A message of format 1; a tool's result may be any JSON."""
    content = item.get("content")
    return {"role": item.get("role"), "content": content if content is not None else ""}
