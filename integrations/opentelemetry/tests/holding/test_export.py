from __future__ import annotations

import signal
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from otel_holding import ref_of, scores

import programs
from steelyard import Monitor
from steelyard.testing import MemorySink
from steelyard_opentelemetry import EvaluationSpanProcessor, HoldingSpanProcessor
from waiting import until


class Endpoint:
    """A real OTLP/HTTP endpoint that decodes protobuf."""

    def __init__(self) -> None:
        received: list[ExportTraceServiceRequest] = []

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                received.append(ExportTraceServiceRequest.FromString(body))
                self.send_response(200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, format: str, *args: Any) -> None: ...

        self.received = received
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.thread = threading.Thread(target=self.server.serve_forever)
        self.thread.start()
        self.url = f"http://127.0.0.1:{self.server.server_port}/v1/traces"

    def spans(self) -> dict[str, Any]:
        return {
            span.name: span
            for request in self.received
            for resource in request.resource_spans
            for scope in resource.scope_spans
            for span in scope.spans
        }

    def close(self) -> None:
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()


def values(span: Any) -> dict[str, Any]:
    return {item.key: getattr(item.value, item.value.WhichOneof("value")) for item in span.attributes}


def test_what_an_otlp_endpoint_receives_is_what_was_recorded_plus_the_scores() -> None:
    endpoint = Endpoint()
    plain = InMemorySpanExporter()
    provider = TracerProvider()
    holding = HoldingSpanProcessor(BatchSpanProcessor(OTLPSpanExporter(endpoint.url)))
    provider.add_span_processor(SimpleSpanProcessor(plain))
    provider.add_span_processor(holding)
    tracer = provider.get_tracer("app", "1.0")
    with tracer.start_as_current_span("rag", attributes={"input.value": "Why?", "n": 3}) as root:
        root.add_event("noted", {"k": "v"})
        with tracer.start_as_current_span("retrieve", attributes={"retrieval.query": "Why?"}):
            pass
    holding.attach(scores(ref_of(root), 0.5))
    provider.force_flush()
    received, recorded = endpoint.spans(), {span.name: span for span in plain.get_finished_spans()}
    provider.shutdown()
    endpoint.close()
    assert set(received) == set(recorded) == {"rag", "retrieve"}
    for name, span in received.items():
        known = recorded[name]
        assert known.context is not None
        assert span.span_id == known.context.span_id.to_bytes(8)
        assert span.trace_id == known.context.trace_id.to_bytes(16)
        assert (span.start_time_unix_nano, span.end_time_unix_nano) == (known.start_time, known.end_time)
        assert [event.name for event in span.events] == [event.name for event in known.events]
    assert values(received["retrieve"]) == {"retrieval.query": "Why?"}
    added = values(received["rag"])
    assert {key: added.pop(key) for key in ("input.value", "n")} == dict(recorded["rag"].attributes or {})
    assert added["steelyard.metric_0.score"] == 0.5
    assert all(key.startswith(("evaluations.0.evaluation.", "steelyard.metric_0.")) for key in added)


def test_with_the_recorder_and_a_monitor() -> None:
    memory = MemorySink()
    monitor = Monitor(sinks=[memory])
    exported = InMemorySpanExporter()
    recorder = EvaluationSpanProcessor(monitor)
    provider = TracerProvider()
    provider.add_span_processor(recorder)
    provider.add_span_processor(HoldingSpanProcessor(SimpleSpanProcessor(exported), monitor=monitor))
    tracer = provider.get_tracer("app")
    root_attributes = {
        "openinference.span.kind": "CHAIN",
        "input.value": "What is the capital of France?",
        "output.value": "Paris is the capital of France.",
    }
    documents = {
        "openinference.span.kind": "RETRIEVER",
        "input.value": "What is the capital of France?",
        "retrieval.documents.0.document.content": "Paris is the capital of France.",
    }
    with tracer.start_as_current_span("rag", attributes=root_attributes):
        with tracer.start_as_current_span("docs", attributes=documents):
            pass
        with tracer.start_as_current_span(
            "llm",
            attributes={"openinference.span.kind": "LLM", "output.value": "Paris is the capital of France."},
        ):
            pass
    recorder.force_flush()
    assert monitor.flush(60) == 0
    until(lambda: "rag" in {span.name for span in exported.get_finished_spans()})
    (root,) = (span for span in exported.get_finished_spans() if span.name == "rag")
    assert (root.attributes or {})["steelyard.faithfulness.score"] == memory.evaluations[0][
        "faithfulness"
    ].value
    monitor.close()
    provider.shutdown()


AT_EXIT = """
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import ConsoleSpanExporter
from steelyard import Monitor
from steelyard.sinks import SQLiteSink
from steelyard_opentelemetry import EvaluationSpanProcessor, HoldingSpanProcessor

provider = TracerProvider()
monitor = Monitor(sinks=[SQLiteSink("results.db")])
provider.add_span_processor(EvaluationSpanProcessor(monitor))
formatter = lambda span: f"{span.name} {(span.attributes or {}).get('steelyard.faithfulness.score')};"
exporter = ConsoleSpanExporter(formatter=formatter)
provider.add_span_processor(HoldingSpanProcessor(exporter, monitor=monitor))
marks = {"question": "Where?", "contexts": ["It is here."], "answer": "It is here."}
with provider.get_tracer("app").start_as_current_span("rag") as root:
    root.set_attributes({f"steelyard.{name}": value for name, value in marks.items()})
    kind = {"openinference.span.kind": "RETRIEVER"}
    provider.get_tracer("app").start_span("docs", attributes=kind).end()
"""


def test_a_script_that_just_ends_exports_its_root_once_and_scored(tmp_path: Path) -> None:
    done = programs.run(["-c", AT_EXIT], ours=True, cwd=tmp_path)
    assert sorted(done.stdout.strip(";").split(";")) == ["docs None", "rag 1.0"], done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["results.db"]  # closed, with no log beside it


KILLED = """
import os, signal, time
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import ConsoleSpanExporter, SimpleSpanProcessor
from steelyard_opentelemetry import HoldingSpanProcessor

exporter = ConsoleSpanExporter(formatter=lambda span: f"{span.name};")
holding = HoldingSpanProcessor(SimpleSpanProcessor(exporter), max_hold=1.5)
provider = TracerProvider()
provider.add_span_processor(holding)

def answer(name):
    with provider.get_tracer("app").start_as_current_span(name):
        marks = {"openinference.span.kind": "RETRIEVER"}
        provider.get_tracer("app").start_span(f"documents of {name}", attributes=marks).end()

answer("earlier")
until = time.monotonic() + 30
while holding.counts.released != {"timeout": 1}:
    assert time.monotonic() < until
    time.sleep(0.01)
time.sleep(0.1)
answer("later")
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_process_that_is_killed_loses_the_roots_that_it_holds_and_no_other() -> None:
    done = programs.run(["-c", KILLED], ours=True)
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert done.stdout.strip(";").split(";") == ["documents of earlier", "earlier", "documents of later"]
