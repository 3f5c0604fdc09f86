"""LlamaIndex's own OpenTelemetry integration: bare spans, with LlamaIndex's events as span events."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from steelyard.recording.reading import Message
from steelyard_opentelemetry.spans._documents import retrieved_in
from steelyard_opentelemetry.spans._parsed import Kind, ParsedSpan
from steelyard_opentelemetry.spans._payload import Broken, answer_in, as_messages, decode, named, question_in
from steelyard_opentelemetry.spans._span import Event, Span

_NAME = "llamaindex"
SCOPE = "llamaindex.opentelemetry"
_SAID = ("user_msg", "query", "question", "input", "message", "prompt")
_SUMMARY = "llamaindex.step.input_summary"
_KINDS: dict[str, Kind] = {
    "RetrievalStartEvent": "retrieval",
    "RetrievalEndEvent": "retrieval",
    "ReRankStartEvent": "rerank",
    "ReRankEndEvent": "rerank",
    "LLMChatStartEvent": "llm",
    "LLMChatEndEvent": "llm",
    "LLMCompletionStartEvent": "llm",
    "LLMCompletionEndEvent": "llm",
    "LLMPredictStartEvent": "llm",
    "LLMPredictEndEvent": "llm",
    "StreamChatDeltaReceivedEvent": "llm",
}


def read(span: Span) -> ParsedSpan | None:
    """The span as LlamaIndex's events describe it."""
    if not span.scope.startswith(SCOPE):
        return None
    events: dict[str, Mapping[str, Any]] = {event.name: event.attributes for event in span.events}
    kind = next((_KINDS[name] for name in events if name in _KINDS), None) or _kind_by_name(span.name)
    if kind in ("retrieval", "rerank"):
        # What the reranker left comes last, so that its nodes stand for those that it was given.
        got = {**events.get("RetrievalEndEvent", {}), **events.get("ReRankEndEvent", {})}
        nodes = decode(got.get("nodes"))
        broken = nodes.cause if isinstance(nodes, Broken) else ""
        return ParsedSpan(
            dialect=_NAME,
            kind=kind,
            query=_query(events.get("RetrievalStartEvent", got), "str_or_query_bundle"),
            documents=retrieved_in(nodes) if nodes is not None and not broken else (),
            broken=broken,
        )
    if kind == "llm":
        # A streamed reply is in no end event, but its pieces are events too.
        answer = _said(events) or _streamed(span.events)
        return ParsedSpan(dialect=_NAME, kind=kind, answer=answer, messages=_sent(events))
    return ParsedSpan(
        dialect=_NAME,
        kind=kind,
        question=_question(span, events),
        answer=_answer(events),
        tool=span.name if kind == "tool" else "",
    )


def _kind_by_name(name: str) -> Kind:
    owner, _, method = name.rpartition(".")
    if owner.endswith("Tool") or method == "call_tool":
        return "tool"
    return "agent" if owner.endswith("Agent") and method == "run" else "chain"


def _query(fields: Mapping[str, Any], key: str) -> str:
    return question_in(fields.get(f"{key}.query_str") or fields.get(key))


def _question(span: Span, events: Mapping[str, Mapping[str, Any]]) -> str:
    started = events.get("QueryStartEvent") or events.get("SynthesizeStartEvent") or {}
    if found := _query(started, "query"):
        return found
    # A workflow's own step says what the workflow was started with, in the way Python shows it.
    summary = span.text(_SUMMARY)
    return named(summary, _SAID) if "StartEvent(" in summary else ""


def _streamed(events: tuple[Event, ...]) -> str:
    deltas = [e.attributes.get("delta") for e in events if e.name == "StreamChatDeltaReceivedEvent"]
    return "".join(delta for delta in deltas if isinstance(delta, str)).strip()


def _answer(events: Mapping[str, Mapping[str, Any]]) -> str:
    for name in ("QueryEndEvent", "SynthesizeEndEvent", "GetResponseEndEvent"):
        if found := answer_in(events.get(name, {}).get("response.response")):
            return found
    output = events.get("workflow.output", {}).get("output")
    return answer_in(output) if isinstance(output, str) and "StopEvent(" in output else ""


def _sent(events: Mapping[str, Mapping[str, Any]]) -> tuple[Message, ...]:
    chat = events.get("LLMChatStartEvent") or events.get("LLMChatEndEvent") or {}
    completion = events.get("LLMCompletionStartEvent") or events.get("LLMCompletionEndEvent") or {}
    prompt = completion.get("prompt")
    return as_messages(chat.get("messages")) or (
        (Message("user", prompt),) if isinstance(prompt, str) else ()
    )


def _said(events: Mapping[str, Mapping[str, Any]]) -> str:
    chat = events.get("LLMChatEndEvent", {})
    blocks = decode(chat.get("response.message.blocks"))
    if blocks is not None and not isinstance(blocks, Broken):
        message = as_messages([{"role": "assistant", "blocks": blocks}])
        return message[0].text if message else ""
    completed = events.get("LLMCompletionEndEvent", {}).get("response.text")
    return answer_in(completed or events.get("LLMPredictEndEvent", {}).get("output"))
