from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest
from llama_index.core import Settings
from llama_index.core.base.response.schema import StreamingResponse
from llama_index.core.callbacks import CallbackManager
from llama_index.core.chat_engine import ContextChatEngine
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.response_synthesizers import get_response_synthesizer
from llamaindex_parts import ANSWER, BERLIN, FRANCE, PARIS, QUESTION, Fixed, Receiver, Scripted, texts

from steelyard_llamaindex import CallbackHandler, instrument, uninstrument


@pytest.fixture
def legacy(monkeypatch: pytest.MonkeyPatch) -> Receiver:
    uninstrument()
    receiver = Receiver()
    manager = CallbackManager([CallbackHandler(receiver)])
    monkeypatch.setattr(Settings, "_callback_manager", manager)
    return receiver


def engine(streaming: bool = False, **options: Any) -> RetrieverQueryEngine:
    manager = Settings.callback_manager
    retriever = Fixed(error=options.pop("error", None))
    retriever.callback_manager = manager
    model = Scripted(callback_manager=manager, **options)
    synthesizer = get_response_synthesizer(llm=model, streaming=streaming, callback_manager=manager)
    return RetrieverQueryEngine(retriever, synthesizer, callback_manager=manager)


@pytest.mark.parametrize("asynchronous", [False, True])
def test_query(legacy: Receiver, asynchronous: bool) -> None:
    asyncio.run(engine().aquery(QUESTION)) if asynchronous else engine().query(QUESTION)
    record = legacy.record
    assert (record.question, record.answer, record.status) == (QUESTION, ANSWER, "ok")
    assert texts(record) == [PARIS, FRANCE, BERLIN]
    assert record.contexts_source == "in_prompt"


def test_stream(legacy: Receiver) -> None:
    response = cast(StreamingResponse, engine(streaming=True).query(QUESTION))
    assert "".join(response.response_gen) == ANSWER
    assert (legacy.record.answer, legacy.record.contexts_source) == (ANSWER, "in_prompt")


def test_chat(legacy: Receiver) -> None:
    manager = Settings.callback_manager
    ContextChatEngine.from_defaults(retriever=Fixed(), llm=Scripted(callback_manager=manager)).chat(QUESTION)
    assert (legacy.record.question, legacy.record.answer) == (QUESTION, ANSWER)
    assert texts(legacy.record) == [PARIS, FRANCE, BERLIN]


@pytest.mark.parametrize("is_streamed", [False, True], ids=["whole", "streamed"])
def test_a_retriever_and_a_completion_without_an_engine(legacy: Receiver, is_streamed: bool) -> None:
    manager = Settings.callback_manager
    retriever, model = Fixed("d1"), Scripted(callback_manager=manager)
    retriever.callback_manager = manager
    prompt = f"{retriever.retrieve(QUESTION)[0].text}\n\nQuestion: {QUESTION}"
    assert list(model.stream_complete(prompt)) if is_streamed else model.complete(prompt)
    record = legacy.record
    assert (record.question, texts(record), record.answer) == (QUESTION, [PARIS], ANSWER)


@pytest.mark.parametrize("where", ["model", "retriever"])
def test_errors(legacy: Receiver, where: str) -> None:
    def say(prompt: str) -> str:
        raise ConnectionError("down")

    options: dict[str, Any] = {"say": say} if where == "model" else {"error": ConnectionError("down")}
    with pytest.raises(ConnectionError):
        engine(**options).query(QUESTION)
    assert (legacy.record.status, legacy.record.error) == ("error", "ConnectionError: down")


def test_quiet_while_the_process_is_instrumented(legacy: Receiver) -> None:
    instrument(other := Receiver())
    engine().query(QUESTION)
    uninstrument()
    assert legacy.drafts == []
    assert len(other.drafts) == 1
