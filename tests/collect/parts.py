"""Parts that the tests of the endpoint share: real spans, encoded as exporters encode them, and a server."""

from __future__ import annotations

import base64
import contextlib
import json
import re
import socket
import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import urllib3
from google.protobuf.json_format import MessageToDict
from google.protobuf.message import Message
from opentelemetry._logs import LogRecord
from opentelemetry.exporter.otlp.proto.common._log_encoder import encode_logs
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk._logs import LoggerProvider, ReadableLogRecord
from opentelemetry.sdk._logs.export import InMemoryLogRecordExporter, SimpleLogRecordProcessor
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

import programs
from steelyard_opentelemetry.received import ReceivedSpans
from waiting import until

QUESTION = "What is the capital of France?"
ANSWER = "Paris is the capital of France."
TEXTS = ("Paris is the capital of France.", "France is a country in Europe.")
PROTOBUF = {"content-type": "application/x-protobuf"}
JSON = {"content-type": "application/json"}
_SCOPE = "openinference.instrumentation.langchain"


def turn_spans(
    *, question: str = QUESTION, answer: str = ANSWER, shown: str = "", session: str = ""
) -> list[ReadableSpan]:
    """The spans of one turn in the order in which they end: retriever, model, chain.

    Where something else than the answer is shown to the user, by a chain around them, that comes last. The
    model's span alone names the session, if there is one.
    """
    kept = InMemorySpanExporter()
    provider = TracerProvider(resource=Resource.create({"service.name": "shop"}))
    provider.add_span_processor(SimpleSpanProcessor(kept))
    tracer = provider.get_tracer(_SCOPE)
    prompt = f"Answer from this: {' '.join(TEXTS)}\nQuestion: {question}"
    around = contextlib.ExitStack()
    if shown:
        whole = around.enter_context(tracer.start_as_current_span("page"))
        whole.set_attributes(_kind("CHAIN", question, shown))
    with around, tracer.start_as_current_span("chain") as chain:
        chain.set_attributes(_kind("CHAIN", question, answer))
        with tracer.start_as_current_span("retriever") as retriever:
            retriever.set_attributes({"openinference.span.kind": "RETRIEVER", "input.value": question})
            for place, text in enumerate(TEXTS):
                retriever.set_attribute(f"retrieval.documents.{place}.document.content", text)
        with tracer.start_as_current_span("model") as model:
            model.set_attributes(_kind("LLM", prompt, answer))
            model.set_attribute("llm.input_messages.0.message.role", "user")
            model.set_attribute("llm.input_messages.0.message.content", prompt)
            model.set_attribute("llm.output_messages.0.message.role", "assistant")
            model.set_attribute("llm.output_messages.0.message.content", answer)
            if session:
                model.set_attribute("gen_ai.conversation.id", session)
    provider.shutdown()
    return list(kept.get_finished_spans())


def call_with_logs(
    *, question: str = QUESTION, answer: str = ANSWER
) -> tuple[list[ReadableSpan], list[ReadableLogRecord]]:
    """A turn whose model call has no content on its span, and the log records that have it, one a message."""
    spans = InMemorySpanExporter()
    logs = InMemoryLogRecordExporter()  # type: ignore[no-untyped-call]
    provider = TracerProvider(resource=Resource.create({"service.name": "shop"}))
    provider.add_span_processor(SimpleSpanProcessor(spans))
    logger_provider = LoggerProvider(shutdown_on_exit=False)
    logger_provider.add_log_record_processor(SimpleLogRecordProcessor(logs))
    logger = logger_provider.get_logger("client")
    prompt = "Answer from the context.\n\nContext:\n" + "\n\n".join(TEXTS) + f"\n\nQuestion: {question}"
    call = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m"}
    tracer = provider.get_tracer("client")
    with tracer.start_as_current_span("ask"):
        with tracer.start_as_current_span("retriever") as retriever:
            retriever.set_attributes({"openinference.span.kind": "RETRIEVER", "input.value": question})
            for place, text in enumerate(TEXTS):
                retriever.set_attribute(f"retrieval.documents.{place}.document.content", text)
        with tracer.start_as_current_span("chat", attributes=call):
            for record in _content(prompt, answer):
                logger.emit(record)
        logger.emit(LogRecord(body="connected to the database"))
    provider.shutdown()
    logger_provider.shutdown()
    return list(spans.get_finished_spans()), list(logs.get_finished_logs())


