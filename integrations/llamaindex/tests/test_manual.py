from __future__ import annotations

import asyncio
from typing import Any

import pytest
from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.base.response.schema import Response
from llamaindex_parts import (
    ANSWER,
    FRANCE,
    PARIS,
    QUESTION,
    Caller,
    Fixed,
    Receiver,
    Scripted,
    engine,
    texts,
)

from steelyard.record import Context
from steelyard.recording import unrecorded
from steelyard_llamaindex import record, uninstrument


def test_retrieve_then_complete(receiver: Receiver) -> None:
    with record(question=QUESTION, reference=ANSWER, tags=["by hand"], metadata={"user": "u1"}) as handle:
        nodes = Fixed("d1", "d2").retrieve("capital of France")
        Scripted().complete(f"{nodes[0].text}\n{QUESTION}")
    turn = receiver.record
    assert turn.id == handle.id
    assert (turn.question, turn.answer, turn.reference) == (QUESTION, ANSWER, ANSWER)
    assert (turn.tags, turn.metadata) == (("by hand",), {"user": "u1"})
    assert texts(turn) == [PARIS]
    assert turn.contexts[0].query == "capital of France"
    assert [context.text for context in turn.retrieved] == [PARIS, FRANCE]
    assert turn.timings is not None
    assert 0 < (turn.timings.generation or 0) < (turn.timings.total or 0)


def test_answer_given(receiver: Receiver) -> None:
    with record(question=QUESTION) as turn:
        Fixed("d1").retrieve(QUESTION)
        turn.answer = f"{Scripted().complete('x')} Really."
    assert receiver.record.answer == f"{ANSWER} Really."


def test_what_an_engine_returned_is_an_answer(receiver: Receiver) -> None:
    for returned in (Response(ANSWER), ChatMessage(role="assistant", content=ANSWER)):
        with record(question=QUESTION) as turn:
            Fixed("d1").retrieve(QUESTION)
            turn.answer = returned
        assert receiver.records[-1].answer == ANSWER


def test_chat_model(receiver: Receiver) -> None:
    with record(question=QUESTION):
        nodes = Fixed("d1").retrieve(QUESTION)
        Caller(script=[ANSWER]).chat([ChatMessage(content=f"{nodes[0].text} {QUESTION}")])
    assert (receiver.record.answer, receiver.record.contexts_source) == (ANSWER, "in_prompt")


def test_streamed_completion(receiver: Receiver) -> None:
    with record(question=QUESTION):
        nodes = Fixed("d1").retrieve(QUESTION)
        for _ in Scripted().stream_complete(nodes[0].text):
            pass
    assert receiver.record.answer == ANSWER


def test_engines_inside_belong_to_the_block(receiver: Receiver) -> None:
    with record(question=QUESTION):
        engine("d1").query("first?")
        engine("d2", mode="accumulate").query("second?")
    turn = receiver.record
    assert turn.question == QUESTION
    assert texts(turn) == [PARIS, FRANCE]
    assert [context.query for context in turn.contexts] == ["first?", "second?"]
    assert turn.answer == f"Response 1: {ANSWER}"


def test_asynchronous_block_and_its_tasks(receiver: Receiver) -> None:
    async def main() -> None:
        with record(question=QUESTION):
            found = await asyncio.gather(Fixed("d1").aretrieve("a?"), Fixed("d2").aretrieve("b?"))
            await Scripted().acomplete(" ".join(nodes[0].text for nodes in found))

    asyncio.run(main())
    assert texts(receiver.record) == [PARIS, FRANCE]
    assert receiver.record.answer == ANSWER


def test_what_follows_the_block_is_not_in_it(receiver: Receiver) -> None:
    with record(question=QUESTION):
        Fixed("d1").retrieve(QUESTION)
    Fixed("d2").retrieve("later")
    assert texts(receiver.record) == [PARIS]


def test_block_that_raises(receiver: Receiver) -> None:
    with pytest.raises(KeyError), record(question=QUESTION):
        Fixed("d1").retrieve(QUESTION)
        raise KeyError("x")
    assert (receiver.record.status, receiver.record.error) == ("error", "KeyError: 'x'")


def test_block_that_is_cancelled(receiver: Receiver) -> None:
    async def turn() -> None:
        with record(question=QUESTION):
            await asyncio.sleep(10)

    async def main() -> None:
        task = asyncio.create_task(turn())
        await asyncio.sleep(0.01)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    asyncio.run(main())
    assert receiver.record.status == "cancelled"


def test_what_steelyard_does_itself_is_not_recorded(receiver: Receiver) -> None:
    with record(question=QUESTION):
        Fixed("d1").retrieve(QUESTION)
        Scripted().complete(PARIS)
        with unrecorded():
            Scripted(say=lambda prompt: "a verdict").complete("judge this")
    assert receiver.record.answer == ANSWER
    with unrecorded():
        engine().query(QUESTION)
    assert len(receiver.drafts) == 1


def test_without_instrument_it_does_nothing() -> None:
    uninstrument()
    with record(question=QUESTION) as turn:
        Scripted().complete("x")
    assert turn.answer is None


@pytest.mark.parametrize(
    "given",
    [[{"text": PARIS, "id": "7"}], [(PARIS, 0.5)], {"text": PARIS}, [[PARIS]]],
    ids=["hit", "pair", "one-hit", "list-of-a-query"],
)
def test_rows_and_hits_are_read_as_a_record_reads_them(receiver: Receiver, given: Any) -> None:
    with record(question=QUESTION) as turn:
        turn.contexts, turn.answer = given, ANSWER
    assert texts(receiver.record) == [PARIS]
    assert receiver.record.contexts[0].rank == 0


def test_contexts_that_the_block_sets_win(receiver: Receiver) -> None:
    async def main() -> None:
        async with record(question=QUESTION) as turn:
            (found,) = await Fixed("d1").aretrieve(QUESTION)
            turn.contexts = ["From the web.", " ", found, found.node, Context(text="By hand.", id="h")]
            turn.answer = ANSWER

    asyncio.run(main())
    turn = receiver.record
    assert texts(turn) == ["From the web.", PARIS, PARIS, "By hand."]
    assert [(context.id, context.rank) for context in turn.contexts] == [
        (None, 0),
        ("d1", 2),
        ("d1", 3),
        ("h", None),
    ]
    assert (turn.answer, turn.retrieved) == (ANSWER, ())
