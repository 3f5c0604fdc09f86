"""Recording without passing callbacks: whole processes, blocks of code, and feedback."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from decimal import Decimal
from typing import Any
from uuid import UUID, uuid4

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.runnables import RunnableLambda
from langchain_parts import FRANCE, PARIS, QUESTION, Receiver, Shelf, joined, lcel, says, texts

from steelyard.online import Monitor
from steelyard.record import Context
from steelyard.recording import unrecorded
from steelyard.testing import MemorySink
from steelyard_langchain import CallbackHandler, attach, detach, feedback, record


def test_every_thread_is_recorded_until_detached(receiver: Receiver) -> None:
    lcel().invoke("before")
    attach(receiver)
    lcel().invoke("here")
    thread = threading.Thread(target=lambda: lcel().invoke("in a thread"))
    thread.start()
    thread.join()
    asyncio.run(lcel().ainvoke("in a task"))
    detach()
    lcel().invoke("after")
    assert [r.question for r in receiver.records] == ["here", "in a thread", "in a task"]


def test_a_handler_passed_explicitly_is_the_only_one(receiver: Receiver) -> None:
    attached = Receiver()
    attach(attached)
    lcel().invoke(QUESTION, {"callbacks": [CallbackHandler(receiver)]})
    assert receiver.record.question == QUESTION
    assert attached.records == []


def test_a_handler_passed_to_an_inner_chain_does_not_record_twice(receiver: Receiver) -> None:
    inner = Receiver()
    attach(receiver)
    chain: Any = RunnableLambda(lambda q: lcel().invoke(q)) | RunnableLambda(str.strip)
    chain.with_config(callbacks=[CallbackHandler(inner)]).invoke(QUESTION)
    assert len(inner.records) + len(receiver.records) == 1


def test_attaching_again_replaces(receiver: Receiver) -> None:
    first = Receiver()
    attach(first)
    attach(receiver, tool_contexts=["search"])
    lcel().invoke(QUESTION)
    assert first.records == []
    assert receiver.record.question == QUESTION


def test_what_is_run_on_our_own_behalf_is_not_recorded(receiver: Receiver) -> None:
    attach(receiver)
    with unrecorded():
        lcel().invoke("attached")
        lcel().invoke("explicit", {"callbacks": [CallbackHandler(receiver)]})
        with record(receiver, question="block"):
            says("Yes.").invoke("Is it?")
    assert receiver.drafts == []


def test_block_around_separate_calls(receiver: Receiver) -> None:
    with record(
        receiver, question=QUESTION, reference="Paris", tags=["manual"], metadata={"user": 7}
    ) as turn:
        documents = Shelf(documents=[PARIS, FRANCE]).invoke("capital France")
        reply = says("Paris.").invoke(f"{joined(documents[:1])}\n{QUESTION}")
        turn.answer = f"It is {reply.content}"
    made = receiver.record
    assert made.id == turn.id
    assert (made.question, made.answer, made.reference) == (QUESTION, "It is Paris.", "Paris")
    assert texts(made.contexts) == [PARIS.page_content]
    assert texts(made.retrieved) == [PARIS.page_content, FRANCE.page_content]
    assert (made.tags, made.metadata["user"]) == (("manual",), 7)
    assert made.contexts[0].query == "capital France"
    assert made.notes == ()


def test_block_that_was_told_nothing_says_how_to_tell_it(receiver: Receiver) -> None:
    with record(receiver):
        Shelf().invoke("capital France")
    question, answer, *_ = receiver.record.notes
    assert "question= to record()" in question
    assert "set answer" in answer


def test_block_takes_the_last_reply_where_no_answer_is_set(receiver: Receiver) -> None:
    with record(receiver, question=QUESTION):
        says("Keywords").invoke("Rewrite this")
        says("Paris.").invoke(QUESTION)
    assert receiver.record.answer == "Paris."


def test_block_around_a_chain_adds_what_it_knows(receiver: Receiver) -> None:
    with record(receiver, reference="Paris") as turn:
        lcel().invoke(QUESTION)
    made = receiver.record
    assert (made.id, made.question, made.answer) == (turn.id, QUESTION, "Paris is the capital.")
    assert made.reference == "Paris"
    assert len(made.contexts) == 3


def test_block_with_contexts_of_ones_own(receiver: Receiver) -> None:
    with record(receiver, question=QUESTION) as turn:
        turn.contexts = ["Found by hand.", PARIS, Context(text="Ready made.", id="x")]
        turn.answer = "Paris."
    assert texts(receiver.record.contexts) == ["Found by hand.", PARIS.page_content, "Ready made."]


@pytest.mark.parametrize(
    ("returned", "answer"),
    [
        (AIMessage("Paris."), "Paris."),
        ({"messages": [HumanMessage(QUESTION), AIMessage("Paris.")]}, "Paris."),
        ({"input": QUESTION, "context": [PARIS], "answer": "Paris."}, "Paris."),
        (Decimal("2.1"), "2.1"),
    ],
)
def test_what_a_chain_returned_is_an_answer(receiver: Receiver, returned: object, answer: str) -> None:
    with record(receiver, question=QUESTION) as turn:
        turn.contexts = [PARIS]
        turn.answer = returned
    assert receiver.record.answer == answer


def test_block_that_raises(receiver: Receiver) -> None:
    with pytest.raises(KeyError), record(receiver, question=QUESTION):
        raise KeyError("lost")
    made = receiver.record
    assert (made.status, made.error, made.question) == ("error", "KeyError: 'lost'", QUESTION)


async def test_async_blocks_do_not_mix(receiver: Receiver) -> None:
    async def one(n: int) -> None:
        async with record(receiver, question=f"Question {n}?") as turn:
            await Shelf().ainvoke(f"query {n}")
            await asyncio.sleep(0.01)
            reply = await says(f"Answer {n}.").ainvoke(f"{PARIS.page_content} {n}")
            turn.answer = str(reply.content)

    await asyncio.gather(*(one(n) for n in range(20)))
    assert {r.question: r.answer for r in receiver.records} == {
        f"Question {n}?": f"Answer {n}." for n in range(20)
    }
    assert all(r.contexts[0].query == f"query {r.question[9:-1]}" for r in receiver.records)


def test_block_uses_what_is_attached_and_leaves_nothing(receiver: Receiver) -> None:
    handler = attach(receiver, metadata={"app": "a"})
    with record(question=QUESTION):
        lcel().invoke("something else")
    lcel().invoke("afterwards")
    first, second = receiver.records
    assert (first.question, first.metadata["app"]) == (QUESTION, "a")
    assert second.question == "afterwards"
    assert handler.stats()["runs"] == 0


def test_a_block_with_an_explicit_handler_inside_leaves_nothing(
    receiver: Receiver, handler: CallbackHandler, config: Any
) -> None:
    with record(handler, question=QUESTION):
        lcel().invoke("inner", config)
    assert receiver.record.question == QUESTION
    assert handler.stats()["runs"] == 0


def test_a_block_closed_in_another_context(receiver: Receiver) -> None:
    def stream() -> Iterator[str]:
        with record(receiver, question=QUESTION) as turn:
            turn.answer = "Paris."
            yield turn.answer

    pieces = stream()
    copy_context().run(next, pieces)
    assert list(pieces) == []
    assert receiver.record.answer == "Paris."


async def test_a_task_that_outlives_its_block_is_on_its_own(receiver: Receiver) -> None:
    attach(receiver)

    async with record(receiver, question="the block"):
        ended = asyncio.Event()

        async def later() -> None:
            await ended.wait()
            await lcel().ainvoke("later")

        task = asyncio.create_task(later())
        await says("Paris.").ainvoke(QUESTION)
    ended.set()
    await task
    assert [made.question for made in receiver.records] == ["the block", "later"]


def test_feedback_on_an_open_turn(receiver: Receiver) -> None:
    run_id = uuid4()

    def rate(text: str) -> str:
        assert feedback(run_id, "up")
        return text

    handler = CallbackHandler(receiver)
    (lcel() | rate).invoke(QUESTION, {"callbacks": [handler], "run_id": run_id})
    assert receiver.record.id == str(run_id)
    assert receiver.record.metadata["feedback"] == "up"


def test_feedback_on_an_open_block(receiver: Receiver) -> None:
    with record(receiver, question=QUESTION) as turn:
        says("Paris.").invoke(QUESTION)
        assert feedback(turn.id, {"stars": 4})
    assert receiver.record.metadata["feedback"] == {"stars": 4}


class Rated(Receiver):
    """A receiver that takes feedback, as a Monitor does."""

    def __init__(self) -> None:
        super().__init__()
        self.rated: dict[str, Any] = {}

    def feedback(self, record_id: str, value: Any) -> bool:
        self.rated[record_id] = value
        return True


def test_feedback_on_a_closed_turn_goes_to_the_monitor() -> None:
    monitor = Rated()
    handler = CallbackHandler(monitor)
    other = CallbackHandler(monitor)
    lcel().invoke(QUESTION, {"callbacks": [handler]})
    assert feedback(UUID(monitor.record.id), "down")
    assert monitor.rated == {monitor.record.id: "down"}
    del other


def test_feedback_reaches_a_turn_that_waits_to_be_judged() -> None:
    sink = MemorySink()
    monitor = Monitor(metrics=[], sinks=[sink])
    handler = CallbackHandler(monitor)
    with record(handler, question=QUESTION) as turn:
        turn.answer = "Paris."
        assert feedback(turn.id, False)
    assert monitor.flush(60) == 0
    monitor.close()
    kept = sink.evaluations[0].record
    assert kept is not None
    assert kept.metadata["feedback"] is False


def test_feedback_after_a_block(receiver: Receiver) -> None:
    monitor = Rated()
    with record(monitor, question=QUESTION) as turn:
        turn.answer = "Paris."
    assert feedback(turn.id, True)
    assert monitor.rated == {turn.id: True}


def test_feedback_that_reaches_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("steelyard_langchain._feedback._handlers", set())
    monkeypatch.setattr("steelyard_langchain._feedback._monitors", set())
    assert not feedback("not even an id", "up")
    assert not feedback(uuid4(), "up")


def test_threads_with_blocks_of_their_own(receiver: Receiver) -> None:
    def one(n: int) -> None:
        with record(receiver, question=f"Question {n}?"):
            lcel(says(f"Answer {n}.")).invoke("x")

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(one, range(40)))
    assert {r.question: r.answer for r in receiver.records} == {
        f"Question {n}?": f"Answer {n}." for n in range(40)
    }