def _content(prompt: str, answer: str) -> list[LogRecord]:
    choice: Any = {"index": 0, "message": {"role": "assistant", "content": answer}}
    return [
        LogRecord(event_name="gen_ai.user.message", body={"content": prompt}, timestamp=1),
        LogRecord(event_name="gen_ai.choice", body=choice, timestamp=2),
    ]


def plain_spans(count: int) -> list[ReadableSpan]:
    """Spans in which there is no model work."""
    kept = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(kept))
    for number in range(count):
        with provider.get_tracer("http").start_as_current_span(f"GET /{number}"):
            pass
    provider.shutdown()
    return list(kept.get_finished_spans())


def _kind(kind: str, given: str, made: str) -> dict[str, str]:
    return {"openinference.span.kind": kind, "input.value": given, "output.value": made}


def trace_of(spans: Sequence[ReadableSpan]) -> str:
    """The trace id, as hex."""
    context = spans[0].context
    assert context is not None
    return f"{context.trace_id:032x}"


def protobuf(items: Sequence[ReadableSpan] | Sequence[ReadableLogRecord]) -> bytes:
    """An export request in protobuf."""
    made: bytes = _request(items).SerializeToString()
    return made


def otlp_json(items: Sequence[ReadableSpan] | Sequence[ReadableLogRecord]) -> bytes:
    """An export request in OTLP/JSON, whose ids are hex."""
    data = MessageToDict(_request(items))
    for block in data.get("resourceSpans") or data["resourceLogs"]:
        for scope in block.get("scopeSpans") or block["scopeLogs"]:
            for item in scope.get("spans") or scope["logRecords"]:
                for name in ("traceId", "spanId", "parentSpanId"):
                    if name in item:
                        item[name] = base64.b64decode(item[name]).hex()
    return json.dumps(data).encode()


def _request(items: Sequence[ReadableSpan] | Sequence[ReadableLogRecord]) -> Message:
    spans = [item for item in items if isinstance(item, ReadableSpan)]
    logs = [item for item in items if isinstance(item, ReadableLogRecord)]
    made: Message = encode_spans(spans) if spans else encode_logs(logs)
    return made


@dataclass
class Endpoint:
    """`steelyard collect`, in a process of its own."""

    process: programs.Program
    port: int

    def post(
        self, body: bytes, headers: dict[str, str] | None = None, *, signal: str = "traces"
    ) -> urllib3.BaseHTTPResponse:
        with urllib3.PoolManager() as pool:
            return pool.request(
                "POST", f"http://127.0.0.1:{self.port}/v1/{signal}", body=body, headers=headers or PROTOBUF
            )

    def get(self, path: str) -> urllib3.BaseHTTPResponse:
        with urllib3.PoolManager() as pool:
            return pool.request("GET", f"http://127.0.0.1:{self.port}{path}")

    def counts(self) -> dict[str, Any]:
        with urllib3.PoolManager() as pool:
            found: dict[str, Any] = pool.request("GET", f"http://127.0.0.1:{self.port}/healthz").json()
            return found


@contextlib.contextmanager
def serving(folder: Path, *arguments: str, command: str = "collect", port: int = 0) -> Iterator[Endpoint]:
    """Run `steelyard collect`, or another server, in a folder, until the end of the block."""
    line = [*programs.STEELYARD, command, "--port", str(port), *arguments]
    with programs.start(line, ours=True, live=True, cwd=folder) as process:
        assert process.stderr is not None
        before = ""
        try:
            said = process.stderr.readline()
            while said and "at http://" not in said:  # warnings may come first
                before, said = said, process.stderr.readline()
            assert said, before
            found = re.search(r"http://127.0.0.1:(\d+)", said)
            assert found is not None
            until(lambda: _listens(int(found[1])))
            yield Endpoint(process, int(found[1]))
        finally:
            process.terminate()
            process.wait(120)


def free_port() -> int:
    """A port that nobody listens on now."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def _listens(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
        return True
    return False


def scored(folder: Path) -> dict[str, str]:
    """The records in the results file: question by record id."""
    path = folder / "steelyard.db"
    if not path.exists():
        return {}
    with contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as db:
        try:
            return dict(db.execute("SELECT record_id, question FROM evaluations"))
        except sqlite3.OperationalError:
            return {}


def spooled(path: Path) -> set[str]:
    """Record ids in a spool, whatever their state."""
    if not path.exists():
        return set()
    with contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as db:
        return {name for (name,) in db.execute("SELECT record_id FROM turns")}


def stored(body: bytes, signal: Literal["traces", "logs"] = "traces") -> int:
    """How many bytes of the journal a request takes."""
    return sum(map(len, ReceivedSpans().read(body, is_json=False, signal=signal).pieces.values()))
