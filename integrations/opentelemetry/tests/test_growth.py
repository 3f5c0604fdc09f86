"""Time grows with the size of what is read, not with its square."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import replace

import pytest
from otel_parts import ANSWER, QUESTION, documents, messages, oi, span

from steelyard_opentelemetry import Span, _extractor, read_spans

LEAST = 0.3
"""Seconds below which a run says nothing about growth."""
BASE = 1000


def tool_result(text: str) -> list[Span]:
    """An agent whose tool returned a text."""
    root = span("agent", at=(0, 9), attributes=oi("AGENT", input__value=QUESTION, output__value=ANSWER))
    return [root, span("search", root, attributes=oi("TOOL", tool__name="search", output__value=text))]


def prompted(text: str) -> list[Span]:
    """A model call whose prompt is a text."""
    said = {
        "gen_ai.operation.name": "chat",
        "gen_ai.input.messages": messages(("user", text)),
        "gen_ai.output.messages": messages(("assistant", ANSWER)),
    }
    return [span("chat", attributes=said)]


def chain(count: int) -> list[Span]:
    """Each span below the one before."""
    spans: list[Span] = []
    for _ in range(count):
        spans.append(span("step", spans[-1] if spans else None, attributes=oi("CHAIN")))
    return spans


def circle(count: int) -> list[Span]:
    """A chain whose first span stands below its last."""
    spans = chain(count)
    return [replace(spans[0], parent_id=spans[-1].span_id), *spans[1:]]


def orphans(count: int) -> list[Span]:
    """Spans that each lost another parent."""
    return [span("step", f"{n:x}aa", at=(n, n + 2), attributes=oi("CHAIN")) for n in range(count)]


def unmatched(count: int) -> list[Span]:
    """Retrievals and model calls, each in a trace of its own."""
    spans: list[Span] = []
    for n in range(count // 4):
        found = oi("RETRIEVER", input__value=QUESTION, **documents((f"Passage number {n} of the store.",)))
        spans.append(span("find", trace=f"{n:032x}", attributes=found))
        call = prompted(f"Passage number {n + 1} of the store.\nQuestion: {QUESTION}")[0]
        spans.append(replace(call, trace_id=f"{n + count:032x}"))
    return spans


def below_a_server(count: int) -> list[Span]:
    """Turns and lone model calls below one server span, one after the other."""
    server = span("POST /batch", at=(0, count + 9))
    spans = [server]
    for n in range(count // 4):
        root = span(
            "q", server, at=(n, n + 0.9), attributes=oi("CHAIN", input__value=f"{n}?", output__value="x")
        )
        found = oi("RETRIEVER", input__value=f"{n}?", **documents((f"Passage number {n} of the store.",)))
        call = replace(prompted(f"{n}?")[0], parent_id=server.span_id, start=root.start + 5)
        spans += [root, span("find", root, at=(n, n + 0.5), attributes=found), call]
    return spans


SHAPES: dict[str, Callable[[int], list[Span]]] = {
    "deep": chain,
    "circular": circle,
    "orphans": orphans,
    "unmatched": unmatched,
    "below_a_server": below_a_server,
    "blank_lines": lambda count: tool_result("a passage of a store" + "\n" * 10 * count + "and another one"),
    "lines_of_one_space": lambda count: tool_result("\n ".join(["a passage"] + [""] * 10 * count)),
    "open_tags": lambda count: prompted("<context>" * 10 * count),
    "headings": lambda count: prompted("context:\n" * 4 * count),
    "rules": lambda count: prompted("context\n---\n" * 4 * count),
    "stars": lambda count: tool_result("*" * 20 * count),
    "labels": lambda count: tool_result("===== Document 0 =====\n" * 5 * count),
    "open_brackets": lambda count: tool_result("[(" * 10 * count),
    "results": lambda count: tool_result(json.dumps([f"passage number {n} of many" for n in range(count)])),
}


def seconds(make: Callable[[int], list[Span]], count: int) -> float:
    spans = make(count)
    started = time.thread_time()
    read_spans(spans)
    return time.thread_time() - started


@pytest.mark.parametrize("name", SHAPES)
def test_four_times_as_much_takes_about_four_times_as_long(name: str) -> None:
    make = SHAPES[name]
    for _ in range(5):  # others on the machine may slow one of the two down; a square does so each time
        small, large = (seconds(make, BASE * times) for times in (1, 4))
        if large < max(LEAST, 8 * small):
            return
    raise AssertionError((small, large))


def test_turns_that_a_later_call_may_join_are_bounded_by_their_texts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_extractor, "_MOST_TEXT", 20_000)
    reader = _extractor.TurnExtractor()
    for n in range(20):
        text, session = (
            f"Passage {n}. {'The lamp turns. ' * 60}",
            {"session.id": f"{n:08x}-4f1c-9ab7-d3e5f6071829"},
        )
        found = oi("RETRIEVER", input__value=f"{QUESTION} {n}", **documents((text,)))
        asked = {**prompted(f"Context:\n{text}\n\nQuestion: {QUESTION} {n}")[0].attributes, **session}
        look_up = span("find", trace=f"{2 * n:032x}", attributes={**found, **session})
        read = reader.read([look_up, span("chat", trace=f"{2 * n + 1:032x}", at=(2, 3), attributes=asked)])
        assert len(read.records) == 1
        reader.overdue(look_up.end)
    assert 0 < reader._joined.size <= 20_000
