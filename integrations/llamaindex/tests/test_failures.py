from __future__ import annotations

import asyncio
import contextvars
import gc
import logging
import sys
from collections.abc import AsyncGenerator, Callable, Generator, Iterator
from typing import Any

import pytest
from llama_index.core.base.response.schema import AsyncStreamingResponse
from llama_index.core.callbacks import CallbackManager
from llama_index.core.chat_engine.types import StreamingAgentChatResponse
from llama_index.core.query_engine import CustomQueryEngine
from llamaindex_parts import (
    ANSWER,
    BERLIN,
    CORE,
    FRANCE,
    PARIS,
    QUESTION,
    Fixed,
    Receiver,
    Scripted,
    engine,
    texts,
)

from steelyard_llamaindex import _attach, instrument, uninstrument

swallows = pytest.mark.skipif(CORE < (0, 14, 21), reason="before, these errors came through")


def fail(error: Exception) -> Any:
    def say(prompt: str) -> str:
        raise error

    return say


@swallows
@pytest.mark.parametrize("asynchronous", [False, True])
@pytest.mark.parametrize("mode", ["compact", "refine"])
def test_swallowed_error_is_no_answer(receiver: Receiver, mode: str, asynchronous: bool) -> None:
    asked = engine(mode=mode, say=fail(ValueError("429 too many requests")))
    response = asyncio.run(asked.aquery(QUESTION)) if asynchronous else asked.query(QUESTION)
    assert str(response) == "Empty Response"
    record = receiver.record
    assert (record.status, record.answer) == ("error", "")
    assert record.error == "ValueError: 429 too many requests"
    assert texts(record) == [PARIS, FRANCE, BERLIN]


@swallows
def test_one_failure_among_several_calls_is_noted(receiver: Receiver) -> None:
    replies: Iterator[Any] = iter([ValueError("once"), ANSWER])

    def say(prompt: str) -> str:
        reply = next(replies, ANSWER)
        if isinstance(reply, Exception):
            raise reply
        return str(reply)

    engine("d1", "d2", mode="refine", say=say).query(QUESTION)
    record = receiver.record
    assert (record.status, record.answer) == ("ok", ANSWER)
    assert record.notes == ("a step failed and the run went on: ValueError: once",)


@pytest.mark.parametrize("asynchronous", [False, True])
@pytest.mark.parametrize("where", ["model", "retriever"])
def test_errors(receiver: Receiver, where: str, asynchronous: bool) -> None:
    error = ConnectionError("down")
    asked = engine(say=fail(error)) if where == "model" else engine(retriever=Fixed(error=error))
    with pytest.raises(ConnectionError, match="down"):
        asyncio.run(asked.aquery(QUESTION)) if asynchronous else asked.query(QUESTION)
    record = receiver.record
    assert (record.question, record.status, record.error) == (QUESTION, "error", "ConnectionError: down")
    assert texts(record) == ([] if where == "retriever" else [PARIS, FRANCE, BERLIN])


async def test_cancelled_queries_leave_nothing(receiver: Receiver) -> None:
    asked = engine("d1", mode="simple_summarize", llm=Scripted(slow=30.0))
    for _ in range(10):
        tasks = [asyncio.create_task(asked.aquery(QUESTION)) for _ in range(100)]
        await asyncio.sleep(0.05)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    turns = _attach.active()
    assert turns is not None
    assert turns.left == []
    records = receiver.records
    assert len(records) == 1000
    assert {record.status for record in records} == {"cancelled"}


def test_receiver_that_raises_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    class Broken:
        def submit(self, turn: object, /) -> None:
            raise OSError("private words")

    instrument(Broken())
    try:
        with caplog.at_level(logging.DEBUG, logger="steelyard"):
            assert str(engine().query(QUESTION)) == ANSWER
            assert str(engine().query(QUESTION)) == ANSWER
    finally:
        uninstrument()
    (said,) = [each for each in caplog.records if each.name.startswith("steelyard")]
    assert "submit (OSError" in said.getMessage()
    assert "private" not in caplog.text


