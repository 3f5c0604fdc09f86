"""No single call of ours keeps the interpreter lock for long, whatever text is in a turn.

A call of a C function (a search with a regular expression, a conversion, a parser) does not let other threads
run before it returns; between calls the interpreter does, every 5 ms. So what holds a timer of the
application up is the longest call. It is measured in seconds of this thread's own work, beside a piece of
work whose time is known, so that other programs on the machine do not count.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

import pytest
from otel_parts import documents, messages, oi, span

from steelyard.judge import LocalJudge
from steelyard.questions import Request, Supported, View
from steelyard.record import Context, Record, record_from_json, record_to_json
from steelyard.text import sentences, statements
from steelyard_opentelemetry import read_spans

LONGEST = 0.02
_QUIET = 0.0026
"""Seconds that `_slowness` measures on a quiet core of the machine for which the bound is set."""
TEXTS = {
    "prose": "The river city of old stone was built in 1432 by masons from Lyon. ",
    "one word": "x",
    "spaces": " ",
    "lines": "a\n",
    "digits": "1 ",
    "unspaced": "中文",
    "tags": "<context>",
    "escapes": "\\u0041\\n",
    "quotes": "\"'[{(",
    "surrogates": "\ud800",
}


class Longest:
    """The longest time between two events of the interpreter, and where that was."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.place = ""
        self._before: tuple[float, str] | None = None

    def __call__(self, frame: FrameType, event: str, argument: object) -> None:
        now = time.thread_time()
        if self._before is not None and now - self._before[0] > self.seconds:
            self.seconds, self.place = now - self._before[0], self._before[1]
        name = getattr(argument, "__qualname__", "")
        self._before = time.thread_time(), f"{frame.f_code.co_filename}:{frame.f_lineno} {event} {name}"


@contextmanager
def profiled() -> Iterator[Longest]:
    longest = Longest()
    before = sys.getprofile()
    sys.setprofile(longest)
    try:
        yield longest
    finally:
        sys.setprofile(before)


def recorded(text: str) -> object:
    contexts = tuple(Context(text=text[:50_000]) for _ in range(20))
    made = Record(question=text, answer=text, reference=text, contexts=contexts, metadata={"x": text})
    return record_from_json(record_to_json(made))


def parsed(text: str) -> object:
    said = {
        "gen_ai.operation.name": "chat",
        "gen_ai.input.messages": messages(("user", text)),
        "gen_ai.output.messages": messages(("assistant", text)),
    }
    root = span("agent", at=(0, 9), attributes=oi("AGENT", input__value=text[:1000], output__value=text))
    found = oi("RETRIEVER", input__value=text, **documents((text,)))
    tool = oi("TOOL", tool__name="search", output__value=json.dumps([text[:10_000]] * 5))
    spans = [span("find", root, attributes=found), span("t", root, attributes=tool)]
    return read_spans([root, *spans, span("chat", root, attributes=said)])


def judged(text: str) -> object:
    asked = Request(
        view=View(contexts=(Context(text=text[:2_000]),)), questions={"q": Supported(claim=text[:200])}
    )
    return asyncio.run(LocalJudge().answer(asked))


def _slowness() -> float:
    """How many times slower a core is now, where others share its caches and its clock."""
    text, began = "a\n" * 100_000, time.thread_time()
    json.loads(json.dumps(text))
    return max(1.0, (time.thread_time() - began) / _QUIET)


WORK: dict[str, Callable[[str], object]] = {
    "a Record and its JSON": recorded,
    "sentences": lambda text: list(sentences(text)),
    "statements": lambda text: list(statements(text, text)),
    "the local judge": judged,
    "spans": parsed,
}


_LONG = ("spans", "the local judge")


@pytest.mark.parametrize(
    "work", [pytest.param(name, marks=pytest.mark.slow) if name in _LONG else name for name in WORK]
)
@pytest.mark.parametrize("kind", TEXTS)
def test_no_single_call_keeps_the_interpreter_for_long(work: str, kind: str) -> None:
    text = (TEXTS[kind] * 100_000)[:100_000]
    WORK[work](text[:100])  # what is imported or read at the first call
    found = []
    for _ in range(3):  # a call that is long each time
        slowness = _slowness()
        with profiled() as longest:
            WORK[work](text)
        if longest.seconds < LONGEST * max(slowness, _slowness()):
            return
        found.append(f"{longest.seconds * 1000:.0f} ms after {longest.place}")
    raise AssertionError("; ".join(found))
