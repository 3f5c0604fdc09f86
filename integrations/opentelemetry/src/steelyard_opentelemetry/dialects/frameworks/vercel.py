"""The Vercel AI SDK: `ai.*` spans, where telemetry is on for a call."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from steelyard.record import Context
from steelyard.recording.reading import Message, messages_in, texts_of
from steelyard_opentelemetry.dialects._dialect import Dialect
from steelyard_opentelemetry.spans._parsed import ParsedSpan
from steelyard_opentelemetry.spans._payload import Broken, answer_in, decode, question_in
from steelyard_opentelemetry.spans._span import Span

__all__ = ["Vercel"]

_CALLS = frozenset({"ai.generateText", "ai.streamText", "ai.generateObject", "ai.streamObject"})
_STEPS = (".doGenerate", ".doStream")


class Vercel(Dialect):
    """Spans by `ai.operationId`: calls, the steps of a call, tools, rerankers."""

    name = "vercel"
    scope_names = ("ai",)
    signs = ("ai.operationId",)
    retrieval_kinds = ("ai.operationId", frozenset({"ai.rerank", "ai.rerank.doRerank"}))
    content_switch = (
        "leave recordInputs and recordOutputs of experimental_telemetry unset or true (their default) in "
        "every call of the AI SDK that has telemetry enabled"
    )

    def parse(self, span: Span) -> ParsedSpan | None:
        """The span as the SDK writes it; embeddings say nothing about a turn."""
        operation = span.text("ai.operationId")
        if operation in _CALLS:
            return self._call(span)
        if operation.startswith("ai.") and operation.endswith(_STEPS):
            return self._step(span)
        if operation == "ai.toolCall":
            result = _loaded(span.attributes.get("ai.toolCall.result"))
            tool = span.text("ai.toolCall.name")
            return ParsedSpan(dialect=self.name, kind="tool", tool=tool, result=result, hidden=result is None)
        if operation == "ai.rerank.doRerank":
            return ParsedSpan(dialect=self.name, kind="rerank", documents=_reranked(span.attributes))
        return None

    def _call(self, span: Span) -> ParsedSpan:
        given = decode(span.attributes.get("ai.prompt"))
        broken = given.cause if isinstance(given, Broken) else ""
        answer = _answer(span)
        return ParsedSpan(
            dialect=self.name,
            kind="chain",
            question=_question(given),
            answer=answer,
            hidden=given is None and not answer,
            broken=broken,
        )

    def _step(self, span: Span) -> ParsedSpan:
        given = decode(span.attributes.get("ai.prompt.messages"))
        sent = () if isinstance(given, Broken) else _messages(given)
        answer = _answer(span)
        called = "ai.response.toolCalls" in span.attributes
        return ParsedSpan(
            dialect=self.name,
            kind="llm",
            answer=answer,
            messages=sent,
            hidden=given is None and not answer and not called,
            broken=given.cause if isinstance(given, Broken) else "",
        )


def _question(given: object) -> str:
    """The last user message."""
    if not isinstance(given, Mapping):
        return ""
    asked = given.get("prompt")
    messages = asked if isinstance(asked, list) else given.get("messages")
    return asked.strip() if isinstance(asked, str) else question_in(messages)


def _answer(span: Span) -> str:
    said = span.text("ai.response.text") or span.text("ai.result.text")
    return said.strip() or answer_in(span.text("ai.response.object") or span.text("ai.result.object"))


def _messages(given: object) -> tuple[Message, ...]:
    """The messages of a step; what tools returned is told as parts of messages of their own."""
    if not isinstance(given, list):
        return ()
    return messages_in([_message(item) for item in given if isinstance(item, Mapping)])


def _message(item: Mapping[str, Any]) -> dict[str, Any]:
    content = item.get("content")
    if not isinstance(content, list):
        return dict(item)
    parts = [_part(part) for part in content if isinstance(part, Mapping)]
    results = [_result(part) for part in content if isinstance(part, Mapping)]
    told = {"result": results} if item.get("role") == "tool" else {}
    return {"role": item.get("role"), "content": [part for part in parts if part], **told}


def _part(part: Mapping[str, Any]) -> object:
    kind = part.get("type")
    if kind == "tool-result":
        return {"type": "text", "text": "\n".join(texts_of(_result(part)))}
    return part if kind == "text" else None


def _result(part: Mapping[str, Any]) -> Any:
    """What a tool returned, out of a part of a message."""
    output = part.get("output", part.get("result"))
    return output.get("value") if isinstance(output, Mapping) and "value" in output else output


def _reranked(attributes: Mapping[str, Any]) -> tuple[Context, ...]:
    """The documents in the order of their ranking, with its scores."""
    listed, ranking = attributes.get("ai.documents"), attributes.get("ai.ranking")
    if not isinstance(listed, (list, tuple)) or not isinstance(ranking, (list, tuple)):
        return ()
    texts = ["\n".join(texts_of(_loaded(item))) for item in listed]
    found: list[Context] = []
    for entry in map(_loaded, ranking):
        index = entry.get("index") if isinstance(entry, Mapping) else None
        if isinstance(index, int) and 0 <= index < len(texts):
            score = entry.get("relevanceScore")
            number = float(score) if isinstance(score, (int, float)) and abs(score) < 2**63 else None
            found.append(Context(text=texts[index], score=number))
    return tuple(found)


def _loaded(value: object) -> Any:
    """What an attribute says that is JSON whatever it holds, a text in quotes too."""
    if not (isinstance(value, str) and value.startswith('"')):
        return decode(value)
    found = decode(f"[{value}]")
    return value if isinstance(found, Broken) else found[0]
