"""LangChain4j: model calls of Quarkus, and those of its Micrometer module, which have no content."""

from __future__ import annotations

from steelyard.recording.provenance import context_block, question_in_prompt
from steelyard.recording.reading import Message, Role
from steelyard_opentelemetry.dialects._dialect import Dialect
from steelyard_opentelemetry.spans._parsed import ParsedSpan
from steelyard_opentelemetry.spans._span import Span

__all__ = ["LangChain4j"]

_QUARKUS = "io.quarkus.opentelemetry"
_MICROMETER = ("org.springframework", "io.micrometer")
_OWN = "outcome"
"""An attribute of LangChain4j's observations; Spring AI's model calls, which are alike, do not have it."""
_DOUBT = (
    "question: the last line above the passages or of the prompt; Quarkus writes the system's and the user's "
    "message as one text, so lines before it may belong to the question"
)


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
        asked, is_certain = _question(sent)
        # Who said what is not told; only a single line is surely the user's.
        role: Role = "system" if "\n" in sent else "user"
        return ParsedSpan(
            dialect=self.name,
            kind="llm",
            answer=span.text("gen_ai.completion").strip(),
            messages=(Message(role, sent),),
            variables={"question": asked} if asked else {},
            doubt="" if is_certain else _DOUBT,
        )


def _question(sent: str) -> tuple[str, bool]:
    """The question in messages that were joined by lines, and whether it surely begins where it is cut.

    It is named below the passages, or stands above their heading, where a system message may stand too.
    """
    block = context_block(sent)
    at = sent.find(block) if block else -1
    named = question_in_prompt(sent[at + len(block) :] if at >= 0 else sent)
    if named:
        return named, True
    lines = [line.strip() for line in (sent[:at] if at >= 0 else sent).split("\n") if line.strip()]
    above = lines[:-1] if at >= 0 else lines
    return (above[-1], len(above) == 1) if above else ("", True)
