"""No single call of ours keeps the interpreter lock for long, whatever text is in a turn.

A call of a C function (a search with a regular expression, a conversion, a parser) does not let other threads
run before it returns; between calls the interpreter does, every 5 ms. So what holds a timer of the
application up is the longest call. It is measured in seconds of this thread's own work, beside a piece of
work whose time is known, so that other programs on the machine do not count.
"""

from __future__ import annotations

import asyncio
import gc
import io
import json
import sqlite3
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any, ClassVar

import pytest
from otel_parts import documents, messages, oi, span

from steelyard.errors import MalformedReply
from steelyard.judge import LocalJudge
from steelyard.judge.chat._parse import answers_in
from steelyard.judge.endpoint import body_of
from steelyard.online.queue._spool import Spool
from steelyard.online.queue._turns import Selected
from steelyard.questions import Request, Supported, View
from steelyard.record import Context, Record, clean, record_from_json, record_to_json
from steelyard.scores import Evaluation, evaluation_from_json
from steelyard.sinks import JSONLSink
from steelyard.text import sentences, statements
from steelyard_opentelemetry import read_spans
from waiting import slowness

LONGEST = 0.02
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
    gc.disable()  # it goes through all that the whole process holds, at a moment of chance
    sys.setprofile(longest)
    try:
        yield longest
    finally:
        sys.setprofile(before)
        gc.enable()


def largest(text: str) -> Record:
    """A Record at its caps."""
    one, two, three = (
        tuple(Context(text=text[at : at + 50_000], id=f"{at}-{number}") for number in range(20))
        for at in range(3)
    )
    return Record(
        question=text,
        answer=text,
        reference=text,
        contexts=one,
        retrieved=two,
        reference_contexts=three,
        metadata={"x": text},
    )


def recorded(text: str) -> object:
    return record_from_json(record_to_json(largest(text)))


def written(text: str) -> object:
    file = io.StringIO()
    evaluation = Evaluation(record_id="r", scores=(), record=largest(text))
    asyncio.run(JSONLSink(file).write([evaluation]))
    return evaluation_from_json(file.getvalue().encode())


ASKED = Request(view=View(contexts=(Context(text="x"),)), questions={"q": Supported(claim="x")})


def replied(text: str) -> object:
    """A judge's reply: one text in it at its caps, or many."""
    escaped = json.dumps(text)
    for body in (
        f'{{"choices": "{escaped[1:-1] * 20}"}}',
        f'{{"choices": {json.dumps([text[:20]] * 20_000)}}}',
    ):
        with suppress(MalformedReply):
            body_of(body.encode())
    return [answers_in(reply, ASKED) for reply in (f'{{"q": {escaped}}}', f'{{"q": true, {text}')]


def nested(text: str) -> object:
    """A judge's reply of as many parts as are read."""
    parts = "[" + "[]," * 60_000 + "[]]"
    body_of(f'{{"choices": {parts}, "usage": {parts}}}'.encode())
    return answers_in(f'{{"q": {parts}}}', ASKED)


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


WORK: dict[str, Callable[[str], object]] = {
    "a Record and its JSON": recorded,
    "a result in a file": written,
    "a judge's reply": replied,
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
    check(WORK[work], (TEXTS[kind] * 100_000)[:100_000])


def test_no_reply_of_many_parts_keeps_the_interpreter_for_long() -> None:
    check(nested, "")


def check(work: Callable[[str], object], text: str) -> None:
    work(text[:100])  # what is imported or read at the first call
    found = []
    for _ in range(3):  # a call that is long each time
        before = slowness()
        with profiled() as longest:
            work(text)
        if longest.seconds < LONGEST * max(before, slowness()):
            return
        found.append(f"{longest.seconds * 1000:.0f} ms after {longest.place}")
    raise AssertionError("; ".join(found))


class Watched(sqlite3.Connection):
    """Notes the length of each text that Python's module converts, before a statement or after it."""

    lengths: ClassVar[list[int]] = []

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.text_factory = self._text

    def execute(self, sql: str, parameters: Any = (), /) -> sqlite3.Cursor:
        self.lengths.extend(len(value) for value in parameters if isinstance(value, str))
        return super().execute(sql, parameters)

    def _text(self, raw: bytes) -> str:
        self.lengths.append(len(raw))
        return raw.decode()


def test_a_long_turn_is_converted_by_sqlite_while_other_threads_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite3, "connect", partial(sqlite3.connect, factory=Watched))
    spool = Spool(tmp_path / "spool.db")
    record = clean(largest("中" * 100_000))
    assert spool.put([Selected(record, 0.5, 1.0)]) == ["new"]
    [leased] = spool.lease_turns(1)
    assert leased.turn.record == record
    done = spool.finish(leased, Evaluation(record_id="r", scores=(), record=record))
    assert done is not None
    spool.park([(done, {"sink"})])
    [left] = spool.parked("sink", 1)
    assert left.evaluation.record == record
    spool.close()
    assert 0 < max(Watched.lengths) < 1_000
    with closing(sqlite3.connect(tmp_path / "spool.db")) as file:
        assert file.execute("SELECT typeof(body) FROM results").fetchall() == [("text",)]
