"""When a turn is complete: with a clock of the test's own."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from otel_parts import OTHER_SCOPES, QUESTION, is_right, oi, rag_turn, span

from steelyard.record import Record
from steelyard_opentelemetry import Span
from steelyard_opentelemetry._extractor import TurnExtractor
from steelyard_opentelemetry._grouping import Candidates
from steelyard_opentelemetry._open_turns import OpenTurns, Started
from steelyard_opentelemetry._span import ParsedSpan
from steelyard_opentelemetry.dialects import parse

KNOWN = "openinference.instrumentation.langchain"


def table(*, patient: bool = False, **more: int) -> OpenTurns:
    limits = {"max_traces": 100, "max_spans": 1000, **more}
    return OpenTurns(quiet=1.0, ttl=60.0, read=TurnExtractor().candidates, patient=patient, **limits)


def begin(traces: OpenTurns, found: Span, now: float) -> None:
    traces.start(Started(found.trace_id, found.span_id, found.parent_id, found.scope, found.start), now)


def finish(traces: OpenTurns, spans: list[Span], now: float) -> None:
    for found in spans:
        traces.end(found, now)


def records(found: list[Candidates]) -> list[Record]:
    extractor = TurnExtractor()
    return [*extractor.extract(found).records, *extractor.close().records]


def right(found: list[Candidates]) -> list[bool]:
    return [is_right(record) for record in records(found)]


def test_complete_after_the_quiet_period() -> None:
    traces, spans = table(), rag_turn(scope=KNOWN)
    for found in spans:
        begin(traces, found, 0.0)
    finish(traces, spans, 1.0)
    assert traces.ripe(1.9) == []
    assert right(traces.ripe(2.0)) == [True]
    assert (len(traces), traces.spans, traces.ripe(99.0)) == (0, 0, [])


def test_an_open_child_holds_the_turn_back() -> None:
    """A streamed answer: the root ends before its model call does."""
    traces = table()
    retriever, model, root = rag_turn(scope=KNOWN)
    for found in (root, retriever, model):
        begin(traces, found, 0.0)
    finish(traces, [retriever, root], 1.0)
    assert traces.ripe(30.0) == []
    finish(traces, [model], 31.0)
    assert right(traces.ripe(32.0)) == [True]


def test_a_known_root_that_is_open_holds_what_is_below() -> None:
    traces = table()
    agent = span("agent", scope=KNOWN, at=(0, 50), attributes=oi("AGENT", input__value=QUESTION))
    inner = rag_turn(parent=agent, scope=KNOWN)
    for found in (agent, *inner):
        begin(traces, found, 0.0)
    finish(traces, inner, 1.0)
    assert traces.ripe(30.0) == []


def test_a_server_span_that_is_open_holds_nothing_up() -> None:
    traces = table()
    server = span("GET /chat", at=(0, 500))
    begin(traces, server, 0.0)
    for number in range(3):
        inner = rag_turn(parent=server, scope=KNOWN)
        now = 10.0 * number
        for found in inner:
            begin(traces, found, now)
        finish(traces, inner, now)
        assert traces.ripe(now + 0.5) == []
        assert right(traces.ripe(now + 1.0)) == [True]
    assert traces.spans == 0


def test_pieces_below_an_open_server_span_wait_for_it() -> None:
    traces = table()
    server = span("GET /chat", at=(0, 500))
    retriever, model, _ = rag_turn(scope=KNOWN)
    pieces = [replace(found, parent_id=server.span_id) for found in (retriever, model)]
    begin(traces, server, 0.0)
    finish(traces, pieces, 1.0)
    assert traces.ripe(5.0) == []
    finish(traces, [server], 6.0)
    assert right(traces.ripe(7.0)) == [True]


def test_a_root_that_never_ends_is_given_up() -> None:
    traces = table()
    retriever, model, root = rag_turn(scope=KNOWN)
    for found in (root, retriever, model):
        begin(traces, found, 0.0)
    finish(traces, [retriever, model], 1.0)
    assert traces.ripe(60.0) == []
    assert right(traces.ripe(62.0)) == [True]
    assert traces.never_ended == 1


def test_turns_below_a_root_that_never_ends_come_in_time_under_steady_traffic() -> None:
    """A context that leaked: every later turn of the thread stands below a span that stays open."""
    traces = table()
    leaked = span("RetrieverQueryEngine.workflow", scope=OTHER_SCOPES[0])
    begin(traces, leaked, 0.0)
    given = 0
    for number in range(200):
        now = float(number)
        inner = rag_turn(parent=leaked, scope=KNOWN, question=f"Question number {number}?")
        for found in inner:
            begin(traces, found, now)
        finish(traces, inner, now)
        given += len(records(traces.ripe(now)))
    assert given > 130
    assert traces.spans < 3 * 70


def test_a_span_after_its_parents_end_stands_by_itself() -> None:
    """Another leak: the parent has ended long ago, and there is always something open below it."""
    traces = table()
    first = rag_turn(scope=KNOWN)
    finish(traces, first, 0.0)
    later = rag_turn(parent=first[-1], at=10, scope=KNOWN)
    begin(traces, later[-1], 0.5)
    assert right(traces.ripe(1.5)) == [True]


def test_the_oldest_trace_makes_room_and_is_counted() -> None:
    traces = table(max_traces=2)
    for number in range(5):
        finish(traces, rag_turn(trace=f"{number + 1:032x}"), float(number))
    assert (len(traces), traces.evicted, traces.spans) == (2, 3, 6)
    traces = table(max_spans=7)
    for number in range(5):
        finish(traces, rag_turn(trace=f"{number + 1:032x}"), float(number))
    assert (len(traces), traces.evicted, traces.spans) == (2, 3, 6)


def test_a_span_that_ends_twice_counts_once() -> None:
    traces, spans = table(), rag_turn()
    finish(traces, [*spans, *spans], 0.0)
    assert (traces.repeated, traces.spans) == (3, 3)
    assert right(traces.ripe(5.0)) == [True]


def test_flushing_does_not_wait_but_leaves_what_is_open() -> None:
    traces = table()
    spans, other = rag_turn(scope=KNOWN), rag_turn(trace=f"{7:032x}", scope=KNOWN)
    begin(traces, other[-1], 0.0)
    finish(traces, [*spans, *other[:2]], 0.0)
    assert right(traces.ripe(0.0, force=True)) == [True]
    assert len(traces) == 1
    (rest,) = traces.rest()
    assert sum(len(turn.nodes) for turn in (*rest.whole, *rest.pieces)) == 2


def test_no_span_is_read_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    """A turn below an open server span is recorded from the reading that told that it is complete."""
    read: Counter[str] = Counter()

    def counting(found: Span) -> ParsedSpan | None:
        read[found.span_id] += 1
        return parse(found)

    monkeypatch.setattr("steelyard_opentelemetry._grouping.parse", counting)
    traces, server = table(), span("GET /chat", at=(0, 500))
    whole, (retriever, model, _) = rag_turn(parent=server, scope=KNOWN), rag_turn(scope=KNOWN)
    pieces = [replace(found, parent_id=server.span_id) for found in (retriever, model)]
    begin(traces, server, 0.0)
    finish(traces, [*whole, *pieces], 0.0)
    for now in (1.0, 20.0, 40.0, 59.0):
        assert right(traces.ripe(now)) == [True] * (now == 1.0)
    assert set(read.values()) == {1}
    assert len(read) == 5


def test_a_call_awaits_what_another_instrumentor_began_before_it_in_another_trace() -> None:
    traces = table(max_traces=2)
    call = span("call", scope="openinference.instrumentation.openai", trace="a", at=(5, 6))
    others = {
        "later": span("later", scope=KNOWN, trace="b", at=(7, 9)),
        "own": span("own", scope=call.scope, trace="b", at=(1, 9)),
        "unknown": span("unknown", scope="app", trace="b", at=(1, 9)),
        "same trace": span("same trace", scope=KNOWN, trace="a", at=(1, 9)),
    }
    for other in others.values():
        begin(traces, other, 0.0)
    assert not traces.awaits(call)
    crew = span("crew", scope=KNOWN, trace="b", at=(2, 9))
    for leaves in ("ended", "given up", "evicted"):
        begin(traces, crew, 0.0)
        assert traces.awaits(call), leaves
        if leaves == "ended":
            finish(traces, [crew], 0.0)
        elif leaves == "given up":
            traces.ripe(60.0)
        else:
            for trace in ("c", "d"):
                begin(traces, span("x", scope="app", trace=trace, at=(1, 2)), 61.0)
        assert not traces.awaits(call), leaves
