from __future__ import annotations

import asyncio
import gc
import logging
from collections.abc import Iterator
from typing import Any

import pytest
from llama_index.core.callbacks import CallbackManager
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


def test_cancelled_queries_leave_nothing(receiver: Receiver) -> None:
    async def main() -> None:
        asked = engine("d1", mode="simple_summarize", llm=Scripted(slow=30.0))
        for _ in range(10):
            tasks = [asyncio.create_task(asked.aquery(QUESTION)) for _ in range(100)]
            await asyncio.sleep(0.05)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    asyncio.run(main())
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


def test_turns_that_never_end_are_given_up() -> None:
    instrument(receiver := Receiver(), max_open=3)

    async def main() -> None:
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

    asyncio.run(main())
    uninstrument()
    assert sorted(record.question for record in receiver.records) == [f"Question {n}?" for n in range(5)]
    assert [record.status for record in receiver.records] == ["interrupted"] * 2 + ["cancelled"] * 3


def test_turns_too_old_are_given_up() -> None:
    instrument(receiver := Receiver(), ttl=0.02)

    async def main() -> None:
        stuck = asyncio.create_task(engine("d1", llm=Scripted(slow=30.0)).aquery("stuck?"))
        await asyncio.sleep(0.05)
        await engine("d1").aquery("next?")
        stuck.cancel()
        await asyncio.gather(stuck, return_exceptions=True)

    asyncio.run(main())
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
