"""LangChain4j: model calls of Quarkus, and those of its Micrometer module, which have no content."""

from __future__ import annotations

from steelyard.recording.reading import Message
from steelyard_opentelemetry.dialects._dialect import Dialect
from steelyard_opentelemetry.spans._parsed import ParsedSpan
from steelyard_opentelemetry.spans._span import Span

__all__ = ["LangChain4j"]

_QUARKUS = "io.quarkus.opentelemetry"
_MICROMETER = ("org.springframework", "io.micrometer")
_OWN = "outcome"
"""An attribute of LangChain4j's observations; Spring AI's model calls, which are alike, do not have it."""


class LangChain4j(Dialect):
    """Model calls by their scope; tools are spans of the GenAI conventions."""

    name = "langchain4j"
    scope_signs = (*_MICROMETER, _QUARKUS)
    content_switch = (
        "with Quarkus set quarkus.langchain4j.tracing.include-prompt=true, "
        "quarkus.langchain4j.tracing.include-completion=true and, for tools, "
        "quarkus.langchain4j.tracing.include-tool-result=true; LangChain4j's Micrometer module writes no "
        "content: use openinference-instrumentation-langchain4j beside it, or set steelyard.question, "
        "steelyard.contexts and steelyard.answer on a span of the turn"
    )

    def governs(self, dialect: str, scope: str) -> bool:
        """Whether this is a span of Quarkus in the GenAI conventions, with switches of its own."""
        return dialect == "genai" and scope == _QUARKUS

    def parse(self, span: Span) -> ParsedSpan | None:
        """The span as LangChain4j writes it; what is not a model call is left to the conventions."""
        attributes = span.attributes
        if span.scope.startswith(_MICROMETER):
            # Its chat models and Spring's have the same scope; without this sign the span is Spring's to
            # read.
            is_own = _OWN in attributes and attributes.get("gen_ai.operation.name") == "chat"
            return ParsedSpan(dialect=self.name, kind="llm", hidden=True) if is_own else None
        sent = span.text("gen_ai.prompt").strip() if span.scope == _QUARKUS else ""
        if not sent:
            return None
        return ParsedSpan(
            dialect=self.name,
            kind="llm",
            answer=span.text("gen_ai.completion").strip(),
            # Who said what is not told; only a single line is surely the user's.
            messages=(Message("system" if "\n" in sent else "user", sent),),
        )
