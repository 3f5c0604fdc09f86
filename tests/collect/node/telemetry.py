"""The same telemetry as `examples/node/telemetry.mjs`."""

from __future__ import annotations

from openinference.instrumentation.langchain import LangChainInstrumentor
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

DOCUMENTS = {
    "d1": "Paris is the capital of France.",
    "d2": "France is a country in Europe.",
    "d3": "Berlin is the capital of Germany.",
}


def begin() -> TracerProvider:
    """Trace LangChain, and send the spans to where the environment says."""
    provider = TracerProvider(resource=Resource.create({"service.name": "python-rag"}))
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    LangChainInstrumentor().instrument(tracer_provider=provider)
    return provider
