"""The official GenAI conventions (`gen_ai.*`), with the older forms of their message attributes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from steelyard.recording.reading import Message, arguments_in, messages_in
from steelyard_opentelemetry.dialects._shapes import indexed
from steelyard_opentelemetry.spans._documents import retrieved_in
from steelyard_opentelemetry.spans._logs import content_of_events, events_in
from steelyard_opentelemetry.spans._parsed import Kind, ParsedSpan
from steelyard_opentelemetry.spans._payload import (
    Broken,
    answer_in,
    decode,
    is_conversation,
    is_empty,
    question_in,
)
from steelyard_opentelemetry.spans._span import Span

_NAME = "genai"
_KINDS: dict[str, Kind] = {
    **dict.fromkeys(("chat", "text_completion", "completion", "generate_content", "fetch_response"), "llm"),
    **dict.fromkeys(("chat.completions", "text.completions", "text_completions"), "llm"),
    **dict.fromkeys(("retrieval", "retrieve", "retrieve_documents"), "retrieval"),
    "execute_tool": "tool",
    "invoke_agent": "agent",
    "invoke_workflow": "chain",
    **dict.fromkeys(("create_agent", "embeddings", "plan"), "chain"),
}
_OUTPUT = "gen_ai.output.messages"
_WHOLE_PROMPT = ("gen_ai.prompt", "gen_ai.content.prompt")
_WHOLE_COMPLETION = ("gen_ai.completion", "gen_ai.content.completion")
_VARIABLE = "gen_ai.prompt.variable."
_TYPED = ".llama_index"
LANGSMITH_KIND = "langsmith.span.kind"
"""What LangSmith says a span is; its operation calls a retriever embeddings."""


def read(span: Span) -> ParsedSpan | None:
    """The span as the conventions describe it."""
    kind = _kind(span.attributes)
    if kind is None:
        return None
    # What events say fills the gaps: attributes are what the conventions have today.
    attributes = span.attributes
    if told := (*span.events, *events_in(attributes.get("events"))):
        attributes = {**content_of_events(told), **attributes}
    if kind == "retrieval":
        return _as_retrieval(attributes)
    if kind == "tool":
        return _as_tool(span, attributes)
    sent, broken = _sent(attributes)
    got = decode(attributes.get(_OUTPUT))
    step = ParsedSpan(
        dialect=_NAME,
        kind=kind,
        answer=answer_in(got) or _older_answer(attributes),
        variables=_variables(attributes),
        broken=broken or (got.cause if isinstance(got, Broken) else ""),
    )
    if kind != "llm":
        talk = is_conversation(_texts(sent))
        # A graph's state is written as JSON; what LlamaIndex's workflows and all agents are given was typed.
        is_state = kind == "chain" and not span.scope.endswith(_TYPED)
        return replace(step, question=_question(sent, is_state=is_state), in_conversation=talk)
    return replace(
        step,
        messages=sent,
        arguments=arguments_in(got) or _older_arguments(attributes),
        hidden=not sent and not step.answer and not broken,
    )


def _as_retrieval(attributes: Mapping[str, Any]) -> ParsedSpan:
    query = attributes.get("gen_ai.retrieval.query.text", attributes.get("gen_ai.retrieval.query"))
    listed = decode(attributes.get("gen_ai.retrieval.documents"))
    broken = listed.cause if isinstance(listed, Broken) else ""
    return ParsedSpan(
        dialect=_NAME,
        kind="retrieval",
        query=query.strip() if isinstance(query, str) else "",
        documents=retrieved_in(listed) if listed is not None and not broken else (),
        empty=is_empty(listed),
        hidden=query is None and listed is None,
        broken=broken,
    )


def _as_tool(span: Span, attributes: Mapping[str, Any]) -> ParsedSpan:
    result = attributes.get("gen_ai.tool.call.result")
    if result is None:
        result = _returned(attributes)
    return ParsedSpan(
        dialect=_NAME,
        kind="tool",
        tool=str(attributes.get("gen_ai.tool.name") or ""),
        result=result,
        hidden=result is None and not span.failed and "error.type" not in attributes,
    )


def _returned(attributes: Mapping[str, Any]) -> Any:
    """What a tool returned where it is told as a message: the tool's output, or else the message to it."""
    for key in (_OUTPUT, "gen_ai.input.messages"):
        messages = decode(attributes.get(key))
        last = messages[-1] if isinstance(messages, list) and messages else None
        if isinstance(last, Mapping):
            parts = last.get("parts")
            part = parts[-1] if isinstance(parts, list) and parts else None
            return (
                part.get("response", part.get("content"))
                if isinstance(part, Mapping)
                else last.get("content")
            )
    return None


