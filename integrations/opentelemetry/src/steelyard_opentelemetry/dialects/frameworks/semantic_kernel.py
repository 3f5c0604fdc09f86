"""Semantic Kernel: model calls whose content stands in span events (.NET) or in log records (Python)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from steelyard.recording.reading import messages_in
from steelyard_opentelemetry.dialects._dialect import Dialect, is_on
from steelyard_opentelemetry.spans._parsed import ParsedSpan
from steelyard_opentelemetry.spans._payload import Broken, answer_in, decode
from steelyard_opentelemetry.spans._span import Span

__all__ = ["SemanticKernel"]

_SCOPES = ("semantic_kernel", "Microsoft.SemanticKernel")
_SENSITIVE = "SEMANTICKERNEL_EXPERIMENTAL_GENAI_ENABLE_OTEL_DIAGNOSTICS_SENSITIVE"
_MODEL = frozenset({"chat", "chat.completions", "text.completions", "text_completions"})


class SemanticKernel(Dialect):
    """Spans of the kernel's scopes; what has content in the GenAI conventions' attributes is left to them."""

    name = "semantic_kernel"
    scopes = _SCOPES
    scope_signs = _SCOPES
    content_switch = (
        "set SEMANTICKERNEL_EXPERIMENTAL_GENAI_ENABLE_OTEL_DIAGNOSTICS_SENSITIVE=true; in Python the "
        "content goes to log records, so add a ContentLogRecordProcessor, or export logs as well"
    )

    advice = {
        "no_question": (
            "Semantic Kernel for Python writes what a model was sent to log records: add a "
            "ContentLogRecordProcessor to the LoggerProvider, or export logs beside spans"
        )
    }

    def is_instrumentor(self, distribution: str) -> bool:
        """Whether an installed distribution is the kernel, which writes its spans by itself."""
        return distribution == "semantic-kernel"

    def hiding(self, environ: Mapping[str, str]) -> Iterator[str]:
        """Content is off unless the variable turns it on."""
        if not is_on(environ.get(_SENSITIVE, "")):
            yield f"{_SENSITIVE} is not true, so Semantic Kernel leaves content out: set it to true"

    def parse(self, span: Span) -> ParsedSpan | None:
        """The span as the kernel writes it."""
        if not span.scope.startswith(_SCOPES):
            return None
        operation = span.text("gen_ai.operation.name")
        if operation == "execute_tool" and "gen_ai.tool.call.result" not in span.attributes:
            # Every function of a kernel is written as a tool, prompts among them.
            return ParsedSpan(dialect=self.name, kind="chain")
        if operation not in _MODEL:
            return None
        sent = messages_in(_event(span, "gen_ai.content.prompt", "gen_ai.prompt"))
        said = _event(span, "gen_ai.content.completion", "gen_ai.completion")
        current = {"gen_ai.input.messages", "gen_ai.output.messages"} & span.attributes.keys()
        return ParsedSpan(
            dialect=self.name,
            kind="llm",
            answer=answer_in(said),
            messages=sent,
            hidden=not sent and said is None and not current,
        )


def _event(span: Span, name: str, key: str) -> Any:
    found = (decode(event.attributes.get(key)) for event in span.events if event.name == name)
    value = next(found, None)
    return None if isinstance(value, Broken) else value
