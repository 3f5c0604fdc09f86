"""What the tests of turns out of hand-made spans look at."""

from __future__ import annotations

import json

from otel_parts import ANSWER, QUESTION, SCORES, messages, prompt, span

from steelyard.record import Record
from steelyard_opentelemetry import Extraction, Span, read_spans

OTHER = "1af7651916cd43dd8448eb211c80319c"


def one(spans: list[Span]) -> Record:
    reading = read_spans(spans)
    assert len(reading.records) == 1, (reading.records, [str(d) for d in reading.diagnoses])
    return reading.records[0]


def causes(reading: Extraction) -> list[str]:
    assert reading.records == []
    return [diagnosis.cause for diagnosis in reading.diagnoses]


def pieces_in_two_traces(first: dict[str, object], second: dict[str, object]) -> tuple[Span, Span]:
    """A retrieval that tells ids and scores, and the model call that used it, each in a trace of its own."""
    listed = json.dumps([{"id": f"d{n}", "score": score} for n, score in enumerate(SCORES, start=1)])
    found = {
        "gen_ai.operation.name": "retrieval",
        "gen_ai.retrieval.query.text": QUESTION,
        "gen_ai.retrieval.documents": listed,
    }
    said = {
        "gen_ai.operation.name": "chat",
        "gen_ai.input.messages": messages(("user", prompt())),
        "gen_ai.output.messages": messages(("assistant", ANSWER)),
    }
    half = span("retrieval", at=(0, 1), attributes={**found, **first})
    return half, span("chat", at=(2, 3), trace=OTHER, attributes={**said, **second})
