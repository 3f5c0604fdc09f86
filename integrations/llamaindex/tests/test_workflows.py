from __future__ import annotations

import asyncio
from typing import Any

import pytest
from llama_index.core.base.response.schema import StreamingResponse
from llama_index.core.response_synthesizers import get_response_synthesizer
from llama_index.core.schema import NodeWithScore
from llama_index.core.workflow import Event, StartEvent, StopEvent, Workflow, step
from llamaindex_parts import ANSWER, BERLIN, FRANCE, PARIS, QUESTION, Fixed, Receiver, Scripted, engine, texts
from pydantic import BaseModel


class City(BaseModel):
    name: str


class Found(Event):
    nodes: list[NodeWithScore]
    query: str


class Plain(Workflow):
    """Retrieves and completes; returns a text."""

    @step
    async def retrieve(self, ev: StartEvent) -> Found:
        return Found(nodes=await Fixed().aretrieve(ev.query), query=ev.query)

    @step
    async def answer(self, ev: Found) -> StopEvent:
        best = ev.nodes[0].text
        return StopEvent(result=str(await Scripted().acomplete(f"{best}\n{ev.query}")))


class Reranked(Workflow):
    """Keeps the last document and answers with a response object, as the documentation does."""

    def __init__(self, streaming: bool = False) -> None:
        super().__init__()
        self.streaming = streaming

    @step
    async def retrieve(self, ev: StartEvent) -> Found:
        return Found(nodes=await Fixed().aretrieve(ev.query), query=ev.query)

    @step
    async def answer(self, ev: Found) -> StopEvent:
        synthesizer = get_response_synthesizer(llm=Scripted(), streaming=self.streaming)
        if self.streaming:
            return StopEvent(result=synthesizer.synthesize(ev.query, ev.nodes[-1:]))
        return StopEvent(result=await synthesizer.asynthesize(ev.query, ev.nodes[-1:]))


class Ended(StopEvent):
    answer: str
    confidence: float


class Typed(Workflow):
    """Ends with an event of its own."""

    @step
    async def answer(self, ev: StartEvent) -> Ended:
        response = await engine("d1").aquery(ev.topic)
        return Ended(answer=str(response), confidence=0.5)


def run(workflow: Workflow, **given: Any) -> Any:
    async def main() -> Any:
        return await workflow.run(**given)

    return asyncio.run(main())


def test_retrieve_and_complete(receiver: Receiver) -> None:
    assert run(Plain(), query=QUESTION) == ANSWER
    record = receiver.record
    assert (record.question, record.answer, record.status) == (QUESTION, ANSWER, "ok")
    assert texts(record) == [PARIS]
    assert [context.text for context in record.retrieved] == [PARIS, FRANCE, BERLIN]


def test_response_as_result(receiver: Receiver) -> None:
    run(Reranked(), query=QUESTION)
    record = receiver.record
    assert (record.answer, texts(record), len(record.retrieved)) == (ANSWER, [BERLIN], 3)


def test_streamed_response_as_result(receiver: Receiver) -> None:
    response = run(Reranked(streaming=True), query=QUESTION)
    assert isinstance(response, StreamingResponse)
    assert receiver.drafts == []
    assert "".join(response.response_gen) == ANSWER
    assert (receiver.record.answer, texts(receiver.record)) == (ANSWER, [BERLIN])


def test_own_stop_event(receiver: Receiver) -> None:
    run(Typed(), topic=QUESTION)
    record = receiver.record
    assert (record.question, record.answer, texts(record)) == (QUESTION, ANSWER, [PARIS])


@pytest.mark.parametrize(
    ("result", "answer"),
    [
        ({"answer": ANSWER, "took": 3}, ANSWER),
        ({"city": "Paris"}, '{"city": "Paris"}'),
        (City(name="Paris"), '{"name":"Paris"}'),
        ([1, 2], ""),
        (None, ""),
    ],
)
def test_results_of_all_shapes(receiver: Receiver, result: Any, answer: str) -> None:
    class Shaped(Workflow):
        @step
        async def only(self, ev: StartEvent) -> StopEvent:
            await Fixed("d1").aretrieve(ev.query)
            return StopEvent(result=result)

    run(Shaped(), query=QUESTION)
    assert (receiver.record.answer, texts(receiver.record)) == (answer, [PARIS])


def test_workflow_inside_a_workflow_is_the_same_turn(receiver: Receiver) -> None:
    class Outer(Workflow):
        @step
        async def only(self, ev: StartEvent) -> StopEvent:
            return StopEvent(result=f"So: {await Plain().run(query='inner query')}")

    run(Outer(), query=QUESTION)
    record = receiver.record
    assert (record.question, record.answer) == (QUESTION, f"So: {ANSWER}")
    assert record.contexts[0].query == "inner query"


def test_workflow_that_retrieves_nothing_is_no_turn(receiver: Receiver) -> None:
    class Other(Workflow):
        @step
        async def only(self, ev: StartEvent) -> StopEvent:
            return StopEvent(result="done")

    assert run(Other(), query=QUESTION) == "done"
    assert len(receiver.drafts) == 1
    assert receiver.records == []


def test_step_that_fails(receiver: Receiver) -> None:
    class Fails(Workflow):
        @step
        async def only(self, ev: StartEvent) -> StopEvent:
            await Fixed().aretrieve(ev.query)
            raise LookupError("nothing there")

    with pytest.raises(Exception, match="nothing there"):
        run(Fails(), query=QUESTION)
    record = receiver.record
    assert record.status == "error"
    assert "nothing there" in (record.error or "")
    assert texts(record) == [PARIS, FRANCE, BERLIN]


def test_side_by_side(receiver: Receiver) -> None:
    async def main() -> None:
        await asyncio.gather(*(Plain().run(query=f"Question {number}?") for number in range(8)))
        await engine().aquery("afterwards?")

    asyncio.run(main())
    expected = [*(f"Question {number}?" for number in range(8)), "afterwards?"]
    assert sorted(record.question for record in receiver.records) == sorted(expected)
