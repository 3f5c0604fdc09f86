"""Providers whose spans, log records and metrics stay in memory."""

from __future__ import annotations

from typing import Any

from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import InMemoryLogRecordExporter, SimpleLogRecordProcessor
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import Span

from steelyard.record import TraceRef
from steelyard.recording import current_trace
from steelyard.sinks import OpenTelemetrySink


class Telemetry:
    """Real providers that keep what they get."""

    def __init__(self) -> None:
        self.spans, self.logs, self.reader = (
            InMemorySpanExporter(),
            InMemoryLogRecordExporter(),  # type: ignore[no-untyped-call]
            InMemoryMetricReader(),
        )
        self.tracers = TracerProvider(shutdown_on_exit=True)
        self.tracers.add_span_processor(SimpleSpanProcessor(self.spans))
        self.loggers = LoggerProvider()
        self.loggers.add_log_record_processor(SimpleLogRecordProcessor(self.logs))
        self.meters = MeterProvider([self.reader])

    def sink(self, **options: Any) -> OpenTelemetrySink:
        return OpenTelemetrySink(
            tracer_provider=self.tracers, logger_provider=self.loggers, meter_provider=self.meters, **options
        )

    def turn(self) -> tuple[TraceRef, Span]:
        """A RAG span that has ended, and what a recorder noted of it."""
        with self.tracers.get_tracer("app").start_as_current_span("rag") as span:
            ref = current_trace(framework="langchain")
        return ref, span

    def evaluation_span(self) -> ReadableSpan:
        (found,) = (span for span in self.spans.get_finished_spans() if span.name == "evaluation")
        return found

    def events(self) -> list[dict[str, Any]]:
        return [dict(log.log_record.attributes or {}) for log in self.logs.get_finished_logs()]

    def points(self) -> dict[str, list[Any]]:
        data = self.reader.get_metrics_data()
        found: dict[str, list[Any]] = {}
        for resource in data.resource_metrics if data else []:
            for scope in resource.scope_metrics:
                for metric in scope.metrics:
                    found.setdefault(metric.name, []).extend(metric.data.data_points)
        return found

    def close(self) -> None:
        self.tracers.shutdown()
        self.loggers.shutdown()
        self.meters.shutdown()
