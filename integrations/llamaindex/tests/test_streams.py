from __future__ import annotations

import asyncio
import gc
import types
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, cast

import pytest
from llama_index.core.base.llms.types import CompletionResponse
from llama_index.core.base.response.schema import AsyncStreamingResponse, StreamingResponse
from llama_index.core.workflow import StartEvent, StopEvent, Workflow, step
from llamaindex_parts import ANSWER, BERLIN, FRANCE, PARIS, QUESTION, Fixed, Receiver, Scripted, engine, texts

from steelyard_llamaindex import _attach

WORDS = ["The", " capital", " of", " France", " is", " Paris."]


def stream(**options: Any) -> StreamingResponse:
    return cast(StreamingResponse, engine(streaming=True, **options).query(QUESTION))


async def astream(**options: Any) -> AsyncStreamingResponse:
    return cast(AsyncStreamingResponse, await engine(streaming=True, **options).aquery(QUESTION))


@pytest.mark.parametrize("mode", ["compact", "refine", "tree_summarize", "simple_summarize"])
def test_stream(receiver: Receiver, mode: str) -> None:
    response = stream(mode=mode)
    assert isinstance(response.response_gen, types.GeneratorType)
    assert receiver.drafts == []
    assert list(response.response_gen) == WORDS
    record = receiver.record
    assert (record.question, record.answer, record.status) == (QUESTION, ANSWER, "ok")
    assert texts(record) == [PARIS, FRANCE, BERLIN]
    assert record.contexts_source == "in_prompt"


def test_a_stream_made_into_text(receiver: Receiver) -> None:
    response = stream()
    assert str(response) == ANSWER
    assert str(response) == ANSWER
    assert receiver.record.answer == ANSWER


def test_stream_left_early_is_truncated(receiver: Receiver) -> None:
    response = stream()
    for word in response.response_gen:
        if word == " of":
            break
    del response
    gc.collect()
    record = receiver.record
    assert (record.answer, record.status) == ("The capital of", "truncated")
    assert texts(record) == [PARIS, FRANCE, BERLIN]


def test_closing_the_stream_closes_the_model_s(receiver: Receiver) -> None:
    closed = []

    class Watched(Scripted):
        def stream_complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> Any:
            def pieces() -> Generator[CompletionResponse, None, None]:
                try:
                    for word in WORDS:
                        yield CompletionResponse(text=word, delta=word)
                finally:
                    closed.append(True)

            return pieces()

    generator = stream(llm=Watched()).response_gen
    assert next(generator) == "The"
    generator.close()
    assert closed == [True]
    assert receiver.record.status == "truncated"


def test_stream_nobody_reads_leaves_nothing(receiver: Receiver) -> None:
    response = stream()
    turns = _attach.active()
    assert turns is not None
    assert turns.left == [], "the turn is held by its stream alone"
    del response
    gc.collect()
    assert receiver.drafts == []


def test_stream_that_fails(receiver: Receiver) -> None:
    class Breaks(Scripted):
        def stream_complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> Any:
            yield CompletionResponse(text="The", delta="The")
            raise ConnectionError("gone")

    response = stream(llm=Breaks())
    with pytest.raises(ConnectionError, match="gone"):
        list(response.response_gen)
    record = receiver.record
    assert (record.status, record.error, record.answer) == ("error", "ConnectionError: gone", "The")


def test_each_piece_read_in_another_thread(receiver: Receiver) -> None:
    words = iter(stream().response_gen)
    with ThreadPoolExecutor(4) as pool:
        read = [pool.submit(next, words).result() for _ in WORDS]
        assert pool.submit(next, words, "end").result() == "end"
    assert read == WORDS
    assert receiver.record.contexts_source == "in_prompt"


@pytest.mark.parametrize("through", ["response_gen", "async_response_gen", "get_response"])
def test_asynchronous_stream(receiver: Receiver, through: str) -> None:
    async def main() -> str:
        response = await astream()
        if through == "get_response":
            return str((await response.get_response()).response)
        source = response.response_gen if through == "response_gen" else response.async_response_gen()
        return "".join([piece async for piece in source])

    assert asyncio.run(main()) == ANSWER
    record = receiver.record
    assert (record.answer, record.status, record.contexts_source) == (ANSWER, "ok", "in_prompt")
    assert texts(record) == [PARIS, FRANCE, BERLIN]


