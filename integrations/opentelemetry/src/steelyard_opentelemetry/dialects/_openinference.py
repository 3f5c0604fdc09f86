"""OpenInference (Arize Phoenix and others): `openinference.span.kind`, `input.value`, `output.value`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from steelyard.record import Context
from steelyard.recording.building import is_telling
from steelyard.recording.provenance import names_passages
from steelyard.recording.reading import (
    ASKED_NAMES,
    Message,
    messages_in,
    read_shown,
    searched_by_provider,
)
from steelyard_opentelemetry.dialects._shapes import indexed
from steelyard_opentelemetry.spans._documents import documents_in, merged, noted_in, retrieved_in, windows_in
from steelyard_opentelemetry.spans._parsed import Kind, ParsedSpan
from steelyard_opentelemetry.spans._payload import (
    MOST,
    Broken,
    Words,
    answer_in,
    decode,
    is_conversation,
    is_empty,
    question_in,
)
from steelyard_opentelemetry.spans._span import Span

_NAME = "openinference"
_KINDS: dict[str, Kind] = {
    "LLM": "llm",
    "RETRIEVER": "retrieval",
    "RERANKER": "rerank",
    "TOOL": "tool",
    "AGENT": "agent",
    "PROMPT": "prompt",
    "CHAIN": "chain",
}
_DOCUMENTS = {"retrieval": "retrieval.documents", "rerank": "reranker.output_documents"}
_OWN_SCOPE = "openinference.instrumentation.langchain"
_TYPED_SCOPES = (_OWN_SCOPE, "openinference.instrumentation.llama_index")
"""Scopes that say what is JSON."""
_REDACTED = "__REDACTED__"


def read(span: Span) -> ParsedSpan | None:
    """The span as OpenInference describes it."""
    attributes = span.attributes
    marked = attributes.get("openinference.span.kind")
    if not isinstance(marked, str):
        return None
    kind = _KINDS.get(marked.upper())
    if kind is None:
        # Embeddings, guardrails, evaluators: part of the tree, but nothing they say is the turn's.
        return ParsedSpan(dialect=_NAME, kind="chain")
    raw, got = _said(span, "input"), decode(_said(span, "output"))
    given = decode(raw)
    broken = next((part.cause for part in (given, got) if isinstance(part, Broken)), "")
    hidden = _REDACTED in (attributes.get("input.value"), attributes.get("output.value"))
    if kind in _DOCUMENTS:
        documents = _documents(attributes, kind, got)
        query = question_in(given) or _shown(attributes, "reranker.query")
        # A managed service retrieves and answers in one span.
        answer = answer_in(got) if "generate" in span.name else ""
        part = ParsedSpan(
            dialect=_NAME,
            kind=kind,
            query=query,
            documents=documents,
            windows=windows_in(_entries(attributes, kind)),
            noted=() if documents else _noted(span, got),
            answer=answer,
            empty=not documents and is_empty(got),
            passing=(raw,),
        )
    elif kind == "llm":
        part = _as_llm(attributes, given, got)
    else:
        part = ParsedSpan(
            dialect=_NAME,
            kind=kind,
            question=question_in(given),
            in_conversation=is_conversation(given),
            answer=answer_in(got),
            variables=_filled_in(_variables(attributes), given),
            tool=_shown(attributes, "tool.name"),
            result=got if kind == "tool" else None,
            passing=(raw, got),
            noted=_noted(span),
        )
    return _flagged(part, hidden=hidden, broken=broken)


def _as_llm(attributes: Mapping[str, Any], given: object, got: object) -> ParsedSpan:
    sent = _messages(attributes, "llm.input_messages") or _prompts(attributes, given)
    received = _messages(attributes, "llm.output_messages")
    answer = received[-1].text if received else answer_in(got)
    return ParsedSpan(
        dialect=_NAME,
        kind="llm",
        answer=answer,
        messages=(*sent, *searched_by_provider(got)),
        arguments=_arguments(attributes),
        variables=_unbound(_variables(attributes), given),
    )


def _unbound(variables: dict[str, str], given: object) -> dict[str, str]:
    """The variables without those that LlamaIndex's template had before anything was found for it."""
    prompt = given.get("prompt") if isinstance(given, Mapping) else None
    shown = read_shown(prompt[:MOST]) if isinstance(prompt, str) and "template_vars=" in prompt else None
    bound = shown.get("kwargs") if isinstance(shown, Mapping) else None
    if not isinstance(bound, Mapping):
        return variables
    keeps = (name for name in variables if name not in bound or name in ASKED_NAMES or names_passages(name))
    return {name: variables[name] for name in keeps}


