from __future__ import annotations

import asyncio
from typing import Any

import pytest
from llama_index.core.chat_engine import (
    CondensePlusContextChatEngine,
    CondenseQuestionChatEngine,
    ContextChatEngine,
    SimpleChatEngine,
)
from llama_index.core.memory import ChatMemoryBuffer
from llamaindex_parts import ANSWER, BERLIN, FRANCE, PARIS, QUESTION, Fixed, Receiver, Scripted, engine, texts

from waiting import until

FORMS = ["chat", "achat", "stream_chat", "astream_chat"]
STANDALONE = "What is the capital city of France?"


def say(prompt: str) -> str:
    rewriting = "rephrase the follow up" in prompt or "rewrite the message" in prompt
    return STANDALONE if rewriting else ANSWER


def chat_engine(kind: str) -> Any:
    model, memory = Scripted(say=say), ChatMemoryBuffer.from_defaults(token_limit=4000)
    match kind:
        case "context":
            return ContextChatEngine.from_defaults(retriever=Fixed(), llm=model, memory=memory)
        case "condense_plus_context":
            return CondensePlusContextChatEngine.from_defaults(retriever=Fixed(), llm=model, memory=memory)
        case "condense_question":
            return CondenseQuestionChatEngine.from_defaults(
                query_engine=engine(llm=model), llm=model, memory=memory
            )
        case _:
            return SimpleChatEngine.from_defaults(llm=model, memory=memory)


def ask(chat: Any, form: str, message: str) -> str:
    if form == "chat":
        return str(chat.chat(message))
    if form == "stream_chat":
        return "".join(chat.stream_chat(message).response_gen)

    async def main() -> str:
        if form == "achat":
            return str(await chat.achat(message))
        response = await chat.astream_chat(message)
        return "".join([piece async for piece in response.async_response_gen()])

    return asyncio.run(main())


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kind", ["context", "condense_plus_context", "condense_question"])
def test_chat_engines_that_retrieve(receiver: Receiver, kind: str, form: str) -> None:
    chat = chat_engine(kind)
    if kind == "condense_question" and form == "astream_chat":
        chat._query_engine = engine(llm=Scripted(say=say), streaming=True)
    assert ask(chat, form, QUESTION) == ANSWER
    assert ask(chat, form, "And its capital?") == ANSWER
    first, second = receiver.records
    for record in (first, second):
        assert (record.answer, record.status) == (ANSWER, "ok")
        assert texts(record) == [PARIS, FRANCE, BERLIN]
        assert record.contexts_source == "in_prompt"
        assert record.retrieved == ()
    assert (first.question, second.question) == (QUESTION, "And its capital?")
    assert first.standalone_question is None
    assert second.standalone_question == (None if kind == "context" else STANDALONE)
    assert {context.query for context in second.contexts} == {None if kind == "context" else STANDALONE}


@pytest.mark.parametrize("form", FORMS)
def test_chat_engine_that_does_not_retrieve(receiver: Receiver, form: str) -> None:
    assert ask(chat_engine("simple"), form, QUESTION) == ANSWER
    record = receiver.record
    assert (record.question, record.answer, record.contexts) == (QUESTION, ANSWER, ())


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
@pytest.mark.parametrize("form", FORMS)
def test_a_model_that_fails(receiver: Receiver, form: str) -> None:
    def fail(prompt: str) -> str:
        raise RuntimeError("429")

    chat = ContextChatEngine.from_defaults(retriever=Fixed(), llm=Scripted(say=fail))
    with pytest.raises(RuntimeError, match="429"):
        ask(chat, form, QUESTION)
    record = receiver.record
    assert (record.question, record.status, record.error) == (QUESTION, "error", "RuntimeError: 429")
    assert texts(record) == [PARIS, FRANCE, BERLIN]


def test_streamed_chat_is_whole_even_if_nobody_reads_it(receiver: Receiver) -> None:
    chat_engine("context").stream_chat(QUESTION)
    until(lambda: receiver.drafts)  # the thread that writes the answer is done
    assert (receiver.record.answer, receiver.record.status) == (ANSWER, "ok")


def test_streamed_chat_left_early_is_whole(receiver: Receiver) -> None:
    response = chat_engine("context").stream_chat(QUESTION)
    for _ in response.response_gen:
        break
    until(lambda: receiver.drafts)  # the thread that writes the answer is done
    assert receiver.record.answer == ANSWER


async def test_asynchronous_chat_cancelled_while_it_is_written(receiver: Receiver) -> None:
    model = Scripted(slow=0.2)
    chat = ContextChatEngine.from_defaults(retriever=Fixed(), llm=model)
    await chat.astream_chat(QUESTION)
    await asyncio.sleep(0.3)
    (writer,) = asyncio.all_tasks() - {asyncio.current_task()}
    writer.cancel()
    await asyncio.sleep(0.05)
    assert (receiver.record.status, receiver.record.answer) == ("cancelled", "The")
    assert texts(receiver.record) == [PARIS, FRANCE, BERLIN]
