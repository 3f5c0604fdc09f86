"""The same applications as spans: real instrumentors of a dialect write them, our processor reads them."""

from __future__ import annotations

import contextlib
import importlib
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from opentelemetry.context import Context
from opentelemetry.sdk.trace import ReadableSpan, Span, SpanProcessor, TracerProvider

from generator.receiving import Receiver
from generator.turns import NOW
from steelyard_opentelemetry import EvaluationSpanProcessor

INSTRUMENTORS = {
    ("openinference", "langchain"): ("openinference.instrumentation.langchain", "LangChainInstrumentor"),
    ("openinference", "llamaindex"): ("openinference.instrumentation.llama_index", "LlamaIndexInstrumentor"),
    ("openllmetry", "langchain"): ("opentelemetry.instrumentation.langchain", "LangchainInstrumentor"),
    ("openllmetry", "llamaindex"): ("opentelemetry.instrumentation.llamaindex", "LlamaIndexInstrumentor"),
    ("openinference", "plain"): ("openinference.instrumentation.openai", "OpenAIInstrumentor"),
    ("openllmetry", "plain"): ("opentelemetry.instrumentation.openai", "OpenAIInstrumentor"),
    ("genai", "plain"): ("opentelemetry.instrumentation.genai.openai", "OpenAIInstrumentor"),
    ("genai", "langchain"): ("opentelemetry.instrumentation.genai.langchain", "LangChainInstrumentor"),
    ("genai", "llamaindex"): ("opentelemetry.instrumentation.genai.llama_index", "LlamaIndexInstrumentor"),
}
_LONG = 3600.0
"""Turns are handed over when their application has ended, not by the clock."""


class Relay(SpanProcessor):
    """Passes spans on to the processor of the application that runs, and notes whose they are."""

    def __init__(self) -> None:
        self.to: EvaluationSpanProcessor | None = None
        self.owners: dict[str, str] = {}
        self.told: list[str] = []

    def on_start(self, span: Span, parent_context: Any = None) -> None:
        if self.to is None:
            return
        if (turn := NOW.get()) and span.context:
            # Several turns stand in one trace where an instrumentor leaves its span current behind it.
            self.owners[f"{span.context.span_id:016x}"] = turn.id
        self.to.on_start(span, parent_context)

    def on_end(self, span: ReadableSpan) -> None:
        if self.to is not None:
            self.to.on_end(span)
            for attributes in (span.attributes, *(event.attributes for event in span.events)):
                self.told += map(str, (attributes or {}).values())


class Spans:
    """A process whose framework is instrumented; that is not taken back, so a process has one of them.

    Args:
        dialect: Who writes the spans; empty where applications do that themselves.
        framework: What is instrumented.
    """

    def __init__(self, dialect: str, framework: str) -> None:
        os.environ["OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"] = "SPAN_ONLY"
        os.environ["OTEL_SEMCONV_STABILITY_OPT_IN"] = "gen_ai_latest_experimental"
        self.relay, self.provider = Relay(), TracerProvider()
        self.provider.add_span_processor(self.relay)
        if not dialect:
            return
        if (dialect, framework) == ("openllmetry", "llamaindex"):
            # It imports `llama_index.llms`, which any LLM package of LlamaIndex would bring.
            folder = tempfile.mkdtemp()
            (Path(folder) / "llama_index" / "llms").mkdir(parents=True)
            sys.path.append(folder)
        path, name = INSTRUMENTORS[dialect, framework]
        instrumentor = getattr(importlib.import_module(path), name)()
        instrumentor.instrument(tracer_provider=self.provider, skip_dep_check=True)

    @contextmanager
    def recording(self, receiver: Receiver) -> Iterator[None]:
        """Hand what an application's spans tell to a receiver."""
        processor = EvaluationSpanProcessor(receiver, quiet=_LONG, ttl=_LONG)
        receiver.told = []
        self.relay.to, self.relay.owners, self.relay.told = processor, receiver.owners, receiver.told
        try:
            yield
        finally:
            self.relay.to = None
            processor.shutdown()
            receiver.diagnosed.update(processor.counts.skipped)

    def served(self) -> contextlib.AbstractContextManager[Any]:
        """A span around a turn, as a web framework's instrumentor opens one."""
        return self.provider.get_tracer("web").start_as_current_span("POST /chat", context=Context())
