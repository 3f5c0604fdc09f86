"""The conversation of a turn, by what each framework says of it."""

from __future__ import annotations

from typing import Any

import pytest

from fakes.receiver import Receiver
from steelyard.recording import session_of


@pytest.mark.parametrize(
    ("about", "session"),
    [
        ({"thread_id": "t1"}, "t1"),
        ({"session_id": 7, "thread_id": "t1"}, "7"),
        ({"conversation_id": " "}, None),
        ({"thread_id": True}, None),
        ({}, None),
        (None, None),
    ],
)
def test_a_session_is_what_is_named_so(about: Any, session: str | None) -> None:
    assert session_of(about) == session


def test_a_thread_of_langchain_is_the_session() -> None:
    from langchain_core.language_models import FakeListChatModel
    from langchain_core.prompts import ChatPromptTemplate

    from steelyard_langchain import CallbackHandler

    receiver = Receiver()
    chain = ChatPromptTemplate.from_template("{question}") | FakeListChatModel(responses=["Seven hills."])
    for thread in ("a", "b"):
        config: Any = {"callbacks": [CallbackHandler(receiver)], "metadata": {"thread_id": thread}}
        chain.invoke({"question": "How many hills has Rome?"}, config)
    assert [record.session for record in receiver.records] == ["a", "b"]


def test_the_memory_of_a_chat_engine_is_the_session() -> None:
    from llama_index.core.chat_engine import SimpleChatEngine
    from llama_index.core.llms import ChatMessage, MockLLM
    from llama_index.core.memory import Memory

    from steelyard_llamaindex import instrument, uninstrument

    asked = "How many hills has Rome?"
    instrument(receiver := Receiver())
    try:
        memory = Memory.from_defaults(session_id="kitchen")
        engine = SimpleChatEngine(llm=MockLLM(), memory=memory, prefix_messages=[])
        engine.chat(asked)
        # Whoever hands over the conversation keeps it, and the engine's memory is made for this turn.
        engine.chat(asked, chat_history=[ChatMessage("Hello")])
        engine.chat(asked, chat_history=[])
    finally:
        uninstrument()
    assert [record.session for record in receiver.records] == ["kitchen", None, None]
