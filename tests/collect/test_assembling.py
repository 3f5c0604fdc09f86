"""Turns whose spans come in several requests, on a clock of the test's."""

from __future__ import annotations

import json
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


def orphan(number: int) -> bytes:
    """A span of a service whose parents never come."""
    attributes = [{"key": "openinference.span.kind", "value": {"stringValue": "RETRIEVER"}}]
    times = {"startTimeUnixNano": str(10**18 + number), "endTimeUnixNano": str(10**18 + number + 1)}
    ids = {"traceId": f"{number:032x}", "spanId": f"{number:016x}", "parentSpanId": "f" * 16}
    spans = [{**ids, **times, "name": "retriever", "attributes": attributes}]
    scopes = [{"scope": {"name": "openinference.instrumentation.langchain"}, "spans": spans}]
    service = [{"key": "service.name", "value": {"stringValue": "noise"}}]
    return json.dumps(
        {"resourceSpans": [{"resource": {"attributes": service}, "scopeSpans": scopes}]}
    ).encode()


def test_a_service_whose_parents_never_come_is_not_waited_for_once_it_holds_very_many() -> None:
    reader, spans = ReceivedSpans(quiet=1.0, ttl=60.0, most_of_sender=100), turn_spans(shown=SHOWN)
    take(reader, spans[:-1], now=100.0)
    for number in range(1, 401):
        reader.take(orphan(number), 100.0 + number / 1000)
    reader.ready(100.5)
    assert reader.spans == len(spans) - 1 + 400
    for now in (101.0, 102.0, 103.0):
        reader.ready(now)
    # What is within the bound waits as ever, and so does the other service.
    assert len(spans) - 1 < reader.spans <= len(spans) - 1 + 100
    take(reader, spans[-1:], now=130.0)
    (record,) = reader.ready(132.0)
    assert (record.question, record.answer) == (QUESTION, SHOWN)
    reader.ready(200.0)
    assert reader.spans == 0
