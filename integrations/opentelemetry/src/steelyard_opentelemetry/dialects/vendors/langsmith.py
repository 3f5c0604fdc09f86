"""LangSmith's SDK in its OpenTelemetry mode: the inputs and outputs of a run as JSON, whatever its kind."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from steelyard.recording.reading import messages_in
from steelyard_opentelemetry.dialects._dialect import Dialect
from steelyard_opentelemetry.spans._documents import retrieved_in
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

__all__ = ["LangSmith"]

KIND = "langsmith.span.kind"
_KINDS: dict[str, Kind] = {"llm": "llm", "retriever": "retrieval", "tool": "tool", "prompt": "prompt"}


class LangSmith(Dialect):
    """Spans by `langsmith.span.kind`; their `gen_ai.operation.name` calls a retriever embeddings."""

    name = "langsmith"
    scope_names = ("langsmith",)
    signs = (KIND,)
    retrieval_kinds = (KIND, frozenset({"retriever"}))
    content_switch = "unset LANGSMITH_HIDE_INPUTS and LANGSMITH_HIDE_OUTPUTS, or hide_inputs of its Client"

    def parse(self, span: Span) -> ParsedSpan | None:
        """The run as LangSmith exports it; an empty object stands for content that is hidden."""
        marked = span.text(KIND)
        if not marked:
            return None
        given, came = decode(span.attributes.get("gen_ai.prompt")), _output(span)
        kind = _KINDS.get(marked, "chain")
        broken = next((part.cause for part in (given, came) if isinstance(part, Broken)), "")
        hidden = given in ({}, None) and came in ({}, None) and kind != "chain"
        if broken or hidden:
            return ParsedSpan(dialect=self.name, kind=kind, hidden=hidden, broken=broken)
        if kind == "retrieval":
            found = retrieved_in(came) if came is not None else ()
            query = question_in(given)
            return ParsedSpan(
                dialect=self.name, kind=kind, query=query, documents=found, empty=not found and is_empty(came)
            )
        if kind == "llm":
            sent = messages_in(given)
            return ParsedSpan(dialect=self.name, kind=kind, answer=answer_in(came), messages=sent)
        step = ParsedSpan(
            dialect=self.name, kind=kind, in_conversation=is_conversation(given), passing=(given, came)
        )
        if kind == "tool":
            return replace(step, tool=span.name, result=came)
        if kind == "prompt":
            return replace(step, variables=_texts(given))
        return replace(step, question=question_in(given), answer=answer_in(came))


def _output(span: Span) -> Any:
    """What came of a run, out of the object that is put around anything but an object."""
    found = decode(span.attributes.get("gen_ai.completion"))
    return found["output"] if isinstance(found, Mapping) and set(found) == {"output"} else found


def _texts(given: object) -> dict[str, str]:
    items = given.items() if isinstance(given, Mapping) else ()
    return {str(key): value for key, value in items if isinstance(value, str)}
