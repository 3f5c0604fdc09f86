from __future__ import annotations

import asyncio
from typing import Any

import pytest
from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.base.response.schema import StreamingResponse
from llama_index.core.response_synthesizers import get_response_synthesizer
from llama_index.core.schema import NodeWithScore
from llama_index.core.tools import FunctionTool
from llama_index.core.workflow import Context, Event, StartEvent, StopEvent, Workflow, step
from llamaindex_parts import (
    ANSWER,
    BERLIN,
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


async def test_side_by_side(receiver: Receiver) -> None:
    await asyncio.gather(*(Plain().run(query=f"Question {number}?") for number in range(8)))
    await engine().aquery("afterwards?")
    expected = [*(f"Question {number}?" for number in range(8)), "afterwards?"]
    assert sorted(record.question for record in receiver.records) == sorted(expected)


class Raw(Workflow):
    """Returns what the model streams as it is, alone or among other values, or writes it to its events."""

    def __init__(self, way: str) -> None:
        super().__init__()
        self.way = way

    @step
    async def run_all(self, ctx: Context, ev: StartEvent) -> StopEvent:
        nodes = await Fixed().aretrieve(ev.query)
        asked = f"{nodes[0].text}\n{ev.query}"
        pieces = Scripted().stream_complete(asked) if self.way == "sync" else None
        pieces = pieces or await Scripted().astream_complete(asked)
        if self.way == "events":
            async for piece in pieces:
                ctx.write_event_to_stream(Word(text=piece.delta or ""))
            await Scripted(say=lambda _: "Paris, France.").acomplete(f"List the places.\n{nodes[0].text}")
            return StopEvent(result="")
        return StopEvent(result={"said": pieces, "sources": 1} if self.way == "among others" else pieces)


class Word(Event):
    text: str


@pytest.mark.parametrize("way", ["among others", "sync", "async"])
def test_a_turn_ends_with_the_model_s_own_stream(receiver: Receiver, way: str) -> None:
    async def main() -> list[str]:
        returned: Any = await Raw(way).run(query=QUESTION)
        pieces = returned["said"] if way == "among others" else returned
        assert receiver.drafts == []
        if way == "sync":
            return [piece.delta for piece in pieces]
        return [piece.delta async for piece in pieces]

    assert "".join(asyncio.run(main())) == ANSWER
    record = receiver.record
    assert (record.question, record.answer, record.status) == (QUESTION, ANSWER, "ok")
    assert (texts(record), record.contexts_source) == ([PARIS], "in_prompt")


async def test_an_answer_that_leaves_as_events_is_the_last_reply_that_was_streamed(
    receiver: Receiver,
) -> None:
    await Raw("events").run(query=QUESTION)
    record = receiver.record
    assert (record.answer, texts(record)) == (ANSWER, [PARIS])
    assert any("the last reply of a model is taken" in note for note in record.notes)


class Decision(BaseModel):
    """What to do."""

    action: str
    topics: list[str]


class Planned(Workflow):
    """Has the model fill in a form, as agents that plan do, and answers."""

    @step
    async def run_all(self, ev: StartEvent) -> StopEvent:
        nodes = await Fixed().aretrieve(ev.query)
        form = FunctionTool.from_defaults(
            lambda **values: Decision(**values), name="Decision", fn_schema=Decision
        )
        decision = await form.acall(action="answer the question", topics=["the capital of France"])
        asked = f"Plan: {decision.content}\n{nodes[0].text}\n{ev.query}"
        return StopEvent(result=str(await Scripted().acomplete(asked)))


async def test_a_form_that_a_model_filled_in_is_no_passage(receiver: Receiver) -> None:
    await Planned().run(query=QUESTION)
    assert texts(receiver.record) == [PARIS]


class Refused(Workflow):
    """Tells the model what to say if it cannot answer, and it says just that."""

    @step
    async def run_all(self, ev: StartEvent) -> StopEvent:
        nodes = await Fixed().aretrieve(ev.query)
        rule = f'If you do not know, say exactly: "{ANSWER}"'
        reply = await Scripted().acomplete(f"{rule}\n{nodes[0].text}\n{ev.query}")
        return StopEvent(result={"answer": str(reply)})


async def test_what_a_prompt_tells_the_model_to_say_is_no_passage(receiver: Receiver) -> None:
    await Refused().run(query=QUESTION)
    assert texts(receiver.record) == [PARIS]


class MadeAnew(Workflow):
    """Is made for each message, and looks up only what it has not answered before."""

    def __init__(self, message: str, answered: dict[str, str]) -> None:
        super().__init__()
        self.message, self.answered = message, answered

    @step
    async def answer(self, ev: StartEvent) -> StopEvent:
        if self.message not in self.answered:
            nodes = await Fixed().aretrieve(self.message)
            reply = str(await Scripted().acomplete(f"{nodes[0].text}\n{self.message}"))
            self.answered[self.message] = reply
        return StopEvent(result=self.answered[self.message])


def test_a_workflow_that_is_started_with_nothing_was_made_with_its_question(receiver: Receiver) -> None:
    answered: dict[str, str] = {}
    run(MadeAnew(QUESTION, answered))
    record = receiver.record
    assert (record.question, record.answer, texts(record)) == (QUESTION, ANSWER, [PARIS])


def test_a_workflow_that_looked_something_up_before_is_a_turn_where_it_did_not(receiver: Receiver) -> None:
    run(MadeAnew("hello", {"hello": "Hello!"}))
    assert not receiver.records
    answered: dict[str, str] = {}
    run(MadeAnew(QUESTION, answered))
    run(MadeAnew(QUESTION, answered))
    assert [(one.question, one.answer, len(one.contexts)) for one in receiver.records] == [
        (QUESTION, ANSWER, 1),
        (QUESTION, ANSWER, 0),
    ]


def test_a_few_words_that_code_cut_out_of_a_reply_are_the_answer(receiver: Receiver) -> None:
    class Cut(Workflow):
        @step
        async def answer(self, ev: StartEvent) -> StopEvent:
            (found,) = await Fixed("d1").aretrieve(ev.query)
            reply = await Scripted(
                say=lambda _: "Answer 2: in Paris (page 3), says the second page."
            ).acomplete(f"{found.text}\n{ev.query}")
            return StopEvent(result=str(reply)[10:18])

    assert run(Cut(), query=QUESTION) == "in Paris"
    assert (receiver.record.answer, texts(receiver.record)) == ("in Paris", [PARIS])


def test_neither_what_an_agent_within_is_asked_nor_the_parts_that_an_event_brings_are_texts_of_the_turn(
    receiver: Receiver,
) -> None:
    def look(city: str) -> str:
        """Looks a city up."""
        return PARIS

    found = "It is the city on the Seine, as pages say."
    agent = FunctionAgent(
        tools=[FunctionTool.from_defaults(look)],
        llm=Caller(script=[("look", {"city": "the capital"}), found]),
        system_prompt="You find out what others write reports of, and say it briefly.",
        streaming=False,
    )

    class Reports(Workflow):
        @step
        async def answer(self, ev: StartEvent) -> StopEvent:
            task = "Find out all that somebody who writes a report of this should know: capital of France"
            notes = await ev.parts["agent"].run(user_msg=task)
            return StopEvent(result=str(await Scripted().acomplete(f"Report of {ev.subject}\n{notes}")))

    assert run(Reports(), subject="the capital of France", parts={"agent": agent}) == ANSWER
    record = receiver.record
    assert (record.question, texts(record), record.notes) == ("the capital of France", [PARIS], ())
