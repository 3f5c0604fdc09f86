"""Spring AI: Micrometer observations (`spring.ai.*`, `db.vector.query.*`) and its model calls."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from steelyard.record import Context
from steelyard.recording.reading import Message
from steelyard_opentelemetry.dialects._dialect import Dialect
from steelyard_opentelemetry.spans._parsed import Kind, ParsedSpan
from steelyard_opentelemetry.spans._span import Span

__all__ = ["Spring"]

_SCOPE = "org.springframework"
_DOCUMENTS = "db.vector.query.response.documents"
_KINDS: dict[str, Kind] = {"chat_client": "chain", "advisor": "chain", "tool_call": "tool"}
_MODEL = frozenset({"chat", "text_completion"})
_BETWEEN = re.compile(r'",\s?"')


class Spring(Dialect):
    """Spans by `spring.ai.kind`; model calls, which have none, by their scope."""

    name = "spring"
    scopes = ("org.springframework",)
    signs = ("spring.ai.kind",)
    scope_signs = (_SCOPE,)
    retrieval_kinds = ("spring.ai.kind", frozenset({"vector_store"}))
    retrieval_attributes = ("db.vector.query.",)
    content_switch = (
        "releases of Spring AI write prompts and completions to the log alone "
        "(spring.ai.chat.observations.log-prompt, .log-completion): add them to each model call's "
        "observation as gen_ai.prompt and gen_ai.completion, in an ObservationFilter bean. For tools set "
        "spring.ai.tools.observations.include-content=true, which reaches spans. Documents do not: they are "
        "read from the prompt; or set steelyard.contexts and steelyard.answer on a span of the turn"
    )

    def parse(self, span: Span) -> ParsedSpan | None:
        """The span as Spring AI writes it."""
        attributes = span.attributes
        kind = span.text("spring.ai.kind")
        if kind == "vector_store":
            return self._search(span) if attributes.get("db.operation.name") == "query" else None
        if kind == "tool_call":
            result = attributes.get("spring.ai.tool.call.result")
            tool = span.text("spring.ai.tool.definition.name")
            return ParsedSpan(dialect=self.name, kind="tool", tool=tool, result=result, hidden=result is None)
        if kind in _KINDS:
            question = span.text("spring.ai.chat.client.user.text").strip()
            return ParsedSpan(dialect=self.name, kind=_KINDS[kind], question=question)
        if span.scope.startswith(_SCOPE) and span.text("gen_ai.operation.name") in _MODEL:
            return self._model(span)
        return None

    def _search(self, span: Span) -> ParsedSpan:
        told = _told(span, "db.vector.content.query.response", _DOCUMENTS)
        texts = _listed(told)
        return ParsedSpan(
            dialect=self.name,
            kind="retrieval",
            query=span.text("db.vector.query.content").strip(),
            documents=tuple(Context(text=text) for text in texts),
            empty=told is not None and not texts,
        )

    def _model(self, span: Span) -> ParsedSpan:
        sent = _listed(_told(span, "gen_ai.content.prompt", "gen_ai.prompt"))
        said = _listed(_told(span, "gen_ai.content.completion", "gen_ai.completion"))
        current = {"gen_ai.input.messages", "gen_ai.output.messages"} & span.attributes.keys()
        return ParsedSpan(
            dialect=self.name,
            kind="llm",
            answer=said[-1] if said else "",
            messages=_messages(sent),
            hidden=not sent and not said and not current,
        )


def _told(span: Span, event: str, key: str) -> object:
    """What the span says, else what an event on it says."""
    events: list[Mapping[str, Any]] = [e.attributes for e in span.events if e.name == event]
    return next((found[key] for found in (span.attributes, *events) if key in found), None)


def _listed(value: object) -> list[str]:
    """The texts of a list; where it was written as one text, nothing in it is escaped."""
    if isinstance(value, (list, tuple)):
        return [text.strip() for text in value if isinstance(text, str) and text.strip()]
    if not isinstance(value, str) or not value.strip():
        return []
    text = value.strip()
    if text == "[]":
        return []
    if not (text.startswith('["') and text.endswith('"]')):
        return [text]
    return [part.strip() for part in _BETWEEN.split(text[2:-2]) if part.strip()]


def _messages(texts: list[str]) -> tuple[Message, ...]:
    """Roles are not told: the last text is taken for the user's, anything before it for the system's."""
    return tuple(Message("user" if text is texts[-1] else "system", text) for text in texts)
