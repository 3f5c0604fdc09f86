"""Parts that the tests of the processor that holds roots share."""

from __future__ import annotations

from typing import Any

from opentelemetry.sdk.trace import ReadableSpan, SpanLimits, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from steelyard.record import TraceRef
from steelyard.scores import Evaluation, Provenance, Score
from steelyard_opentelemetry import HoldingSpanProcessor


class Rig:
    """A real tracer provider whose exporter's processor is wrapped."""

    def __init__(self, *, limits: SpanLimits | None = None, **options: Any) -> None:
        self.exported = InMemorySpanExporter()
        self.holding = HoldingSpanProcessor(SimpleSpanProcessor(self.exported), **options)
        self.provider = TracerProvider(span_limits=limits)
        self.provider.add_span_processor(self.holding)
        self.tracer = self.provider.get_tracer("app")

    def turn(self, **attributes: Any) -> TraceRef:
        """A RAG turn: a root and a retriever below it."""
        kind = {"openinference.span.kind": "RETRIEVER"}
        with (
            self.tracer.start_as_current_span("rag", attributes=attributes) as root,
            self.tracer.start_as_current_span("docs", attributes=kind),
        ):
            pass
        return ref_of(root)

    @property
    def names(self) -> list[str]:
        return [span.name for span in self.exported.get_finished_spans()]

    def root(self) -> ReadableSpan:
        (found,) = (span for span in self.exported.get_finished_spans() if span.name == "rag")
        return found


def ref_of(span: Any) -> TraceRef:
    context = span.get_span_context()
    return TraceRef(trace_id=f"{context.trace_id:032x}", span_id=f"{context.span_id:016x}")


def scores(ref: TraceRef | None, *values: float) -> Evaluation:
    made = tuple(
        Score(
            metric=f"metric_{index}",
            status="scored",
            value=value,
            label="pass",
            explanation="fine",
            provenance=Provenance(judge="chat:m"),
            id=f"id{index}",
        )
        for index, value in enumerate(values or (0.5,))
    )
    return Evaluation(record_id="r", scores=made, trace=ref)
