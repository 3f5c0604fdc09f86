"""Steelyard's recorder for OpenTelemetry: instrumented applications, recorded without touching their code.

`EvaluationSpanProcessor` needs the OpenTelemetry SDK and is imported when it is first asked for; reading
OTLP/JSON (`read_otlp`, `read_spans`) needs nothing but Steelyard.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from steelyard._internal.lazy import lazy_exports
from steelyard_opentelemetry._diagnosis import NoRecord as NoRecord
from steelyard_opentelemetry._extractor import Extraction
from steelyard_opentelemetry._extractor import read as read_spans

# `import x as x`: for the other rooms of the project, and not public.
from steelyard_opentelemetry._instrumentor import check_environment as check_environment
from steelyard_opentelemetry._instrumentor import other_tracers as other_tracers
from steelyard_opentelemetry._otlp import read_otlp
from steelyard_opentelemetry._span import Event as Event
from steelyard_opentelemetry._span import Span as Span

if TYPE_CHECKING:
    from steelyard_opentelemetry._holding import HoldingSpanProcessor
    from steelyard_opentelemetry._hook import ContentLogRecordProcessor
    from steelyard_opentelemetry._recorder import EvaluationSpanProcessor

__all__ = [
    "ContentLogRecordProcessor",
    "EvaluationSpanProcessor",
    "HoldingSpanProcessor",
    "Extraction",
    "read_otlp",
    "read_spans",
]

__getattr__, __dir__ = lazy_exports(
    __name__,
    {
        "ContentLogRecordProcessor": "steelyard_opentelemetry._hook",
        "EvaluationSpanProcessor": "steelyard_opentelemetry._recorder",
        "HoldingSpanProcessor": "steelyard_opentelemetry._holding",
    },
    extras={"opentelemetry": ("opentelemetry-sdk", "opentelemetry")},
)
