"""What the span processor costs the application's thread, beside the SDK's own, and what it keeps in memory.

`python benchmarks/otel_on_end.py` ends the same spans through `BatchSpanProcessor` and
`EvaluationSpanProcessor`, in turn, in one run, and then passes 100,000 spans through the latter. Ratios
count; times are this machine's.
"""

from __future__ import annotations

import argparse
import gc
import statistics
import time
import tracemalloc
from collections.abc import Sequence

from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult

from steelyard.record import Record
from steelyard.recording import Draft
from steelyard_opentelemetry import EvaluationSpanProcessor

QUESTION, ANSWER = "What is the capital of France?", "Paris is the capital of France."


class Nowhere(SpanExporter):
    """Takes spans and forgets them."""

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Forget them."""
        return SpanExportResult.SUCCESS


class Count:
    """Takes Records and counts them."""

    def __init__(self) -> None:
        self.records = 0

    def submit(self, turn: Record | Draft, /) -> None:
        """Count it."""
        self.records += 1


class Keep(SpanProcessor):
    """Keeps what ends."""

    def __init__(self) -> None:
        self.spans: list[ReadableSpan] = []

    def on_end(self, span: ReadableSpan) -> None:
        """Keep it."""
        self.spans.append(span)


def turn(provider: TracerProvider, number: int) -> None:
    """Ten spans of one RAG turn, as OpenInference writes them."""
    tracer = provider.get_tracer("openinference.instrumentation.langchain")
    question = f"{QUESTION} ({number})"
    chain = {"openinference.span.kind": "CHAIN", "input.value": question}
    found = {"openinference.span.kind": "RETRIEVER", "input.value": question}
    for index in range(5):
        text = f"Passage {index} about question {number}. " * 10
        found |= {f"retrieval.documents.{index}.document.content": text}
        found |= {f"retrieval.documents.{index}.document.id": f"d{index}"}
    with tracer.start_as_current_span("chain", attributes=chain) as root:
        with tracer.start_as_current_span("retriever", attributes=found):
            pass
        for _ in range(8):
            with tracer.start_as_current_span("step", attributes=chain):
                pass
        root.set_attribute("output.value", ANSWER)


def some_spans(count: int) -> list[ReadableSpan]:
    """Spans that have ended."""
    keep = Keep()
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(keep)
    for number in range(count // 10):
        turn(provider, number)
    return keep.spans


def ending(processor: SpanProcessor, spans: Sequence[ReadableSpan]) -> list[float]:
    """Microseconds of each `on_end`; the time of reading the clock is taken off."""
    clock = time.perf_counter_ns
    empty = statistics.median(clock() * -1 + clock() for _ in range(2000))
    found = []
    for span in spans:
        begun = clock()
        processor.on_end(span)
        found.append(max(0.0, clock() - begun - empty) / 1000)
    return found


def compare(rounds: int, count: int) -> None:
    """Print medians and tails of both processors."""
    mine: list[float] = []
    theirs: list[float] = []
    for _ in range(rounds):
        spans = some_spans(count)
        batch = BatchSpanProcessor(Nowhere(), max_queue_size=4 * count)
        theirs += ending(batch, spans)
        batch.shutdown()  # type: ignore[no-untyped-call]
        own = EvaluationSpanProcessor(Count())
        mine += ending(own, spans)
        own.shutdown()
    for name, times in (("BatchSpanProcessor", theirs), ("EvaluationSpanProcessor", mine)):
        ordered = sorted(times)
        p50, p99 = statistics.median(ordered), ordered[int(0.99 * len(ordered))]
        print(f"{name:24} on_end p50 {p50:.2f} us, p99 {p99:.2f} us, mean {statistics.fmean(times):.2f} us")
    ratio = statistics.median(mine) / statistics.median(theirs)
    print(f"ratio of p50: {ratio:.2f} (at most 2), p50 under 10 us: {statistics.median(mine) < 10}")


def flat(spans: int) -> None:
    """Pass many spans through, and print what is kept along the way."""
    count = Count()
    processor = EvaluationSpanProcessor(count, quiet=0.05)
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(processor)
    tracemalloc.start()
    begun = time.perf_counter()
    for part in range(10):
        for number in range(spans // 100):
            turn(provider, part * spans + number)
        provider.force_flush()
        gc.collect()
        kept = tracemalloc.get_traced_memory()[0] / 1e6
        print(f"after {(part + 1) * spans // 10:>7} spans: {kept:.1f} MB kept, {count.records} records")
    print(f"{time.perf_counter() - begun:.1f} s, counts: {processor.counts}")
    processor.shutdown()


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--rounds", type=int, default=10, help="rounds of the comparison")
    options.add_argument("--count", type=int, default=2000, help="spans in each round")
    options.add_argument("--spans", type=int, default=100_000, help="spans of the memory test")
    given = options.parse_args()
    compare(given.rounds, given.count)
    flat(given.spans)
