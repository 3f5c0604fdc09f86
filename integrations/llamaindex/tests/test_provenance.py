"""What the answer rests on is told by evidence: which call made it, and what stood in that call's prompt."""

from __future__ import annotations

import asyncio
import json
import re
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode
from llama_index.core.tools import FunctionTool
from llama_index.core.workflow import Event, StartEvent, StopEvent, Workflow, step
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

from steelyard.recording.provenance import sentence
from steelyard_llamaindex import instrument, record

LISTED = "# Rivers\n\nParis lies on the Seine [Atlas 1.4]. It rises at times.\n\n- quays close\n- boats wait"


class Graded(Workflow):
    """Asks a model about every document, and answers from one of them, written as JSON."""

    @step
    async def run_all(self, ev: StartEvent) -> StopEvent:
        nodes = await Fixed().aretrieve(ev.query)
        for each in nodes:
            await Scripted(say=lambda prompt: "yes").acomplete(f"Relevant, yes or no? {each.text}")
        shown = json.dumps([{"content": nodes[1].text}])
        return StopEvent(result=str(await Scripted().acomplete(f"{shown}\n{ev.query}")))


class Wordless(Workflow):
    """Shows the user something that no model said."""

    @step
    async def run_all(self, ev: StartEvent) -> StopEvent:
        nodes = await Fixed("d1").aretrieve(ev.query)
        await Scripted(say=lambda prompt: "Something else entirely was said.").acomplete(nodes[0].text)
        return StopEvent(result=ANSWER)


class Given(BaseRetriever):
    """Finds the nodes that it was given."""

    def __init__(self, nodes: list[NodeWithScore]) -> None:
        super().__init__()
        self.nodes = nodes

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return self.nodes


class Found(Event):
    nodes: list[NodeWithScore]
    query: str


class Rewrites(Workflow):
    """Puts nodes into its prompt in a form of its own."""

    @step
    async def look(self, ev: StartEvent) -> Found:
        nodes = [NodeWithScore(node=TextNode(text=LISTED, metadata={"book": "Cities", "page": "14"}))]
        return Found(nodes=await Given(nodes).aretrieve(ev.query), query=ev.query)

    @step
    async def answer(self, ev: Found) -> StopEvent:
        shown = " ".join(re.sub(r"[#\[\]\n]+", " ", each.text) for each in ev.nodes)
        said = await Scripted().acomplete(f"[1]. book: Cities, page: 14\nExcerpt: {shown}\n\n{ev.query}")
        return StopEvent(result=str(said))


async def test_a_node_is_one_passage_in_whatever_form_a_prompt_shows_it(receiver: Receiver) -> None:
    await Rewrites().run(query=QUESTION)
    assert texts(receiver.record) == [LISTED]
    assert receiver.record.retrieved == ()


async def test_prompts_of_graders_do_not_count(receiver: Receiver) -> None:
    await Graded().run(query=QUESTION)
    turn = receiver.record
    assert (texts(turn), turn.contexts_source) == ([FRANCE], "in_prompt")
    assert [(one.text, one.seen) for one in turn.retrieved] == [(PARIS, 0.0), (FRANCE, 1.0), (BERLIN, 0.0)]
    assert turn.notes == ()


async def test_an_answer_that_no_model_gave_is_noted(receiver: Receiver) -> None:
    await Wordless().run(query=QUESTION)
    turn = receiver.record
    assert (texts(turn), turn.contexts_source) == ([PARIS], "retrieved")
    assert turn.notes == (sentence("answer_call_unknown"), sentence("no_prompt_seen"))


def test_the_prompt_of_a_stream_that_was_left_counts(receiver: Receiver) -> None:
    response: Any = engine("d1", streaming=True).query(QUESTION)
    pieces = response.response_gen
    next(pieces)
    pieces.close()
    turn = receiver.record
    assert (turn.status, texts(turn), turn.contexts_source) == ("truncated", [PARIS], "in_prompt")


async def test_the_reply_of_an_agent_that_streams_is_seen(receiver: Receiver) -> None:
    def web(query: str) -> list[str]:
        """Searches the web."""
        return [PARIS, FRANCE]

    llm = Caller(script=[("web", {"query": "capital"}), ANSWER])

    await FunctionAgent(tools=[FunctionTool.from_defaults(web)], llm=llm, streaming=True).run(QUESTION)
    turn = receiver.record
    assert (texts(turn), turn.contexts_source) == ([PARIS, FRANCE], "in_prompt")
    assert turn.notes == ()


async def test_the_text_of_a_tool_counts_whatever_its_name(receiver: Receiver) -> None:
    def web(query: str) -> str:
        """Searches the web."""
        return PARIS

    llm = Caller(script=[("web", {"query": "capital"}), ANSWER])

    await FunctionAgent(tools=[FunctionTool.from_defaults(web)], llm=llm).run(QUESTION)
    turn = receiver.record
    assert (texts(turn), turn.contexts_source, turn.notes) == ([PARIS], "in_prompt", ())


