"""What recording adds to one LlamaIndex query, beside OpenInference's instrumentor, and what stays behind.

The engine is real and its parts are instant: a retriever with five nodes of 1,000 characters, the compact
synthesizer, a completion model. Turns go to `Monitor(metrics=[], sinks=[])`: every record is built, submitted
and accounted, nothing is scored; `recorder` is the recording alone, without a Monitor to take the turns, and
`empty` a pair of handlers that do nothing. OpenInference ends its spans into a batch processor that exports
to nobody. All variants take turns in blocks within one process, so that a busy machine slows all of them
alike, and what is added is the median difference to the block without recording in the same round. Trust
ratios more than microseconds.

    python benchmarks/llamaindex_overhead.py [--rounds 40] [--modes query aquery stream] [--leaks 1000]

OpenInference takes part where `openinference-instrumentation-llama-index` is installed.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import statistics
import time
import tracemalloc
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any

from llama_index.core.base.llms.types import CompletionResponse, CompletionResponseGen, LLMMetadata
from llama_index.core.llms.callbacks import llm_completion_callback
from llama_index.core.llms.custom import CustomLLM
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.response_synthesizers import get_response_synthesizer
from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode
from llama_index_instrumentation import root_dispatcher
from llama_index_instrumentation.event_handlers import NullEventHandler
from llama_index_instrumentation.span_handlers import NullSpanHandler

from steelyard.online import Monitor
from steelyard.record import Record
from steelyard.recording import Draft
from steelyard_llamaindex import _attach, instrument, uninstrument

BLOCK = 20
QUESTION = "capital of France?"
NODES = [
    NodeWithScore(
        node=TextNode(id_=str(n), text=f"{n}. " + ("Paris is the capital of France. " * 40)[:1000]), score=0.5
    )
    for n in range(5)
]
WORDS = ["Paris ", "is ", "the ", "capital ", "of ", "France. "] * 5


class Shelf(BaseRetriever):
    """Five nodes, at once."""

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return NODES


class Model(CustomLLM):
    """A completion model, at once; it can be made to take its time."""

    slow: float = 0.0

    @property
    def metadata(self) -> LLMMetadata:
        """A window with room for all nodes."""
        return LLMMetadata(context_window=16_000)

    @llm_completion_callback()
    def complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponse:
        """Answer."""
        return CompletionResponse(text="".join(WORDS))

    @llm_completion_callback()
    async def acomplete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponse:
        """Answer, in time."""
        if self.slow:
            await asyncio.sleep(self.slow)
        return CompletionResponse(text="".join(WORDS))

    @llm_completion_callback()
    def stream_complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponseGen:
        """Answer word by word."""

        def stream() -> CompletionResponseGen:
            said = ""
            for word in WORDS:
                said += word
                yield CompletionResponse(text=said, delta=word)

        return stream()


def _nothing() -> None:
    pass


@dataclass
class Variant:
    """One way to run the engine, and what it took."""

    name: str
    on: Callable[[], object] = _nothing
    off: Callable[[], object] = _nothing
    after: Callable[[], object] = _nothing
    here: list[float] = field(default_factory=list)
    """CPU microseconds a query in the calling thread."""
    all: list[float] = field(default_factory=list)
    """CPU microseconds a query in the whole process, background threads included."""


def engine(*, streaming: bool = False, slow: float = 0.0) -> RetrieverQueryEngine:
    """The engine under the microscope."""
    synthesizer = get_response_synthesizer(llm=Model(slow=slow), streaming=streaming)
    return RetrieverQueryEngine(retriever=Shelf(), response_synthesizer=synthesizer)


class Nobody:
    """Takes turns and throws them away."""

    def submit(self, turn: Record | Draft, /) -> None:
        """Do nothing."""


def empty() -> Variant:
    """Handlers that do nothing."""
    spans, events = NullSpanHandler(), NullEventHandler()

    def on() -> None:
        root_dispatcher.span_handlers.append(spans)
        root_dispatcher.event_handlers.append(events)

    def off() -> None:
        root_dispatcher.span_handlers.remove(spans)
        root_dispatcher.event_handlers.remove(events)

    return Variant("empty", on, off)


def openinference() -> Variant:
    """OpenInference's instrumentor, exporting to nobody."""
    from openinference.instrumentation.llama_index import LlamaIndexInstrumentor
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult

    class Nowhere(SpanExporter):
        def export(self, spans: Any) -> SpanExportResult:
            return SpanExportResult.SUCCESS

    provider = TracerProvider()
    provider.add_span_processor(BatchSpanProcessor(Nowhere()))
    tracer = LlamaIndexInstrumentor()
    return Variant(
        "openinference", on=lambda: tracer.instrument(tracer_provider=provider), off=tracer.uninstrument
    )


