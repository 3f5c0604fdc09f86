"""What the tests of turns out of hand-made spans look at."""

from __future__ import annotations

from steelyard.record import Record
from steelyard_opentelemetry import Extraction, Span, read_spans


def one(spans: list[Span]) -> Record:
    reading = read_spans(spans)
    assert len(reading.records) == 1, (reading.records, [str(d) for d in reading.diagnoses])
    return reading.records[0]


def causes(reading: Extraction) -> list[str]:
    assert reading.records == []
    return [diagnosis.cause for diagnosis in reading.diagnoses]
