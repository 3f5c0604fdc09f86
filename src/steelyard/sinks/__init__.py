"""Where Evaluations go, one file each.

Sinks that need an optional package or the network are imported when they are first asked for, so importing
this room is cheap and needs nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from steelyard._internal.lazy import lazy_exports
from steelyard.results import Retention, SQLiteSink, prune, read_evaluations
from steelyard.sinks._attributes import diagnosis_attributes as diagnosis_attributes
from steelyard.sinks._attributes import span_attributes

# `import x as x`: for the other rooms of the project, and not public.
from steelyard.sinks._sink import Checkable as Checkable
from steelyard.sinks._sink import MonitorAware as MonitorAware
from steelyard.sinks._sink import Sink, sink_from
from steelyard.sinks.jsonl import JSONLSink, read_jsonl

if TYPE_CHECKING:
    from steelyard.results import PostgresSink
    from steelyard.sinks.datadog import DatadogSink
    from steelyard.sinks.langfuse import LangfuseSink
    from steelyard.sinks.langsmith import LangSmithSink
    from steelyard.sinks.mlflow import MLflowSink
    from steelyard.sinks.monitoring import observe_alarms as observe_alarms
    from steelyard.sinks.monitoring import observe_monitor as observe_monitor
    from steelyard.sinks.opentelemetry import OpenTelemetrySink
    from steelyard.sinks.phoenix import PhoenixSink

__all__ = [
    "DatadogSink",
    "JSONLSink",
    "LangSmithSink",
    "LangfuseSink",
    "MLflowSink",
    "OpenTelemetrySink",
    "PhoenixSink",
    "PostgresSink",
    "Retention",
    "SQLiteSink",
    "Sink",
    "prune",
    "read_evaluations",
    "read_jsonl",
    "sink_from",
    "span_attributes",
]

__getattr__, __dir__ = lazy_exports(
    __name__,
    {
        "DatadogSink": "steelyard.sinks.datadog",
        "LangSmithSink": "steelyard.sinks.langsmith",
        "LangfuseSink": "steelyard.sinks.langfuse",
        "MLflowSink": "steelyard.sinks.mlflow",
        "OpenTelemetrySink": "steelyard.sinks.opentelemetry",
        "PhoenixSink": "steelyard.sinks.phoenix",
        "PostgresSink": "steelyard.results",
        "observe_alarms": "steelyard.sinks.monitoring",
        "observe_monitor": "steelyard.sinks.monitoring",
    },
    extras={
        "opentelemetry": ("opentelemetry-api", "opentelemetry"),
        "psycopg": ("psycopg", "postgres"),
        "psycopg_pool": ("psycopg", "postgres"),
    },
)