def test_asynchronous_stream_left_early(receiver: Receiver) -> None:
    async def main() -> None:
        response = await astream()
        source = response.response_gen
        async for _ in source:
            break
        await source.aclose()

    asyncio.run(main())
    assert (receiver.record.answer, receiver.record.status) == ("The", "truncated")


def test_asynchronous_stream_left_open_until_the_loop_ends(receiver: Receiver) -> None:
    async def main() -> None:
        async for _ in (await astream()).response_gen:
            return

    asyncio.run(main())
    assert receiver.record.status == "truncated"


def test_asynchronous_stream_cancelled(receiver: Receiver) -> None:
    async def main() -> None:
        response = await astream(llm=Scripted(slow=0.2))

        async def read() -> None:
            async for _ in response.response_gen:
                pass

        task = asyncio.create_task(read())
        await asyncio.sleep(0.3)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert (receiver.record.answer, receiver.record.status) == ("The", "cancelled")


def test_two_streams_read_in_turns(receiver: Receiver) -> None:
    first = stream(say=lambda prompt: "one two")
    second = stream(say=lambda prompt: "three four")
    pairs = list(zip(first.response_gen, second.response_gen, strict=True))
    assert pairs == [("one", "three"), (" two", " four")]
    assert sorted(record.answer for record in receiver.records) == ["one two", "three four"]
    assert {record.contexts_source for record in receiver.records} == {"in_prompt"}


def test_queries_while_reading_a_stream_are_turns_of_their_own(receiver: Receiver) -> None:
    for _ in stream(say=lambda prompt: "one two").response_gen:
        engine(say=lambda prompt: "inner").query("inner?")
    assert [record.answer for record in receiver.records] == ["inner", "inner", "one two"]


def alive() -> int:
    gc.collect()
    return sum(type(each).__name__ == "Turn" for each in gc.get_objects())


@pytest.mark.parametrize("count", [1000])
def test_a_thousand_streams_nobody_reads(receiver: Receiver, count: int) -> None:
    asked = engine("d1", streaming=True, mode="simple_summarize")
    turns = _attach.active()
    assert turns is not None
    before = alive()
    for _ in range(count):
        asked.query(QUESTION)
    assert turns.left == []
    assert receiver.drafts == []
    assert alive() == before


class Traced:
    """A proxy as tracers put around a stream: the methods of both kinds, the class of what it holds."""

    def __init__(self, held: Any) -> None:
        self.held = held

    def __getattribute__(self, name: str) -> Any:
        return type(self.held) if name == "__class__" else super().__getattribute__(name)

    def __iter__(self) -> Any:
        return self

    def __next__(self) -> Any:
        return next(self.held)

    def __aiter__(self) -> Any:
        return self

    def __anext__(self) -> Any:
        return anext(self.held)


@pytest.mark.parametrize("traced", [False, True])
@pytest.mark.parametrize("kind", ["generator", "asynchronous generator"])
def test_stream_of_a_model_in_a_workflows_response(receiver: Receiver, kind: str, traced: bool) -> None:
    """A response of the synchronous class may hold an asynchronous stream: the reader gets just that."""

    class Answers(Workflow):
        @step
        async def answer(self, event: StartEvent) -> StopEvent:
            found = Fixed("d1").retrieve(event.query)
            prompt = f"{found[0].text}\n\n{event.query}"
            if kind == "generator":
                pieces: Any = Scripted().stream_complete(prompt)
            else:
                pieces = await Scripted().astream_complete(prompt)
            return StopEvent(result=StreamingResponse(response_gen=Traced(pieces) if traced else pieces))

    async def main() -> str:
        response: Any = await Answers().run(query=QUESTION)
        if kind == "generator":
            return "".join(piece.delta for piece in response.response_gen)
        return "".join([piece.delta async for piece in response.response_gen])

    assert asyncio.run(main()) == ANSWER
    assert (receiver.record.answer, receiver.record.status) == (ANSWER, "ok")
    assert receiver.record.question == QUESTION
