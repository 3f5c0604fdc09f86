"""Turns whose spans come in several requests, on a clock of the test's."""

from __future__ import annotations

from collections.abc import Sequence

from opentelemetry.sdk.trace import ReadableSpan

from collect.parts import ANSWER, QUESTION, protobuf, trace_of, turn_spans
from steelyard_opentelemetry.received import ReceivedSpans


def take(reader: ReceivedSpans, spans: Sequence[ReadableSpan], now: float) -> None:
    for piece in reader.read(protobuf(spans), is_json=False).pieces.values():
        reader.take(piece, now)


SHOWN = f"Here you are: {ANSWER}"


def test_a_parent_that_has_not_come_is_waited_for() -> None:
    reader, spans = ReceivedSpans(quiet=1.0, ttl=60.0), turn_spans(shown=SHOWN)
    take(reader, spans[:-1], now=100.0)
    assert reader.ready(110.0) == [] and reader.holds(trace_of(spans))
    take(reader, spans[-1:], now=130.0)
    (record,) = reader.ready(132.0)
    assert (record.question, record.answer, len(record.contexts)) == (QUESTION, SHOWN, 2)
    assert reader.ready(1000.0) == []


def test_a_parent_that_never_comes_is_not_waited_for_for_ever() -> None:
    reader, spans = ReceivedSpans(quiet=1.0, ttl=60.0), turn_spans(shown=SHOWN)
    take(reader, spans[:-1], now=100.0)
    assert reader.ready(150.0) == []
    (record,) = reader.ready(400.0)
    assert (record.question, record.answer, len(record.contexts)) == (QUESTION, ANSWER, 2)
    assert not reader.holds(trace_of(spans))
