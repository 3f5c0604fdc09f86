"""Steelyard's recorder for OpenTelemetry: instrumented applications, recorded without touching their code.

`EvaluationSpanProcessor` needs the OpenTelemetry SDK and is imported when it is first asked for; reading
OTLP/JSON (`read_otlp`, `read_spans`) needs nothing but Steelyard.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from steelyard.errors import MissingDependency
from steelyard_opentelemetry._diagnosis import Diagnosis
from steelyard_opentelemetry._environment import Check, check_environment
from steelyard_opentelemetry._extractor import Extraction
from steelyard_opentelemetry._extractor import read as read_spans
from steelyard_opentelemetry.spans._otlp import Otlp, read_otlp
from steelyard_opentelemetry.spans._span import Event, Span

if TYPE_CHECKING:
    from steelyard_opentelemetry._recorder import EvaluationSpanProcessor, SpanCounts
    from steelyard_opentelemetry.delayed._processor import HoldingCounts, HoldingSpanProcessor

__all__ = [
    "Check",
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

_NEED_SDK = {
    "EvaluationSpanProcessor": "_recorder",
    "HoldingCounts": "delayed",
    "HoldingSpanProcessor": "delayed",
    "SpanCounts": "_recorder",
}


def __getattr__(name: str) -> Any:
    if name not in _NEED_SDK:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        module = import_module(f"{__name__}.{_NEED_SDK[name]}")
    except ModuleNotFoundError as error:
        raise MissingDependency("opentelemetry-sdk", extra="opentelemetry") from error
    return getattr(module, name)
