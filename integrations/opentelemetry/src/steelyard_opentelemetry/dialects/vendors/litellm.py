"""LiteLLM: model calls in the GenAI conventions, under a switch of its own."""

from __future__ import annotations

from steelyard_opentelemetry.dialects._dialect import Dialect
from steelyard_opentelemetry.spans._parsed import ParsedSpan
from steelyard_opentelemetry.spans._span import Span

__all__ = ["LiteLLM"]

_SCOPE = "litellm"


class LiteLLM(Dialect):
    """Spans of the scope `litellm` are read as the conventions have them; only the switch differs."""

    name = "litellm"
    scope_names = (_SCOPE,)
    scope_signs = (_SCOPE,)
    content_switch = "leave litellm.turn_off_message_logging unset or False (content is on unless it is set)"

    def governs(self, dialect: str, scope: str) -> bool:
        """LiteLLM writes `gen_ai.*`, but obeys its own switch."""
        return dialect == "genai" and scope == _SCOPE

    def is_instrumentor(self, distribution: str) -> bool:
        """Whether an installed distribution is LiteLLM, which has its own callback for OpenTelemetry."""
        return distribution == "litellm"

    def parse(self, span: Span) -> ParsedSpan | None:
        """Nothing of its own."""
        return None
