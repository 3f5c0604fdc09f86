"""All three signals over the wire: OTLP, protobuf over HTTP, to a real endpoint on the loopback."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import BatchLogRecordProcessor
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

from sinks.making import make_evaluation
from steelyard.recording import current_trace
from steelyard.scores import Score
from steelyard.sinks import OpenTelemetrySink

KINDS: dict[str, Any] = {
    "/v1/traces": ExportTraceServiceRequest,
    "/v1/logs": ExportLogsServiceRequest,
    "/v1/metrics": ExportMetricsServiceRequest,
}


class Collector:
    """Decodes what arrives, by signal; can be told to refuse."""

    def __init__(self) -> None:
        self.received: dict[str, list[Any]] = {path: [] for path in KINDS}
        self.status = 200
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                outer.received[self.path].append(KINDS[self.path].FromString(body))
                self.send_response(outer.status)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, format: str, *args: Any) -> None: ...

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.02})
        self.thread.start()

    def close(self) -> None:
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()


@pytest.fixture
def collector() -> Iterator[Collector]:
    made = Collector()
    yield made
    made.close()


def values(attributes: Any) -> dict[str, Any]:
    return {item.key: getattr(item.value, item.value.WhichOneof("value")) for item in attributes}


def test_a_collector_receives_what_was_scored(collector: Collector) -> None:
    tracers, loggers = TracerProvider(), LoggerProvider()
    tracers.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(f"{collector.url}/v1/traces")))
    loggers.add_log_record_processor(BatchLogRecordProcessor(OTLPLogExporter(f"{collector.url}/v1/logs")))
    reader = PeriodicExportingMetricReader(OTLPMetricExporter(f"{collector.url}/v1/metrics"))
    meters = MeterProvider([reader])
    with tracers.get_tracer("app").start_as_current_span("rag") as rag:
        ref = current_trace()
    evaluation = make_evaluation("r1", trace=ref)
    sink = OpenTelemetrySink(tracer_provider=tracers, logger_provider=loggers, meter_provider=meters)

    asyncio.run(sink.write([evaluation]))
    for provider in (tracers, loggers, meters):
        provider.force_flush()
        provider.shutdown()

    trace_id, span_id = (
        rag.get_span_context().trace_id.to_bytes(16),
        rag.get_span_context().span_id.to_bytes(8),
    )
    spans = {
        span.name: (scope.scope.name, span)
        for request in collector.received["/v1/traces"]
        for resource in request.resource_spans
        for scope in resource.scope_spans
        for span in scope.spans
    }
    scope_name, span = spans["evaluation"]
    assert (scope_name, span.parent_span_id) == ("steelyard", b"")
    assert span.trace_id != trace_id
    assert [(link.trace_id, link.span_id) for link in span.links] == [(trace_id, span_id)]
    assert values(span.attributes)["steelyard.faithfulness.score"] == 0.75

    logs = [
        log
        for request in collector.received["/v1/logs"]
        for resource in request.resource_logs
        for scope in resource.scope_logs
        for log in scope.log_records
    ]
    assert {(log.event_name, log.trace_id, log.span_id) for log in logs} == {
        ("gen_ai.evaluation.result", trace_id, span_id)
    }
    assert [_told(values(log.attributes)) for log in logs] == [_made(score) for score in evaluation.scores]

    points = {
        metric.name: metric
        for request in collector.received["/v1/metrics"][:1]  # shutting down sends another, without exemplars
        for resource in request.resource_metrics
        for scope in resource.scope_metrics
        for metric in scope.metrics
    }
    (point,) = points["gen_ai.evaluation.score"].histogram.data_points
    assert (point.count, point.sum) == (1, 0.75)
    assert [(one.trace_id, one.span_id) for one in point.exemplars] == [(trace_id, span_id)]
    (weight,) = points["steelyard.evaluation.weight"].sum.data_points
    assert weight.as_double == 10.0


def _told(attributes: dict[str, Any]) -> tuple[Any, ...]:
    keys = ("name", "score.value", "score.label")
    return (*(attributes.get(f"gen_ai.evaluation.{key}") for key in keys), attributes.get("error.type"))


def _made(score: Score) -> tuple[Any, ...]:
    return (score.metric, score.value, score.label, score.cause if score.status == "failed" else None)


def test_a_collector_that_refuses_disturbs_nobody(collector: Collector) -> None:
    collector.status = 400
    tracers = TracerProvider()
    tracers.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(f"{collector.url}/v1/traces")))
    sink = OpenTelemetrySink(tracer_provider=tracers)
    asyncio.run(sink.write([make_evaluation("r1")]))
    tracers.force_flush()
    tracers.shutdown()
    assert len(collector.received["/v1/traces"]) == 1