def _said(span: Span, way: str) -> Any:
    """What a step was given (`input`) or returned (`output`), as it stands."""
    value = _shown(span.attributes, f"{way}.value")
    is_json = span.attributes.get(f"{way}.mime_type") == "application/json"
    # What else looks like JSON was written by the user, or by a model.
    is_words = span.scope.startswith(_TYPED_SCOPES) and isinstance(value, str) and not is_json
    return Words(value) if is_words else value


def _flagged(parsed: ParsedSpan, *, hidden: bool, broken: str) -> ParsedSpan:
    return replace(parsed, hidden=hidden, broken=broken) if hidden or broken else parsed


def _shown(attributes: Mapping[str, Any], key: str) -> Any:
    value = attributes.get(key)
    return "" if value is None or value == _REDACTED else value


def _documents(attributes: Mapping[str, Any], kind: Kind, got: object) -> tuple[Context, ...]:
    """The flattened documents, with ids and scores from their metadata or from the output as a whole."""
    listed = tuple(found for entry in _entries(attributes, kind) for found in retrieved_in([entry]))
    whole = documents_in(got)
    if any(document.text for document in listed):
        return merged(listed, whole)
    # A retriever by decorator or by hand returns whatever its function does: texts, or objects with a text.
    plain = retrieved_in(got) if isinstance(got, (list, tuple, Mapping)) and not listed else ()
    return whole or listed or plain


def _entries(attributes: Mapping[str, Any], kind: Kind) -> list[dict[str, Any]]:
    return [
        {key.removeprefix("document."): value for key, value in entry.items() if value != _REDACTED}
        for _, entry in indexed(attributes, _DOCUMENTS[kind])
    ]


def _messages(attributes: Mapping[str, Any], prefix: str) -> tuple[Message, ...]:
    found: list[dict[str, object]] = []
    for _, entry in indexed(attributes, prefix):
        parts = [part.get("message_content.text") for _, part in indexed(entry, "message.contents")]
        content = entry.get("message.content") or [part for part in parts if isinstance(part, str)]
        content = content or [text for key, value in entry.items() if (text := _returned(key, value))]
        if content != _REDACTED:
            calls = [
                {"id": call.get("tool_call.id"), "name": call.get("tool_call.function.name")}
                for _, call in indexed(entry, "message.tool_calls")
            ]
            named = {key: entry.get(f"message.{key}") for key in ("tool_call_id", "name")}
            found.append(
                {"role": entry.get("message.role"), "content": content, "tool_calls": calls, **named}
            )
    return messages_in(found)


def _returned(key: str, value: object) -> str:
    """What a function returned, where a message keeps it beside its content, as JSON."""
    found = decode(value) if "function." in key and "tool_call" not in key else None
    text = found.get("content") if isinstance(found, Mapping) else None
    return text if isinstance(text, str) else ""


def _arguments(attributes: Mapping[str, Any]) -> tuple[str, ...]:
    """What the model called tools with, in its last message; forms that it filled in are among them."""
    received = list(indexed(attributes, "llm.output_messages"))
    calls = indexed(received[-1][1], "message.tool_calls") if received else ()
    given = (call.get("tool_call.function.arguments") for _, call in calls)
    return tuple(text for text in given if isinstance(text, str))


def _prompts(attributes: Mapping[str, Any], given: object) -> tuple[Message, ...]:
    """What a completion model was sent; a chat model's JSON input where nothing is flattened."""
    prompts = attributes.get("llm.prompts")
    texts = [text for text in prompts if isinstance(text, str)] if isinstance(prompts, (list, tuple)) else []
    texts += [
        text
        for _, entry in indexed(attributes, "llm.prompts")
        if isinstance(text := entry.get("prompt.text"), str)
    ]
    if texts:
        return tuple(Message("user", text) for text in texts)
    if isinstance(given, str):
        return (Message("user", given),) if given.strip() else ()
    return () if isinstance(given, Broken) else messages_in(given)


def _noted(span: Span, got: object = None) -> tuple[str, ...]:
    """What an application noted by hand about a retrieval; whether it counts is a matter of the prompt."""
    if span.scope.startswith(_OWN_SCOPE):
        return ()
    told = [got, span.attributes.get("retrieval.documents"), span.attributes.get("retrieval.context")]
    told += [value for event in span.events for value in event.attributes.values() if got is not None]
    return tuple(one for value in told if value for one in noted_in(value) if is_telling(one))


def _filled_in(variables: Mapping[str, str], given: object) -> Mapping[str, str]:
    """The variables that a run of a template was given: the instrumentor adds those that the template had."""
    if isinstance(given, Mapping):
        return {name: value for name, value in variables.items() if name in given}
    return {name: value for name, value in variables.items() if value == given} or variables


def _variables(attributes: Mapping[str, Any]) -> dict[str, str]:
    found = decode(attributes.get("llm.prompt_template.variables"))
    items = found.items() if isinstance(found, Mapping) else ()
    return {str(key): value for key, value in items if isinstance(value, str)}
