"""Streaming, breaking off and cancelling: what the user was shown is what is recorded."""

from __future__ import annotations

import asyncio
import time
from types import SimpleNamespace
from typing import Any, TypedDict

import pytest
from langchain_core.language_models.fake_chat_models import FakeListChatModel
from langchain_core.messages import AIMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.runnables import RunnablePassthrough
from langchain_parts import FRANCE, PARIS, QUESTION, Receiver, Shelf, joined, lcel, says, texts
from langgraph.graph import END, START, MessagesState, StateGraph

from steelyard_langchain import CallbackHandler

ANSWER = "Paris is the capital."


def test_astream_events_v2(receiver: Receiver, config: Any) -> None:
    async def consume() -> int:
        return len([event async for event in lcel().astream_events(QUESTION, config, version="v2")])

    assert asyncio.run(consume()) > 10
    record = receiver.record
    assert (record.question, record.answer, record.status) == (QUESTION, ANSWER, "ok")


class State(TypedDict, total=False):
    question: str
    documents: list[Any]
    answer: str


def graph(model: Any) -> Any:
    def retrieve(state: State) -> State:
        return {"documents": Shelf(documents=[PARIS, FRANCE]).invoke(state["question"])}

    def generate(state: State) -> State:
        reply = model.invoke(f"{joined(state['documents'])}\n{state['question']}")
        return {"answer": reply.content}

    builder = StateGraph(State)
    builder.add_node("retrieve", retrieve)
    builder.add_node("generate", generate)
    builder.add_edge(START, "retrieve")
    builder.add_edge("retrieve", "generate")
    builder.add_edge("generate", END)
    return builder.compile()


def test_a_conversation_that_was_answered_past_the_framework(receiver: Receiver, config: Any) -> None:
    def reply(state: MessagesState) -> Any:
        said = {"Is it open?": "Yes, until six.", "Hold on": "Go on."}[str(state["messages"][-1].content)]
        return {"messages": [{"role": "assistant", "content": said}]} if said != "Go on." else {}

    builder = StateGraph(MessagesState)
    builder.add_node("reply", reply)
    builder.add_edge(START, "reply")
    made: Any = builder.compile()
    made.invoke({"messages": [{"role": "user", "content": "Is it open?"}]}, config)
    made.invoke({"messages": [{"role": "user", "content": "Hold on"}]}, config)  # nobody replies
    record = receiver.record
    assert (record.question, record.answer, record.contexts) == ("Is it open?", "Yes, until six.", ())
    assert any("no model run" in note for note in record.notes)


@pytest.mark.parametrize("mode", ["values", "updates", "messages"])
def test_graph_streams(receiver: Receiver, config: Any, mode: str) -> None:
    assert list(graph(says(ANSWER)).stream({"question": QUESTION}, config, stream_mode=mode))
    record = receiver.record
    assert (record.question, record.answer, record.status) == (QUESTION, ANSWER, "ok")
    assert texts(record.contexts) == [PARIS.page_content, FRANCE.page_content]


@pytest.mark.filterwarnings("ignore:.*v3.*")
def test_astream_events_v3_on_a_graph(receiver: Receiver, config: Any) -> None:
    async def consume() -> None:
        stream = await graph(says(ANSWER)).astream_events({"question": QUESTION}, config, version="v3")
        async for _ in stream:
            pass

    asyncio.run(consume())
    record = receiver.record
    assert (record.question, record.answer, record.status) == (QUESTION, ANSWER, "ok")
    assert texts(record.contexts) == [PARIS.page_content, FRANCE.page_content]


def test_an_early_broken_stream_is_truncated(
    receiver: Receiver, config: Any, handler: CallbackHandler
) -> None:
    stream = lcel().stream(QUESTION, config)
    shown = next(stream) + next(stream)
    stream.close()  # type: ignore[attr-defined]
    record = receiver.record
    assert record.status == "truncated"
    assert shown == "Paris is "
    assert record.answer
    assert shown.startswith(record.answer)
    assert len(record.contexts) == 3


