"""Runs every application under the real instrumentors of one dialect, in a process of its own.

Instrumentors patch whole libraries and do not take everything back: they must not run in the tests' process.
"""

from __future__ import annotations

import asyncio
import json
import logging
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import openai
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from otel_parts import ANSWER, QUESTION, Receiver, instrumented, prompt

from steelyard.record import record_to_dict
from steelyard.recording import unrecorded
from steelyard_opentelemetry import EvaluationSpanProcessor

TTL = 600.0
"""Seconds; so long that no machine is too busy: the end of a turn is asked for, not waited for."""
QUESTIONS = ("Which city is the capital of France?", QUESTION, "Where is the government of France?")


class Model(BaseHTTPRequestHandler):
    """A model server that always answers the same."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        message = {"role": "assistant", "content": ANSWER}
        choice = {"index": 0, "finish_reason": "stop", "message": message}
        usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        reply = {
            "id": "x",
            "object": "chat.completion",
            "created": 1,
            "model": "m",
            "choices": [choice],
            "usage": usage,
        }
        body = json.dumps(reply).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments: Any) -> None:
        """Keep quiet."""


def main(dialect: str, *only: str) -> None:
    warnings.simplefilter("ignore")
    logging.disable()
    # OpenLLMetry imports `llama_index.llms`, which any LLM package of LlamaIndex would bring.
    folder = tempfile.mkdtemp()
    (Path(folder) / "llama_index" / "llms").mkdir(parents=True)
    sys.path.append(folder)
    server = ThreadingHTTPServer(("127.0.0.1", 0), Model)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    exporter, receiver, provider = InMemorySpanExporter(), Receiver(), TracerProvider()
    processor = EvaluationSpanProcessor(receiver, quiet=TTL, ttl=TTL)
    provider.add_span_processor(processor)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    for _ in instrumented(dialect, provider):
        apps = applications(provider, f"http://127.0.0.1:{server.server_address[1]}/v1")
        for name, run in apps.items():
            if only and name not in only:
                continue
            receiver.records.clear()
            before = len(processor.diagnoses)
            exporter.clear()
            try:
                run()
            except ValueError as error:
                assert str(error) == "broken"
            processor.force_flush()
            settle(processor)
            causes = [diagnosis.cause for diagnosis in processor.diagnoses[before:]]
            records = [record_to_dict(record) for record in receiver.records]
            ended = exporter.get_finished_spans()
            content = any(
                ANSWER in str(value) for span in ended for value in (span.attributes or {}).values()
            )
            tell(app=name, records=records, causes=causes, spans=len(ended), content=content)
    processor.shutdown()
    tell(app="all", errors=processor.counts.errors)


def tell(**what: object) -> None:
    sys.stdout.write(json.dumps(what) + "\n")


def settle(processor: EvaluationSpanProcessor) -> None:
    """Do now what time would bring: give up roots that never end, and what waits for the rest of its turn."""
    with processor._lock:
        processor._hand_over(processor._extractor.extract(processor._turns.ripe(time.monotonic() + 2 * TTL)))
        processor._hand_over(processor._extractor.close())


def applications(provider: TracerProvider, url: str) -> dict[str, Callable[[], object]]:
    from otel_apps import agent, ask, chain, query_engine

    client = openai.OpenAI(base_url=url, api_key="none")

    def call(text: object) -> str:
        sent = text if isinstance(text, str) else text.to_string()  # type: ignore[attr-defined]
        reply = client.chat.completions.create(model="m", messages=[{"role": "user", "content": sent}])
        return reply.choices[0].message.content or ""

    def behind_http() -> None:
        with provider.get_tracer("http").start_as_current_span("POST /ask"):
            chain(call).invoke(QUESTION)

    def broken(_: object) -> str:
        raise ValueError("broken")

    def leak() -> None:
        for question, streaming in zip(QUESTIONS, (True, False, True), strict=True):
            ask(query_engine(streaming=streaming), question)

    def judged() -> None:
        with unrecorded():
            call("Is the answer right?")
            chain().invoke(QUESTION)
            asyncio.run(chain().ainvoke(QUESTION))
            ask(query_engine())

    return {
        "plain_python": lambda: call(prompt()),
        "no_retrieval": lambda: call("Say hello."),
        "langchain": lambda: chain(call).invoke(QUESTION),
        "langchain_model": lambda: chain().invoke(QUESTION),
        "langchain_async": lambda: asyncio.run(chain(call).ainvoke(QUESTION)),
        "langchain_stream": lambda: list(chain(call).stream(QUESTION)),
        "langchain_batch": lambda: chain(call).batch([QUESTION, QUESTION]),
        "langchain_error": lambda: chain(broken).invoke(QUESTION),
        "langchain_agent": lambda: agent().invoke({"messages": [("user", QUESTION)]}),
        "behind_http": behind_http,
        "llamaindex": lambda: ask(query_engine()),
        "llamaindex_async": lambda: asyncio.run(query_engine().aquery(QUESTION)),
        "judged": judged,
        "llamaindex_leak": leak,
    }


if __name__ == "__main__":
    main(*sys.argv[1:])