def test_retriever_and_model_called_one_after_the_other(receiver: Receiver) -> None:
    nodes = Fixed().retrieve(QUESTION)
    Scripted(say=lambda prompt: "yes").complete(f"Is this relevant? Say yes or no. {nodes[0].text}")
    Scripted().complete(f"{nodes[0].text}\n\nQuestion: {QUESTION}")
    turn = receiver.record
    assert (turn.question, turn.answer, texts(turn)) == (QUESTION, ANSWER, [PARIS])
    assert turn.notes[0].startswith("no run holds the retrieval and this call together")


def test_the_question_of_separate_calls_is_the_one_in_the_prompt(receiver: Receiver) -> None:
    nodes = Fixed().retrieve("capital france city")
    Scripted().complete(f"{nodes[0].text}\n\nQuestion: {QUESTION}")
    nodes = Fixed().retrieve("capital germany city")
    Scripted().complete(f"Sum this up: {nodes[2].text}")
    first, second = receiver.records
    assert (first.question, texts(first)) == (QUESTION, [PARIS])
    assert (second.question, texts(second)) == ("capital germany city", [BERLIN])
    assert sentence("question_rewritten_only") in second.notes


def test_a_retrieval_belongs_to_the_answer_that_used_it(receiver: Receiver) -> None:
    nodes = Fixed().retrieve(QUESTION)
    Scripted().complete(f"{nodes[0].text}\n\nQuestion: {QUESTION}")
    spoken = f"User: {QUESTION}\nAI: {ANSWER}\nUser: And of Germany?"
    Scripted(say=lambda prompt: "What is the capital of Germany?").complete(f"{spoken}\nEn une phrase :")
    assert [turn.answer for turn in receiver.records] == [ANSWER]


async def test_calls_of_other_tasks_and_threads_are_not_put_together(receiver: Receiver) -> None:
    async def retrieve() -> None:
        await Fixed("d1").aretrieve(QUESTION)

    await asyncio.create_task(retrieve())
    await asyncio.create_task(Scripted().acomplete(f"{PARIS}\n\nQuestion: {QUESTION}"))
    with ThreadPoolExecutor() as pool:
        pool.submit(Fixed("d1").retrieve, QUESTION).result()
    Scripted().complete(f"{PARIS}\n\nQuestion: {QUESTION}")
    assert receiver.records == []


def test_what_another_recorder_saw_is_not_put_together(receiver: Receiver) -> None:
    Fixed("d1").retrieve(QUESTION)
    instrument(after := Receiver())
    Scripted().complete(f"{PARIS}\n\nQuestion: {QUESTION}")
    assert (receiver.records, after.records) == ([], [])


def test_a_model_that_fails_after_a_retrieval_is_a_turn_that_failed(receiver: Receiver) -> None:
    def fail(prompt: str) -> str:
        raise ConnectionError("down")

    nodes = Fixed("d1").retrieve(QUESTION)
    with pytest.raises(ConnectionError):
        Scripted(say=fail).complete(f"{nodes[0].text}\n\nQuestion: {QUESTION}")
    turn = receiver.record
    assert (turn.question, turn.status, turn.error) == (QUESTION, "error", "ConnectionError: down")


def test_contexts_of_a_block_tell_what_the_prompt_held(receiver: Receiver) -> None:
    with record(question=QUESTION) as turn:
        turn.contexts = [FRANCE, PARIS]
        turn.answer = str(Scripted().complete(f"<doc>{PARIS}</doc><doc>{FRANCE}</doc> {QUESTION}"))
    made = receiver.record
    assert [(one.text, one.seen) for one in made.contexts] == [(FRANCE, 1.0), (PARIS, 1.0)]
    assert (made.contexts_source, made.notes) == ("told", ())


def test_a_model_that_is_shown_passages_nobody_retrieved_gives_a_guess(receiver: Receiver) -> None:
    Scripted().complete(f"Use this context.\n\nContext:\n{PARIS}\n\nQuestion: {QUESTION}\nAnswer:")
    Scripted().complete(f"Tell me a joke about {QUESTION}")
    told = receiver.record
    assert (told.question, texts(told), told.evidence) == (QUESTION, [PARIS], "guessed")


class Brought(Event):
    """What a search outside of the framework brought."""

    passages: list[str]
    asked: str


class Replies(Workflow):
    """Searches by itself, asks a model, and returns its reply under a name of its own."""

    @step
    async def search(self, ev: StartEvent) -> Brought:
        return Brought(passages=[PARIS], asked=ev.question)

    @step
    async def reply(self, ev: Brought) -> StopEvent:
        said = await Scripted().acomplete(f"{ev.passages[0]}\n\n{ev.asked}")
        return StopEvent(result={"reply": str(said), "sources": ["atlas"]})


async def test_the_reply_among_what_a_workflow_returned_is_the_answer(receiver: Receiver) -> None:
    await Replies().run(question=QUESTION)
    assert (receiver.record.answer, texts(receiver.record)) == (ANSWER, [PARIS])
