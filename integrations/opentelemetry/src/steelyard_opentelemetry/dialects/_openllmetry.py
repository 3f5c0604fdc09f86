"""OpenLLMetry (Traceloop): `traceloop.span.kind`, with payloads as JSON in `traceloop.entity.*`."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from steelyard.record import Context
from steelyard.recording.reading import Message, messages_in
from steelyard_opentelemetry.spans._documents import documents_in, retrieved_in, windows_in
from steelyard_opentelemetry.spans._parsed import Kind, ParsedSpan
from steelyard_opentelemetry.spans._payload import (
    Broken,
    Words,
    answer_in,
    decode,
    is_conversation,
    is_empty,
    question_in,
)
from steelyard_opentelemetry.spans._span import Event, Span

_NAME = "openllmetry"
_KINDS: dict[str, Kind] = {"workflow": "chain", "task": "chain", "agent": "agent", "tool": "tool"}
_QUERIES = ("query", "qb", "str_or_query_bundle", "query_bundle")
_HIT = "db.query.result"
_STREAMED = {"input": ""}
"""What LangChain gives a run's tracer at its start if the input is a stream."""


def read(span: Span) -> ParsedSpan | None:
    """The span as OpenLLMetry writes it."""
    attributes = span.attributes
    hits = _hits(span.events)
    if hits:
        return ParsedSpan(dialect=_NAME, kind="retrieval", documents=hits)
    kind = _KINDS.get(str(attributes.get("traceloop.span.kind")))
    if kind is None:
        return None
    given = _payload(attributes.get("traceloop.entity.input"))
    got = _payload(attributes.get("traceloop.entity.output"))
    broken = next((part.cause for part in (given, got) if isinstance(part, Broken)), "")
    if "tool.name" in attributes:
        kind = "tool"
    kind = _kind_by_shape(kind, attributes, given, got)
    if kind in ("retrieval", "rerank"):
        documents = retrieved_in(got) if got is not None else ()
        part = ParsedSpan(
            dialect=_NAME,
            kind=kind,
            query=question_in(given) if kind == "retrieval" else "",
            documents=documents,
            windows=windows_in(got),
            empty=not documents and is_empty(got),
            hidden=given is None and got is None,
            broken=broken,
        )
    elif kind == "llm":
        part = ParsedSpan(
            dialect=_NAME, kind=kind, answer=answer_in(got), messages=_sent(given), broken=broken
        )
    else:
        part = _as_step(kind, attributes, given, got, broken)
    # Only a LangChain run without a parent is called a workflow. Its context leaks into the other
    # threads of a batch, so that the runs there look like children of the first one.
    run = attributes.get("traceloop.span.kind") == "workflow" and span.scope.endswith(".langchain")
    return replace(part, run=run)


def _as_step(kind: Kind, attributes: Mapping[str, Any], given: Any, got: Any, broken: str) -> ParsedSpan:
    given, got = _inputs(given, got), _outputs(got)
    name = str(attributes.get("tool.name") or attributes.get("traceloop.entity.name") or "")
    return ParsedSpan(
        dialect=_NAME,
        kind=kind,
        question=question_in(given),
        in_conversation=is_conversation(given),
        answer=answer_in(got),
        tool=name if kind == "tool" else "",
        result=got if kind == "tool" else None,
        passing=(given, got),
        hidden=given is None and got is None and kind == "tool",
        broken=broken,
    )


def _payload(value: object) -> Any:
    """A payload, which is always JSON: a plain text stands in quotes."""
    if isinstance(value, str) and value.startswith('"'):
        with contextlib.suppress(ValueError):
            return json.loads(value)
    return decode(value)


def _kind_by_shape(kind: Kind, attributes: Mapping[str, Any], given: object, got: object) -> Kind:
    """LlamaIndex steps are all `task` or `workflow`: what went in and came out tells them apart."""
    if attributes.get("gen_ai.operation.name") == "vector_db_retrieve":
        return "retrieval"
    if kind != "chain":
        return kind
    fields = given if isinstance(given, Mapping) else {}
    is_asked = not fields.keys().isdisjoint(("nodes", *_QUERIES))
    if isinstance(got, list) and is_asked and (documents_in(got) or not got):
        return "rerank" if "nodes" in fields else "retrieval"
    # A model's reply, or messages to it; a step of LangChain is given its messages under `inputs` too.
    replied = isinstance(got, Mapping) and "raw" in got and not got.keys().isdisjoint(("message", "text"))
    if replied or ("inputs" not in fields and _is_conversation(fields.get("messages"))):
        return "llm"
    return kind


def _is_conversation(messages: object) -> bool:
    return isinstance(messages, list) and bool(messages_in(messages))


def _inputs(given: Any, got: Any) -> Any:
    """What a LangChain run was given, without what stands beside it; of a stream its output tells it."""
    if not isinstance(given, Mapping):
        return given
    if "inputs" not in given:
        return _without_templates(given)
    inputs = given["inputs"]
    late = got.get("kwargs") if isinstance(got, Mapping) else None
    if inputs == _STREAMED and isinstance(late, Mapping):
        inputs = late.get("inputs", inputs)
    return Words(inputs) if isinstance(inputs, str) else inputs


def _without_templates(given: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments without LlamaIndex's templates; what these hold was bound before anything was found."""
    return {
        name: _without_templates(value) if isinstance(value, Mapping) else value
        for name, value in given.items()
        if not (isinstance(value, Mapping) and "template_vars" in value)
    }


def _outputs(got: Any) -> Any:
    if not isinstance(got, Mapping):
        return got
    outputs = got.get("outputs", got.get("output", got))
    # A model's text may look like JSON, and is what was said.
    return Words(outputs) if isinstance(outputs, str) else outputs


def _sent(given: object) -> tuple[Message, ...]:
    if not isinstance(given, Mapping):
        return ()
    if "messages" in given:
        return messages_in(given["messages"])
    args = given.get("args")
    text = given.get("prompt") or (args[0] if isinstance(args, list) and args else None)
    return (Message("user", text),) if isinstance(text, str) else ()


def _hits(events: tuple[Event, ...]) -> tuple[Context, ...]:
    """What a vector store's instrumentor noted of a query, one event for each hit."""
    found: list[dict[str, object]] = []
    for event in events:
        if event.name == _HIT:
            plain = {key.removeprefix(_HIT + "."): value for key, value in event.attributes.items()}
            found.append(plain)
    return retrieved_in(found) if found else ()
