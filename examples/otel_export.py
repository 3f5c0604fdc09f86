"""Scores on your traces, in the tracing tool of your choice.

    python examples/otel_export.py                       # prints what would be exported; needs nothing
    python examples/otel_export.py --to jaeger           # OTLP to http://localhost:4318
    python examples/otel_export.py --to tempo --endpoint http://tempo:4318/v1/traces
    python examples/otel_export.py --to phoenix          # OTLP and annotations to http://localhost:6006
    python examples/otel_export.py --to langfuse         # with LANGFUSE_PUBLIC_KEY and _SECRET_KEY

Everything but the console needs `pip install opentelemetry-exporter-otlp-proto-http`.
"""

from __future__ import annotations

import argparse
import base64
import json
import os
from dataclasses import dataclass, field

from opentelemetry.sdk._logs import LoggerProvider, ReadableLogRecord
from opentelemetry.sdk._logs.export import ConsoleLogRecordExporter, SimpleLogRecordProcessor
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import ConsoleSpanExporter, SpanExporter
from opentelemetry.trace import Tracer

from steelyard import Monitor
from steelyard.sinks import LangfuseSink, OpenTelemetrySink, PhoenixSink, Sink
from steelyard_opentelemetry import EvaluationSpanProcessor, HoldingSpanProcessor

PASSAGES = [
    "A steelyard balance weighs a load with a counterweight that slides along a graduated arm.",
    "Steelyards were used in Roman markets from about the first century BC.",
]
TURNS = [
    (
        "How does a steelyard balance weigh a load?",
        "A steelyard balance weighs a load with a counterweight that slides along a graduated arm.",
    ),
    ("When were steelyards used in Roman markets?", "They were used in Roman markets from the year 1850."),
]


@dataclass
class Destination:
    """Where spans go, and the sinks that speak the tool's own score API."""

    exporter: SpanExporter
    sinks: list[Sink] = field(default_factory=list)


def destination(to: str, endpoint: str | None) -> Destination:
    if to == "console":
        return Destination(ConsoleSpanExporter(formatter=span_line))
    if to == "phoenix":
        base = os.environ.get("PHOENIX_COLLECTOR_ENDPOINT", "http://localhost:6006")
        return Destination(otlp(endpoint or f"{base}/v1/traces"), [PhoenixSink(base)])
    if to == "langfuse":
        sink = LangfuseSink()  # checks the keys first
        base = os.environ.get("LANGFUSE_BASE_URL", "https://cloud.langfuse.com")
        keys = f"{os.environ['LANGFUSE_PUBLIC_KEY']}:{os.environ['LANGFUSE_SECRET_KEY']}"
        headers = {"Authorization": f"Basic {base64.b64encode(keys.encode()).decode()}"}
        return Destination(otlp(endpoint or f"{base}/api/public/otel/v1/traces", headers), [sink])
    return Destination(otlp(endpoint or "http://localhost:4318/v1/traces"))  # Jaeger, Tempo, any collector


def otlp(endpoint: str, headers: dict[str, str] | None = None) -> SpanExporter:
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

    return OTLPSpanExporter(endpoint, headers=headers)


def span_line(span: ReadableSpan) -> str:
    """A span in one line: its name and the scores on it."""
    scores = {key: item for key, item in (span.attributes or {}).items() if key.endswith(".score")}
    flat = {key: item for key, item in scores.items() if key.startswith("steelyard.")}
    return f"span   {span.name:<12}{json.dumps(flat) if flat else ''}\n"


def event_line(log: ReadableLogRecord) -> str:
    """An event in one line."""
    record = log.log_record
    attributes = dict(record.attributes or {})
    shown = {key: item for key, item in attributes.items() if key.startswith("gen_ai.evaluation.")}
    return f"event  {record.event_name} on span {record.span_id:016x} {json.dumps(shown)}\n"


def answer(tracer: Tracer, question: str, reply: str) -> str:
    """Your application; an instrumentor (OpenInference, OpenLLMetry, ...) would write these attributes."""
    with tracer.start_as_current_span("rag") as root:
        root.set_attributes({"openinference.span.kind": "CHAIN", "input.value": question})
        with tracer.start_as_current_span("retriever") as retriever:
            retriever.set_attributes({"openinference.span.kind": "RETRIEVER", "input.value": question})
            for index, text in enumerate(PASSAGES):
                retriever.set_attribute(f"retrieval.documents.{index}.document.content", text)
        with tracer.start_as_current_span("llm") as llm:
            prompt = "\n".join([*PASSAGES, question])
            llm.set_attributes(
                {"openinference.span.kind": "LLM", "input.value": prompt, "output.value": reply}
            )
        root.set_attribute("output.value", reply)
    return reply


def main() -> None:
    parser = argparse.ArgumentParser(description="Export traces with scores on them.")
    parser.add_argument(
        "--to", choices=["console", "jaeger", "tempo", "phoenix", "langfuse"], default="console"
    )
    parser.add_argument("--endpoint", help="OTLP/HTTP traces endpoint, where it is not the usual one")
    options = parser.parse_args()
    target = destination(options.to, options.endpoint)

    tracers, loggers = TracerProvider(), LoggerProvider()
    if options.to == "console":
        events = ConsoleLogRecordExporter(formatter=event_line)
        loggers.add_log_record_processor(SimpleLogRecordProcessor(events))
    results = OpenTelemetrySink(tracer_provider=tracers, logger_provider=loggers)
    monitor = Monitor(sinks=[results, *target.sinks])
    recorder = EvaluationSpanProcessor(monitor)
    tracers.add_span_processor(recorder)
    tracers.add_span_processor(HoldingSpanProcessor(target.exporter, monitor=monitor))

    tracer = tracers.get_tracer("shop")
    for question, reply in TURNS:
        answer(tracer, question, reply)

    recorder.force_flush()
    left = monitor.flush(20)
    monitor.close()
    tracers.shutdown()
    loggers.shutdown()
    print(f"{len(TURNS)} turns, {left} still pending; undelivered: {dict(results.undelivered)}")


if __name__ == "__main__":
    main()
