"""Google's Agent Development Kit: content in `gcp.vertex.agent.*`, as JSON of its own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from steelyard.recording.reading import Message, text_in
from steelyard_opentelemetry.dialects._dialect import Dialect, is_on
from steelyard_opentelemetry.spans._parsed import ParsedSpan
from steelyard_opentelemetry.spans._payload import Broken, decode
from steelyard_opentelemetry.spans._span import Span

__all__ = ["ADK"]

_SCOPE = "gcp.vertex.agent"
_CAPTURE = "ADK_CAPTURE_MESSAGE_CONTENT_IN_SPANS"
_REQUEST, _RESPONSE = "gcp.vertex.agent.llm_request", "gcp.vertex.agent.llm_response"
_TOOL_RESPONSE = "gcp.vertex.agent.tool_response"


class ADK(Dialect):
    """Model calls and tools of the scope `gcp.vertex.agent`; agents are left to the GenAI conventions."""

    name = "adk"
    scopes = (_SCOPE,)
    scope_signs = (_SCOPE,)
    content_switch = (
        "set ADK_CAPTURE_MESSAGE_CONTENT_IN_SPANS=true, or unset it (content is on unless it is switched off)"
    )

    def is_instrumentor(self, distribution: str) -> bool:
        """Whether an installed distribution is the kit, which writes its spans by itself."""
        return distribution == "google-adk"

    def hiding(self, environ: Mapping[str, str]) -> Iterator[str]:
        """The one variable that turns content off."""
        capture = environ.get(_CAPTURE, "true")
        if not is_on(capture):
            yield f"{_CAPTURE}={capture} leaves content out of the kit's spans: set it to true, or unset it"

    def parse(self, span: Span) -> ParsedSpan | None:
        """The span as the kit writes it; an empty object stands for content that is off."""
        if span.scope != _SCOPE:
            return None
        if _TOOL_RESPONSE in span.attributes:
            result = decode(span.attributes[_TOOL_RESPONSE])
            tool = span.text("gen_ai.tool.name")
            return ParsedSpan(dialect=self.name, kind="tool", tool=tool, result=result, hidden=result == {})
        if _REQUEST not in span.attributes:
            return None
        asked, replied = decode(span.attributes[_REQUEST]), decode(span.attributes.get(_RESPONSE))
        # A payload that the exporter cut is told as cut: it would otherwise look like an empty answer.
        broken = next((part.cause for part in (asked, replied) if isinstance(part, Broken)), "")
        return ParsedSpan(
            dialect=self.name,
            kind="llm",
            answer=_text(replied.get("content")) if isinstance(replied, Mapping) else "",
            messages=_sent(asked) if isinstance(asked, Mapping) else (),
            hidden=asked == {} and replied in ({}, None),
            broken=broken,
        )


def _sent(asked: Mapping[str, Any]) -> tuple[Message, ...]:
    config = asked.get("config")
    system = text_in(config.get("system_instruction")) if isinstance(config, Mapping) else ""
    contents = asked.get("contents")
    items = [item for item in contents if isinstance(item, Mapping)] if isinstance(contents, list) else []
    # The kit calls its models "model", as Gemini's API does; all others say "assistant".
    said = [Message("assistant" if item.get("role") == "model" else "user", _text(item)) for item in items]
    return (Message("system", system), *said) if system else tuple(said)


def _text(content: object) -> str:
    """The texts of a message, and what functions returned."""
    parts = content.get("parts") if isinstance(content, Mapping) else None
    found: list[str] = []
    for part in parts if isinstance(parts, list) else ():
        returned = part.get("function_response") if isinstance(part, Mapping) else None
        shown = returned.get("response") if isinstance(returned, Mapping) else part
        found.extend(_texts(shown))
    return "\n".join(found).strip()


def _texts(value: object, depth: int = 6) -> list[str]:
    if isinstance(value, str):
        return [value]
    # A call to a function holds arguments, which the model wrote and nobody said.
    if depth <= 0 or not isinstance(value, (list, Mapping)) or "function_call" in value:
        return []
    items = value.values() if isinstance(value, Mapping) else value
    return [text for item in items for text in _texts(item, depth - 1)]
