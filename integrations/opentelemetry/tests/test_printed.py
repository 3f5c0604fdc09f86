"""Spans as a program's own exporter writes them: each in its own spelling, one an object or in a list."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from steelyard_opentelemetry._otlp import read_otlp
from steelyard_opentelemetry._span import Event, Span

TRACE, ROOT, OWN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b6", "00f067aa0ba902b7"
BEGIN = 1_772_398_038_711_501_000
END = BEGIN + 1_500_000_000
SAID = {"gen_ai.operation.name": "chat", "gen_ai.input.messages": "[]"}
EVENTS = [{"name": "gen_ai.choice", "attributes": {"message": "[]"}}]


def snake() -> dict[str, Any]:
    ids = {"trace_id": TRACE, "span_id": OWN, "parent_span_id": ROOT}
    times = {"start_time": "2026-03-01 20:47:18.711501Z", "end_time": "2026-03-01 20:47:20.211501Z"}
    return {"name": "chat", **ids, **times, "duration_ms": 1500.0, "status": "ERROR"}


def nanoseconds() -> dict[str, Any]:
    ids = {"trace_id": TRACE, "span_id": OWN, "parent_id": ROOT}
    return {"name": "chat", **ids, "start_ns": BEGIN, "end_ns": END, "status": "ERROR"}


def with_a_unit() -> dict[str, Any]:
    ids = {"trace_id": f"0x{TRACE}", "span_id": f"0x{OWN}", "parent_span_id": f"0x{ROOT}"}
    times = {"start_time_unix_nano": str(BEGIN), "end_time_unix_nano": str(END)}
    return {"name": "chat", **ids, **times, "status": {"code": "ERROR", "description": None}}


def camel() -> dict[str, Any]:
    ids = {"traceId": TRACE, "spanId": OWN, "parentSpanId": ROOT}
    times = {"startTime": divmod(BEGIN, 10**9), "endTime": divmod(END, 10**9)}
    return {"name": "chat", **ids, **times, "status": {"code": 2, "message": ""}}


def readable() -> dict[str, Any]:
    """As `JSON.stringify` writes what the JavaScript SDK hands to an exporter."""
    ids = {
        "spanContext": {"traceId": TRACE, "spanId": OWN},
        "parentSpanContext": {"spanId": ROOT, "traceId": TRACE},
    }
    times = {"startTime": divmod(BEGIN, 10**9), "endTime": divmod(END, 10**9)}
    return {"name": "chat", **ids, **times, "status": {"code": 2}}


def private() -> dict[str, Any]:
    return {"_spanContext": {"traceId": TRACE, "spanId": OWN}, **camel()}


@pytest.mark.parametrize("form", [snake, nanoseconds, with_a_unit, camel, readable, private])
@pytest.mark.parametrize("held", ["line", "list", "indented", "spans"])
def test_a_span_is_read_in_whatever_spelling_an_exporter_writes_it(
    form: Callable[[], dict[str, Any]], held: str
) -> None:
    told = {**form(), "attributes": SAID, "events": EVENTS, "resource": {"service.name": "shop"}}
    text = {
        "line": json.dumps(told),
        "list": json.dumps([told]),
        "indented": json.dumps(told, indent=2),
        "spans": json.dumps({"timestamp": "2026-03-01", "spans": [told]}, indent=2),
    }[held]
    found = read_otlp(text.splitlines())
    expected = Span(
        trace_id=TRACE,
        span_id=OWN,
        parent_id=ROOT,
        name="chat",
        service="shop",
        start=BEGIN,
        end=END,
        failed=True,
        attributes=SAID,
        events=(Event(name="gen_ai.choice", attributes={"message": "[]"}),),
    )
    assert (found.problems, found.spans) == ([], [expected])


@pytest.mark.parametrize(
    ("written", "start"),
    [
        (1_772_398_038.711501, 1_772_398_038_711_501_000),
        (1_772_398_038, 1_772_398_038_000_000_000),
        (1_772_398_038_711, 1_772_398_038_711_000_000),
        (1_772_398_038_711_501, 1_772_398_038_711_501_000),
        ([1_772_398_038], 1_772_398_038_000_000_000),
        ([], 0),
        (float("nan"), 0),
        ([float("inf"), 1], 1),
        ("9" * 5_000, 0),
    ],
)
def test_how_large_a_time_is_tells_its_unit(written: object, start: int) -> None:
    told = {**camel(), "startTime": written, "attributes": {}}
    (span,) = read_otlp([json.dumps(told)]).spans
    assert span.start == start


@pytest.mark.parametrize("key", ["startTime", "attributes", "spanId"])
def test_a_line_of_a_log_that_names_its_span_is_not_a_span(key: str) -> None:
    told = {**camel(), "attributes": {}}
    del told[key]
    found = read_otlp([json.dumps(told)])
    assert (found.spans, len(found.problems)) == ([], 1)


def test_the_instrumentor_that_an_exporter_names_is_read() -> None:
    told = {**camel(), "attributes": {}, "instrumentationScope": {"name": "ai", "version": "5"}}
    (span,) = read_otlp([json.dumps(told)]).spans
    assert span.scope == "ai"
