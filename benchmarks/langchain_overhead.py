"""What the LangChain handler adds to one RAG invoke, beside an empty inline handler and other tracers.

The chain is real and its parts are instant: a retriever with five documents of 1,000 characters, a prompt, a
fake chat model, a parser. The handler hands over to `Monitor(metrics=[], sinks=[])`: every record is built,
submitted and accounted, nothing is scored. All variants take turns in blocks within one process, so that a
busy machine slows all of them alike. Each is shown by the lower quartile of its turns (wall time) and of its
blocks (CPU time of the whole process, each with its own work in the background done to the end), since other
programs only ever add; what counts is the ratio to the empty handler.

    python benchmarks/langchain_overhead.py [--rounds 30] [--modes invoke ainvoke stream]

Langfuse and OpenInference take part where they are installed:

    python -m venv .peers
    .peers/bin/pip install -e '.[langchain,opentelemetry]' langfuse openinference-instrumentation-langchain
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import logging
import os
import statistics
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.documents import Document
from langchain_core.language_models.fake_chat_models import FakeListChatModel
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import Runnable, RunnablePassthrough

from steelyard.online import Monitor
from steelyard_langchain import CallbackHandler

BLOCK = 50
DOCUMENTS = [
    Document(id=str(n), page_content=f"{n}. " + ("Paris is the capital of France. " * 40)[:1000])
    for n in range(5)
]


class Shelf(BaseRetriever):
    """Five documents, at once."""

    def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
        return DOCUMENTS

    async def _aget_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
        return DOCUMENTS


class Empty(BaseCallbackHandler):
    """The least that any handler costs."""

    run_inline = True


def _nothing() -> None:
    pass


@dataclass
class Variant:
    """One way to run the chain, and what it took."""

    name: str
    callbacks: list[BaseCallbackHandler] = field(default_factory=list)
    on: Callable[[], object] = _nothing
    off: Callable[[], object] = _nothing
    settle: Callable[[], object] = _nothing
    after: Callable[[], object] = _nothing
    micros: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)


def chain() -> Runnable[Any, str]:
    """The chain under the microscope."""
    context = Shelf() | (lambda documents: "\n".join(document.page_content for document in documents))
    return (
        {"context": context, "question": RunnablePassthrough()}
        | ChatPromptTemplate.from_template("Context: {context}\nQ: {question}")
        | FakeListChatModel(responses=["Paris is the capital of France. " * 5])
        | StrOutputParser()
    )


def langfuse() -> Variant:
    """Langfuse's handler, sending to nobody."""
    from langfuse import Langfuse  # type: ignore[import-not-found, unused-ignore]
    from langfuse.langchain import (  # type: ignore[import-not-found, unused-ignore]
        CallbackHandler as Handler,
    )

    client = Langfuse(public_key="pk", secret_key="sk", base_url="http://127.0.0.1:9")
    return Variant("langfuse", [Handler(public_key="pk")], settle=client.flush, after=client.shutdown)


def openinference() -> Variant:
    """OpenInference's instrumentor, exporting to nobody."""
    from openinference.instrumentation.langchain import (  # type: ignore[import-not-found, unused-ignore]
        LangChainInstrumentor,
    )
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult

    class Nowhere(SpanExporter):
        def export(self, spans: Any) -> SpanExportResult:
            return SpanExportResult.SUCCESS

    provider = TracerProvider()
    provider.add_span_processor(BatchSpanProcessor(Nowhere()))
    tracer = LangChainInstrumentor()
    return Variant(
        "openinference",
        on=lambda: tracer.instrument(tracer_provider=provider),
        off=tracer.uninstrument,
        settle=provider.force_flush,
    )


def variants() -> list[Variant]:
    """Everybody who is installed."""
    monitor = Monitor(metrics=[], sinks=[], max_queue=1_000_000, max_queue_bytes=1 << 31)
    found = [
        Variant("no handler"),
        Variant("empty handler", [Empty()]),
        Variant(
            "steelyard", [CallbackHandler(monitor)], settle=lambda: monitor.flush(30), after=monitor.close
        ),
    ]
    if find_spec("langfuse"):
        found.append(langfuse())
    if find_spec("openinference"):
        found.append(openinference())
    return found


def once(rag: Runnable[Any, str], mode: str, config: Any, loop: asyncio.AbstractEventLoop) -> None:
    """One turn."""
    if mode == "invoke":
        rag.invoke("capital of France?", config)
    elif mode == "ainvoke":
        loop.run_until_complete(rag.ainvoke("capital of France?", config))
    else:
        for _ in rag.stream("capital of France?", config):
            pass


def measure(mode: str, rounds: int) -> list[Variant]:
    """All variants in turn, block by block."""
    rag, loop, taking_part = chain(), asyncio.new_event_loop(), variants()
    for number in range(rounds + 1):
        for variant in taking_part[number % len(taking_part) :] + taking_part[: number % len(taking_part)]:
            config = {"callbacks": variant.callbacks}
            variant.on()
            gc.collect()
            cpu = time.process_time()
            for _ in range(BLOCK):
                started = time.perf_counter()
                once(rag, mode, config, loop)
                if number:  # the first round warms up
                    variant.micros.append((time.perf_counter() - started) * 1e6)
            variant.settle()
            if number:
                variant.cpu.append((time.process_time() - cpu) / BLOCK * 1e6)
            variant.off()
    for variant in taking_part:
        variant.after()
    loop.close()
    return taking_part


def of(values: list[float]) -> float:
    """The lower quartile."""
    return statistics.quantiles(values, n=4)[0]


def main() -> None:
    """Measure and print."""
    warnings.simplefilter("ignore")
    os.environ["LANGSMITH_TRACING"] = "false"
    logging.disable(logging.CRITICAL)
    parser = argparse.ArgumentParser(description="What the LangChain handler adds to one RAG invoke.")
    parser.add_argument("--rounds", type=int, default=30, help="blocks of 50 turns for each variant")
    parser.add_argument("--modes", nargs="+", default=["invoke", "ainvoke", "stream"])
    options = parser.parse_args()
    for mode in options.modes:
        found = measure(mode, options.rounds)
        base, empty = found[0], found[1]
        unit = of(empty.micros) - of(base.micros)
        unit_cpu = of(empty.cpu) - of(base.cpu)
        print(f"\n{mode}: {of(base.micros):.0f} us without a handler")
        print(f"{'':15}{'added us':>10}{'added CPU us':>14}{'x empty':>9}{'x empty (CPU)':>15}")
        for variant in found[1:]:
            added, cpu = of(variant.micros) - of(base.micros), of(variant.cpu) - of(base.cpu)
            print(f"{variant.name:15}{added:10.0f}{cpu:14.0f}{added / unit:9.2f}{cpu / unit_cpu:15.2f}")


if __name__ == "__main__":
    main()