def test_an_early_broken_async_stream_is_truncated(receiver: Receiver, config: Any) -> None:
    async def consume() -> None:
        stream = lcel().astream(QUESTION, config)
        await anext(stream)
        await stream.aclose()  # type: ignore[attr-defined]

    asyncio.run(consume())
    assert receiver.record.status == "truncated"
    assert receiver.record.question == QUESTION


def test_an_early_broken_graph_stream_is_truncated(receiver: Receiver, config: Any) -> None:
    stream = graph(says(ANSWER)).stream({"question": QUESTION}, config, stream_mode="messages")
    next(stream)
    stream.close()
    assert receiver.record.status == "truncated"


class Slow(FakeListChatModel):
    """Takes half a minute; says when it has begun."""

    begun: Any = None

    async def _agenerate(self, *args: Any, **kwargs: Any) -> Any:
        if self.begun is not None:
            self.begun.set()
        await asyncio.sleep(30)


def test_cancellation(receiver: Receiver, config: Any) -> None:
    async def cancel() -> None:
        begun = asyncio.Event()
        chain = lcel(Slow(responses=["never"], begun=begun))
        task = asyncio.create_task(chain.ainvoke(QUESTION, config))
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancel())
    record = receiver.record
    assert (record.status, record.question, record.answer, record.error) == ("cancelled", QUESTION, "", None)


def test_cancellation_of_a_stream(receiver: Receiver, config: Any) -> None:
    async def cancel() -> None:
        first = asyncio.Event()

        async def consume() -> None:
            async for _ in lcel(FakeListChatModel(responses=["Paris."], sleep=0.05)).astream(
                QUESTION, config
            ):
                first.set()

        task = asyncio.create_task(consume())
        await first.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancel())
    assert receiver.record.status == "cancelled"
    assert receiver.record.question == QUESTION
    assert len(receiver.record.contexts) == 3


def test_a_timeout_that_the_chain_survives_is_not_truncated(receiver: Receiver, config: Any) -> None:
    from langchain_core.runnables import RunnableLambda

    async def patient(prompt: Any) -> AIMessage:
        try:
            return await asyncio.wait_for(Slow(responses=["never"]).ainvoke(prompt), 0.02)
        except TimeoutError:
            return await says(ANSWER).ainvoke(prompt)

    asyncio.run(lcel(RunnableLambda(patient)).ainvoke(QUESTION, config))
    assert (receiver.record.status, receiver.record.answer) == ("ok", ANSWER)


def test_an_abandoned_stream_is_forgotten_after_its_time(
    receiver: Receiver, handler: CallbackHandler, config: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = lcel().stream(QUESTION, config)
    next(stream)
    assert handler.stats()["open"] == 1
    late = SimpleNamespace(perf_counter=lambda: time.perf_counter() + 3601)
    monkeypatch.setattr("steelyard_langchain._open_turns.time", late)
    stats = handler.stats()
    assert (stats["open"], stats["runs"], stats["expired"]) == (0, 0, 1)
    assert "".join(stream).endswith("capital.")
    assert receiver.records == []


def test_open_turns_are_bounded(receiver: Receiver) -> None:
    handler = CallbackHandler(receiver, max_open=3)
    streams = [lcel().stream(QUESTION, {"callbacks": [handler]}) for _ in range(10)]
    for stream in streams:
        next(stream)
    stats = handler.stats()
    assert (stats["open"], stats["too_many_open"]) == (3, 7)
    for stream in streams:
        list(stream)
    assert len(receiver.records) == 3


def test_of_several_texts_that_models_wrote_under_odd_names_a_note_says_so(
    receiver: Receiver, config: Any
) -> None:
    ask = says("It is Paris, by the Seine.") | StrOutputParser()
    title = says("Seats of government") | StrOutputParser()
    told: Any = RunnablePassthrough.assign(reply_text=lambda x: ask.invoke(f"{PARIS.page_content}\n{x['q']}"))
    told.assign(heading=lambda x: title.invoke(f"Name this.\n{x['reply_text']}")).invoke(
        {"q": QUESTION}, config
    )
    told.invoke({"q": QUESTION}, config)
    several, one = receiver.records
    assert [any("several texts" in note for note in record.notes) for record in (several, one)] == [
        True,
        False,
    ]
    assert one.answer == "It is Paris, by the Seine."
