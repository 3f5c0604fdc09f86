"""What LangGraph's stores hold, read in a node, a tool or a middleware: evidence as all from outside."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from langchain_core.messages import HumanMessage, SystemMessage
from langchain_parts import Receiver, says, texts
from langgraph.config import get_store
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.store.memory import InMemoryStore

from steelyard_langchain import CallbackHandler

MEMORY = "She prefers trains to planes and is allergic to peanuts."
USER = ("memories", "u1")


@pytest.mark.parametrize("way", ["search", "get", "asearch", "aget"])
def test_a_memory_that_the_prompt_shows_is_known(receiver: Receiver, way: str) -> None:
    async def answer(state: MessagesState) -> dict[str, Any]:
        store = get_store()
        found = getattr(store, way)(*((USER, "m1") if way.endswith("get") else (USER,)))
        found = await found if way.startswith("a") else found
        memories = [found] if way.endswith("get") else found
        told = SystemMessage("You know her.\n" + "\n".join(one.value["data"] for one in memories))
        return {"messages": [await says("Take a banana.").ainvoke([told, *state["messages"]])]}

    store = InMemoryStore()
    store.put(USER, "m1", {"data": MEMORY})
    graph: Any = StateGraph(MessagesState).add_node("answer", answer).add_edge(START, "answer")
    asked = {"messages": [HumanMessage("A snack?")]}
    handler = CallbackHandler(receiver)
    asyncio.run(graph.compile(store=store).ainvoke(asked, {"callbacks": [handler]}))
    record = receiver.record
    assert (texts(record.contexts), record.evidence, record.notes) == ([MEMORY], "known", ())


def test_a_store_that_holds_nothing_tells_nothing(receiver: Receiver) -> None:
    store = InMemoryStore()
    CallbackHandler(receiver)
    assert (store.search(USER), store.get(USER, "m1")) == ([], None)
    assert receiver.drafts == []
