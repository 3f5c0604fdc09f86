"""Steelyard's recorder for OpenTelemetry: instrumented applications, recorded without touching their code.

`EvaluationSpanProcessor` needs the OpenTelemetry SDK and is imported when it is first asked for; reading
OTLP/JSON (`read_otlp`, `read_spans`) needs nothing but Steelyard.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from steelyard._internal.lazy import lazy_exports
from steelyard_opentelemetry._instrumentor import Check, check_environment

# For the command line, and not public.
from steelyard_opentelemetry._instrumentor import other_tracers as other_tracers
from steelyard_opentelemetry.building._diagnosis import Diagnosis
from steelyard_opentelemetry.building._extractor import Extraction
from steelyard_opentelemetry.building._extractor import read as read_spans
from steelyard_opentelemetry.spans._otlp import Otlp, read_otlp
from steelyard_opentelemetry.spans._span import Event, Span

if TYPE_CHECKING:
    from steelyard_opentelemetry._holding import HoldingSpanProcessor
    from steelyard_opentelemetry._hook import ContentLogRecordProcessor
    from steelyard_opentelemetry._pending import HoldingCounts
    from steelyard_opentelemetry._recorder import EvaluationSpanProcessor, SpanCounts

__all__ = [
    "Check",
    "ContentLogRecordProcessor",
    "Diagnosis",
    "EvaluationSpanProcessor",
    "Event",
    "HoldingCounts",
    "HoldingSpanProcessor",
    "Otlp",
    "Extraction",
    "Span",
    "SpanCounts",
    "check_environment",
    "read_otlp",
    "read_spans",
]

__getattr__, __dir__ = lazy_exports(
    __name__,
    {
        "ContentLogRecordProcessor": "steelyard_opentelemetry._hook",
        "EvaluationSpanProcessor": "steelyard_opentelemetry._recorder",
        "HoldingCounts": "steelyard_opentelemetry._pending",
        "HoldingSpanProcessor": "steelyard_opentelemetry._holding",
        "SpanCounts": "steelyard_opentelemetry._recorder",
    },
    extras={"opentelemetry": ("opentelemetry-sdk", "opentelemetry")},
)