def test_handler_that_fails_is_said_once(
    receiver: Receiver, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    turns = _attach.active()

    def broken(*args: Any) -> None:
        raise RecursionError

    monkeypatch.setattr(turns, "enter", broken)
    assert str(engine().query(QUESTION)) == ANSWER
    assert str(engine().query(QUESTION)) == ANSWER
    (said,) = [each.getMessage() for each in caplog.records]
    assert said.startswith("recording a LlamaIndex turn failed at span_enter (RecursionError")


async def test_turns_that_never_end_are_given_up() -> None:
    instrument(receiver := Receiver(), max_open=3)

    asked = engine("d1", llm=Scripted(slow=30.0))
    tasks = [asyncio.create_task(asked.aquery(f"Question {number}?")) for number in range(5)]
    await asyncio.sleep(0.05)
    turns = _attach.active()
    assert turns is not None
    assert len({each for each in turns.left if ".aquery-" in each}) == 3
    assert [record.status for record in receiver.records] == ["interrupted"] * 2
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert turns.left == []
    uninstrument()
    assert sorted(record.question for record in receiver.records) == [f"Question {n}?" for n in range(5)]
    assert [record.status for record in receiver.records] == ["interrupted"] * 2 + ["cancelled"] * 3


async def test_turns_too_old_are_given_up() -> None:
    instrument(receiver := Receiver(), ttl=0.02)

    stuck = asyncio.create_task(engine("d1", llm=Scripted(slow=30.0)).aquery("stuck?"))
    await asyncio.sleep(0.05)
    await engine("d1").aquery("next?")
    stuck.cancel()
    await asyncio.gather(stuck, return_exceptions=True)
    uninstrument()
    assert [(record.question, record.status) for record in receiver.records] == [
        ("stuck?", "interrupted"),
        ("next?", "ok"),
    ]


def test_objects_that_cannot_be_read_do_no_harm(receiver: Receiver) -> None:
    class Hostile:
        def __getattr__(self, name: str) -> Any:
            raise RuntimeError(name)

        def __str__(self) -> str:
            raise RuntimeError("no")

    class Odd(CustomQueryEngine):
        def custom_query(self, query_str: str) -> Any:
            return Hostile()

    Odd(callback_manager=CallbackManager([])).query(QUESTION)
    with pytest.raises(Exception, match=r".*"):
        engine().query(Hostile())
    gc.collect()
    assert [(record.status, record.answer) for record in receiver.records] == [("ok", ""), ("error", "")]


@pytest.mark.parametrize("stop", [uninstrument, lambda: instrument(Receiver())])
def test_turns_under_way_when_recording_ends_are_given_up(stop: Callable[[], None]) -> None:
    instrument(receiver := Receiver())

    def say(prompt: str) -> str:
        stop()
        return ANSWER

    assert str(engine(say=say).query(QUESTION)) == ANSWER
    uninstrument()
    assert (receiver.record.question, receiver.record.status) == (QUESTION, "interrupted")
    assert texts(receiver.record) == [PARIS, FRANCE, BERLIN]


def test_a_stream_that_is_read_after_recording_ended_is_a_whole_turn() -> None:
    instrument(receiver := Receiver())
    response: Any = engine(streaming=True).query(QUESTION)
    pieces = response.response_gen
    said = next(pieces)
    uninstrument()
    assert said + "".join(pieces) == ANSWER
    assert (receiver.record.status, receiver.record.answer) == ("ok", ANSWER)


class Piece:
    """A piece of a stream that is not what LlamaIndex streams."""

    def __init__(self, delta: object) -> None:
        self._delta = delta

    @property
    def delta(self) -> object:
        if isinstance(self._delta, Exception):
            raise self._delta
        return self._delta


class Never:
    """What is waited for in vain, without any event loop."""

    def __await__(self) -> Generator[None, None, None]:
        yield


class Streams(CustomQueryEngine):
    """Asks a model and gives a stream of its own."""

    pieces: list[Any] = []

    def custom_query(self, query_str: str) -> Any:
        Scripted().complete("A prompt.")
        stream: Any = iter(self.pieces)
        return StreamingAgentChatResponse(chat_stream=stream, is_writing_to_memory=False)

    async def acustom_query(self, query_str: str) -> Any:
        async def stream() -> AsyncGenerator[str, None]:
            yield "a"
            await Never()

        return AsyncStreamingResponse(response_gen=stream())


@pytest.mark.parametrize("delta", [5, ["a"], RuntimeError("private words")])
def test_a_stream_of_odd_pieces_reaches_its_reader(
    delta: object, receiver: Receiver, caplog: pytest.LogCaptureFixture
) -> None:
    pieces = [Piece(delta), Piece(delta)]
    response: Any = Streams(callback_manager=CallbackManager([]), pieces=pieces).query(QUESTION)
    assert list(response.chat_stream) == pieces
    assert [draft.status for draft in receiver.records] == ["ok"]
    assert "private" not in caplog.text


def test_a_reader_that_is_closed_in_another_context_is_not_disturbed(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    unheard: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda found: unheard.append(found.exc_type))

    async def read() -> None:
        response: Any = await Streams(callback_manager=CallbackManager([])).aquery(QUESTION)
        async for _ in response.response_gen:
            pass

    reader = read()
    contextvars.copy_context().run(reader.send, None)
    reader.close()
    gc.collect()
    assert unheard == []
    assert [(record.status, record.answer) for record in receiver.records] == [("cancelled", "a")]