def _kind(attributes: Mapping[str, Any]) -> Kind | None:
    if LANGSMITH_KIND in attributes:
        return None
    operation = attributes.get("gen_ai.operation.name")
    if isinstance(operation, str) and operation in _KINDS:
        return _KINDS[operation]
    if operation is None and ("gen_ai.request.model" in attributes or "llm.request.type" in attributes):
        # Conventions before 1.28, and instrumentors that have not caught up.
        return "llm" if attributes.get("llm.request.type") not in ("embedding", "rerank") else None
    # An operation of the instrumentor's own, such as LiteLLM's `acompletion`: what a model said says enough.
    return "llm" if "gen_ai.request.model" in attributes and _OUTPUT in attributes else None


def _sent(attributes: Mapping[str, Any]) -> tuple[tuple[Message, ...], str]:
    """The messages a model was sent, and why they could not be read."""
    given = decode(attributes.get("gen_ai.input.messages"))
    system = decode(attributes.get("gen_ai.system_instructions"))
    broken = next((part.cause for part in (given, system) if isinstance(part, Broken)), "")
    found = () if isinstance(given, Broken) else messages_in(given)
    if system and not isinstance(system, Broken):
        found = (*messages_in([{"role": "system", "content": system}]), *found)
    return found or _sent_before(attributes), broken


def _sent_before(attributes: Mapping[str, Any]) -> tuple[Message, ...]:
    """The messages as older conventions have them: one text, or an attribute each."""
    whole = next((attributes[key] for key in _WHOLE_PROMPT if isinstance(attributes.get(key), str)), None)
    if whole:
        return messages_in(decode(whole)) or (Message("user", whole),)
    return messages_in([_older_message(entry) for _, entry in _older(attributes)])


def _older_message(entry: Mapping[str, object]) -> dict[str, object]:
    return {
        "role": entry.get("role") or "user",
        "content": decode(entry.get("content")),
        "tool_calls": [call for _, call in indexed(entry, "tool_calls")],
        "tool_call_id": entry.get("tool_call_id"),
    }


def _older(attributes: Mapping[str, Any]) -> list[tuple[int, dict[str, object]]]:
    return list(indexed(attributes, "gen_ai.prompt"))


def _older_answer(attributes: Mapping[str, Any]) -> str:
    entries = [entry.get("content") for _, entry in indexed(attributes, "gen_ai.completion")]
    whole = next((attributes[key] for key in _WHOLE_COMPLETION if isinstance(attributes.get(key), str)), "")
    return answer_in(entries[-1]) if entries else answer_in(whole)


def _older_arguments(attributes: Mapping[str, Any]) -> tuple[str, ...]:
    entries = [entry for _, entry in indexed(attributes, "gen_ai.completion")]
    calls = [call for entry in entries for _, call in indexed(entry, "tool_calls")]
    return tuple(text for call in calls if isinstance(text := call.get("arguments"), str))


def _texts(messages: tuple[Message, ...]) -> list[dict[str, str]]:
    return [{"role": message.role, "content": message.text} for message in messages]


def _question(messages: tuple[Message, ...], *, is_state: bool) -> str:
    """The user's last words; of a state, what it asks."""
    asked = question_in(_texts(messages)) if messages else ""
    return question_in(asked) if is_state else asked


def _variables(attributes: Mapping[str, Any]) -> dict[str, str]:
    return {
        key.removeprefix(_VARIABLE): value
        for key, value in attributes.items()
        if key.startswith(_VARIABLE) and isinstance(value, str)
    }
