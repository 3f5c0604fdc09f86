"""AutoGen's own spans: agents and tools in the GenAI conventions, always without content."""

from __future__ import annotations

from steelyard_opentelemetry.dialects._dialect import Dialect
from steelyard_opentelemetry.spans._parsed import ParsedSpan
from steelyard_opentelemetry.spans._span import Span

__all__ = ["AutoGen"]

_SCOPE = "autogen-core"


class AutoGen(Dialect):
    """Spans that the GenAI conventions read; there is nothing on them that a switch would turn on."""

    name = "autogen"
    scope_names = (_SCOPE,)
    scope_signs = (_SCOPE,)
    content_switch = (
        "AutoGen's own spans never hold content: add openinference-instrumentation-autogen-agentchat, or an "
        "instrumentor of the model client with content (openinference-instrumentation-openai, "
        "opentelemetry-instrumentation-genai-openai), whose prompts hold what tools returned"
    )

    def governs(self, dialect: str, scope: str) -> bool:
        """Whether this is one of AutoGen's spans."""
        return dialect == "genai" and scope == _SCOPE

    def parse(self, span: Span) -> ParsedSpan | None:
        """Nothing: its spans are in the conventions."""
        return None
