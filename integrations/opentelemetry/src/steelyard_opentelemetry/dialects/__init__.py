"""The dialects: how instrumentors write LLM work on spans, one file each."""

from steelyard_opentelemetry.dialects.genai import GenAI
from steelyard_opentelemetry.dialects.llamaindex import LlamaIndex
from steelyard_opentelemetry.dialects.manual import Manual
from steelyard_opentelemetry.dialects.openinference import OpenInference
from steelyard_opentelemetry.dialects.openllmetry import OpenLLMetry
from steelyard_opentelemetry.spans._parsed import Dialect, Kind, ParsedSpan, fused
from steelyard_opentelemetry.spans._span import Span

__all__ = [
    "DIALECTS",
    "Dialect",
    "GenAI",
    "Kind",
    "LlamaIndex",
    "Manual",
    "OpenInference",
    "OpenLLMetry",
    "ParsedSpan",
    "known_scope",
    "parse",
]

DIALECTS: tuple[Dialect, ...] = (Manual(), OpenInference(), OpenLLMetry(), GenAI(), LlamaIndex())
"""Every dialect; of several on one span the earlier one has the first word."""


def parse(span: Span) -> ParsedSpan | None:
    """What a span says, in whichever dialects it speaks; None where it speaks none."""
    return fused(parsed for dialect in DIALECTS if (parsed := dialect.parse(span)) is not None)


_SCOPES = (
    *("openinference.", "llamaindex.opentelemetry", "traceloop", "opentelemetry.instrumentation.genai"),
    *("opentelemetry.instrumentation.langchain", "opentelemetry.instrumentation.llamaindex"),
    *("opentelemetry.instrumentation.llama_index", "opentelemetry.instrumentation.openai"),
    *("opentelemetry.util.genai", "opentelemetry.instrumentation.haystack"),
)


def known_scope(scope: str) -> bool:
    """Whether spans of an instrumentation scope usually speak one of the dialects.

    For spans that are still open: most instrumentors write what a span says only when it ends.
    """
    return scope.startswith(_SCOPES)
