"""Haystack's own tracing: `haystack.pipeline.run`, `haystack.component.run`, `haystack.agent.*`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from steelyard.recording.reading import Message, Role, messages_in
from steelyard_opentelemetry.spans._documents import retrieved_in
from steelyard_opentelemetry.spans._parsed import ParsedSpan
from steelyard_opentelemetry.spans._payload import Broken, decode, question_in
from steelyard_opentelemetry.spans._span import Span

_NAME = "haystack"
_PIPELINES = frozenset({"haystack.pipeline.run", "haystack.async_pipeline.run"})
_ASKED = ("question", "query", "user_query", "text", "prompt", "messages")
_STEP = "haystack.agent.step"


def read(span: Span) -> ParsedSpan | None:
    """The span as Haystack writes it."""
    if not span.name.startswith("haystack."):
        return None
    if span.name in _PIPELINES:
        given, came = (
            _read(span, "haystack.pipeline.input_data"),
            _read(span, "haystack.pipeline.output_data"),
        )
        return ParsedSpan(
            dialect=_NAME,
            kind="chain",
            question=_question(given),
            answer=_last(map(_said, _values(came))),
        )
    if span.name == "haystack.component.run":
        return _as_component(span)
    if span.name == "haystack.agent.run":
        given, came = _read(span, "haystack.agent.input"), _read(span, "haystack.agent.output")
        last = _messages(came.get("messages"))[-1:]
        answer = last[0].text if last and last[0].role == "assistant" else ""
        return ParsedSpan(
            dialect=_NAME,
            kind="agent",
            question=question_in(_plain(given.get("messages"))),
            answer=answer,
        )
    if span.name == f"{_STEP}.llm":
        given, came = _read(span, f"{_STEP}.llm.input"), _read(span, f"{_STEP}.llm.output")
        shown = span.text(f"{_STEP}.llm.input")
        return _as_model(given or {"prompt": shown}, came) if shown else _as_model(given, came)
    if span.name == f"{_STEP}.tool":
        result = span.attributes.get(f"{_STEP}.tool.output")
        tool = span.text("haystack.tool.name")
        return ParsedSpan(dialect=_NAME, kind="tool", tool=tool, result=result, hidden=result is None)
    return None


def _as_component(span: Span) -> ParsedSpan:
    kind = span.text("haystack.component.type")
    given, came = _read(span, "haystack.component.input"), _read(span, "haystack.component.output")
    hidden = "haystack.component.output" not in span.attributes
    # Without content only the component's type tells that it was a generator.
    if "replies" in came or (hidden and kind.endswith("Generator")):
        return _as_model(given, came)
    if "documents" in came and "Ranker" in kind:
        return ParsedSpan(dialect=_NAME, kind="rerank", documents=retrieved_in(came["documents"]))
    # Documents that went in as well were passed on, and not found here.
    if "documents" in came.keys() - given.keys() or (hidden and "Retriever" in kind):
        return ParsedSpan(
            dialect=_NAME,
            kind="retrieval",
            query=question_in(given.get("query") or given.get("text")),
            documents=retrieved_in(came.get("documents") or []),
            hidden=hidden,
        )
    if "tool_messages" in came:
        return ParsedSpan(dialect=_NAME, kind="tool", **_invoked(came["tool_messages"]))
    return ParsedSpan(dialect=_NAME, kind="chain")


def _as_model(given: Mapping[str, Any], came: Mapping[str, Any]) -> ParsedSpan:
    prompt = given.get("prompt")
    # What Python shows of an agent's messages holds the passages; who said what is not read out of it.
    role: Role = "system" if isinstance(prompt, str) and prompt.startswith("{'messages'") else "user"
    sent = (Message(role, prompt),) if isinstance(prompt, str) else _messages(given.get("messages"))
    answer = _said(came)
    return ParsedSpan(dialect=_NAME, kind="llm", answer=answer, messages=sent, hidden=not sent and not came)


def _read(span: Span, key: str) -> Mapping[str, Any]:
    found = decode(span.attributes.get(key))
    return found if isinstance(found, Mapping) and not isinstance(found, Broken) else {}


def _values(data: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [value for value in data.values() if isinstance(value, Mapping)]


def _question(given: Mapping[str, Any]) -> str:
    """What the components of a pipeline were given under a name that means a question, best name first."""
    parts = [*_values(given), given]
    texts = (question_in(_plain(part[key])) for key in _ASKED for part in parts if key in part)
    return next((text for text in texts if text), "")


def _said(came: Mapping[str, Any]) -> str:
    """What a component came to: an answer builder's answer, else a generator's reply."""
    answers, replies = came.get("answers"), came.get("replies")
    if isinstance(answers, list) and answers and isinstance(answers[0], Mapping):
        return str(answers[0].get("data") or "").strip()
    if not isinstance(replies, list) or not replies:
        return ""
    if isinstance(replies[0], str):
        return replies[0].strip()
    return next((message.text for message in _messages(replies[:1])), "")


def _last(texts: Any) -> str:
    return next((text for text in reversed(list(texts)) if text), "")


def _messages(value: object) -> tuple[Message, ...]:
    return messages_in(_plain(value))


def _plain(value: object) -> object:
    """Messages whose content parts are named by their keys, as messages with texts."""
    if not isinstance(value, list) or not all(isinstance(item, Mapping) for item in value):
        return value
    return [{"role": item.get("role"), "content": _content(item.get("content"))} for item in value]


def _content(content: object) -> object:
    """The texts of a message, and what a tool returned; not which tool was called."""
    if not isinstance(content, list):
        return content
    parts = [part for part in content if isinstance(part, Mapping)]
    results = [
        part["tool_call_result"] for part in parts if isinstance(part.get("tool_call_result"), Mapping)
    ]
    return [part["text"] for part in parts if isinstance(part.get("text"), str)] + [
        result["result"] for result in results if isinstance(result.get("result"), str)
    ]


def _invoked(messages: object) -> dict[str, Any]:
    """The name of a tool and what it returned, out of the messages of a component that called it."""
    contents = (
        [item.get("content") for item in messages if isinstance(item, Mapping)]
        if isinstance(messages, list)
        else []
    )
    parts = [part for content in contents if isinstance(content, list) for part in content]
    results = [
        part["tool_call_result"] for part in parts if isinstance(part, Mapping) and "tool_call_result" in part
    ]
    origins = [result.get("origin") for result in results if isinstance(result, Mapping)]
    tool = next((str(o["tool_name"]) for o in origins if isinstance(o, Mapping) and "tool_name" in o), "")
    # A tool that was called once returned this; several results stay a list, so that each is a passage.
    returned = [result.get("result") for result in results if isinstance(result, Mapping)]
    return {"tool": tool, "result": returned[0] if len(returned) == 1 else returned}