def variants() -> list[Variant]:
    """Everybody who is installed."""
    monitor = Monitor(metrics=[], sinks=[], max_queue=1_000_000, max_queue_bytes=1 << 31)
    found = [
        Variant("nobody"),
        empty(),
        Variant("recorder", lambda: instrument(Nobody()), uninstrument),
        Variant("steelyard", lambda: instrument(monitor), uninstrument, lambda: monitor.close(30)),
    ]
    if find_spec("openinference") and find_spec("openinference.instrumentation.llama_index"):
        found.append(openinference())
    return found


def once(asked: RetrieverQueryEngine, mode: str, loop: asyncio.AbstractEventLoop) -> None:
    """One turn."""
    if mode == "aquery":
        loop.run_until_complete(asked.aquery(QUESTION))
        return
    response: Any = asked.query(QUESTION)
    if mode == "stream":
        for _ in response.response_gen:
            pass


def measure(mode: str, rounds: int) -> list[Variant]:
    """All variants in turn, block by block."""
    asked, loop, taking_part = engine(streaming=mode == "stream"), asyncio.new_event_loop(), variants()
    for number in range(rounds + 1):
        for variant in taking_part:
            variant.on()
            gc.collect()
            here, everywhere = time.thread_time(), time.process_time()
            for _ in range(BLOCK):
                once(asked, mode, loop)
            here = time.thread_time() - here
            time.sleep(0.02)  # what the background has yet to do belongs to this block
            everywhere = time.process_time() - everywhere
            variant.off()
            if number:  # the first round warms up
                variant.here.append(here / BLOCK * 1e6)
                variant.all.append(everywhere / BLOCK * 1e6)
    for variant in taking_part:
        variant.after()
    loop.close()
    return taking_part


def leaks(count: int) -> None:
    """Cancel some queries, leave some streams unread, and see what is held."""
    monitor = Monitor(metrics=[], sinks=[])
    instrument(monitor)
    turns = _attach.active()
    assert turns is not None

    async def cancelled() -> None:
        asked = engine(slow=30.0)
        tasks = [asyncio.create_task(asked.aquery(QUESTION)) for _ in range(100)]
        await asyncio.sleep(0.3)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def unread() -> None:
        asked = engine(streaming=True)
        for _ in range(100):
            asked.query(QUESTION)

    kinds: list[tuple[str, Callable[[], None]]] = [
        ("cancelled", lambda: asyncio.run(cancelled())),
        ("unread streams", unread),
    ]
    for name, run in kinds:
        run()
        monitor.flush(10)
        gc.collect()
        tracemalloc.start()
        before = tracemalloc.get_traced_memory()[0]
        for _ in range(count // 100):
            run()
        monitor.flush(10)
        gc.collect()
        grown = tracemalloc.get_traced_memory()[0] - before
        tracemalloc.stop()
        print(f"{count} {name}: {len(turns.left)} spans or turns held, {grown / count:.0f} bytes a query")
    uninstrument()
    monitor.close(10)


def main() -> None:
    """Measure and print."""
    warnings.simplefilter("ignore")
    parser = argparse.ArgumentParser(description="What recording adds to one LlamaIndex query.")
    parser.add_argument("--rounds", type=int, default=40, help="blocks of 20 queries for each variant")
    parser.add_argument("--modes", nargs="+", default=["query", "aquery", "stream"])
    parser.add_argument("--leaks", type=int, default=1000, help="queries of each kind; 0 to leave out")
    options = parser.parse_args()
    for mode in options.modes:
        base, *others = measure(mode, options.rounds)
        of = statistics.median
        print(f"\n{mode}: {of(base.here):.0f} us CPU without recording")
        print(f"{'':15}{'added us CPU, calling thread':>30}{'whole process':>15}")
        for variant in others:
            here = of(mine - bare for mine, bare in zip(variant.here, base.here, strict=True))
            everywhere = of(mine - bare for mine, bare in zip(variant.all, base.all, strict=True))
            print(f"{variant.name:15}{here:30.0f}{everywhere:15.0f}")
    if options.leaks:
        print()
        leaks(options.leaks)


if __name__ == "__main__":
    main()
