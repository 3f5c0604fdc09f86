"""The dialects: how instrumentors write LLM work on spans, one file each."""

from steelyard_opentelemetry._span import Span
from steelyard_opentelemetry.dialects._sight import Dialect, Kind, ParsedSpan, fused
from steelyard_opentelemetry.dialects.adk import ADK
from steelyard_opentelemetry.dialects.genai import GenAI
from steelyard_opentelemetry.dialects.haystack import Haystack
from steelyard_opentelemetry.dialects.llamaindex import LlamaIndex
from steelyard_opentelemetry.dialects.manual import Manual
from steelyard_opentelemetry.dialects.openinference import OpenInference
from steelyard_opentelemetry.dialects.openllmetry import OpenLLMetry
from steelyard_opentelemetry.dialects.pydantic_ai import PydanticAI
from steelyard_opentelemetry.dialects.semantic_kernel import SemanticKernel
from steelyard_opentelemetry.dialects.spring import Spring
from steelyard_opentelemetry.dialects.vercel import Vercel

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
    "see",
]

DIALECTS: tuple[Dialect, ...] = (
    *(Manual(), OpenInference(), Vercel(), Spring(), Haystack(), PydanticAI()),
    *(ADK(), SemanticKernel(), OpenLLMetry(), GenAI(), LlamaIndex()),
)
"""Every dialect; of several on one span the earlier one has the first word."""


def see(span: Span) -> ParsedSpan | None:
    """What a span says, in whichever dialects it speaks; None where it speaks none."""
    return fused(sight for dialect in DIALECTS if (sight := dialect.see(span)) is not None)


_SCOPES = (
    *("openinference.", "llamaindex.opentelemetry", "traceloop", "opentelemetry.instrumentation.genai"),
    *("opentelemetry.instrumentation.langchain", "opentelemetry.instrumentation.llamaindex"),
    *("opentelemetry.instrumentation.llama_index", "opentelemetry.instrumentation.openai"),
    *("opentelemetry.util.genai", "opentelemetry.instrumentation.haystack", "pydantic-ai"),
    *("gcp.vertex.agent", "semantic_kernel", "Microsoft.SemanticKernel"),
)


def known_scope(scope: str) -> bool:
    """Whether spans of an instrumentation scope usually speak one of the dialects.

    For spans that are still open: most instrumentors write what a span says only when it ends.
    """
    return scope == "ai" or scope.startswith(_SCOPES)
