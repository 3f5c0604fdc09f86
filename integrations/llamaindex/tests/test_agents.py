from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from llama_index.core.agent.workflow import FunctionAgent, ReActAgent
from llama_index.core.base.llms.types import ChatMessage, CompletionResponse, MessageRole
from llama_index.core.memory import ChatMemoryBuffer, Memory
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.schema import NodeWithScore, QueryBundle
from llama_index.core.tools import FunctionTool, QueryEngineTool, RetrieverTool
from llama_index.core.workflow import Context, HumanResponseEvent, InputRequiredEvent
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

from steelyard.recording.provenance import sentence
from steelyard_llamaindex import instrument

RATES = "ENG1 was approved of by 75 in a hundred students, MED2 by 91."


def query_tool(name: str, *keys: str, **options: Any) -> QueryEngineTool:
    return QueryEngineTool.from_defaults(engine(*keys, **options), name=name, description=name)


def retriever_tool(name: str, *keys: str, **options: Any) -> RetrieverTool:
    return RetrieverTool.from_defaults(Fixed(*keys), name=name, description=name, **options)


def ask(agent: Any, **options: Any) -> str:
    async def main() -> str:
        return str(await agent.run(**({"user_msg": QUESTION} | options)))

    return asyncio.run(main())


def test_query_engine_tool_over_two_hops(receiver: Receiver) -> None:
    script: list[Any] = [("docs", {"input": "capital of France"}), ("docs", {"input": "country"}), ANSWER]
    agent = FunctionAgent(tools=[query_tool("docs", "d1", "d2")], llm=Caller(script=script))
    assert ask(agent) == ANSWER
    record = receiver.record
    assert (record.question, record.answer, record.status) == (QUESTION, ANSWER, "ok")
    assert texts(record) == [PARIS, FRANCE]
    assert [(context.hop, context.query) for context in record.contexts] == [
        (0, "capital of France"),
        (0, "capital of France"),
    ]


def test_the_answer_in_a_form_is_what_the_application_shows(receiver: Receiver) -> None:
    form = json.dumps({"thoughts": "One node says it.", "answer": ANSWER})
    agent = FunctionAgent(
        tools=[query_tool("docs", "d1")], llm=Caller(script=[("docs", {"input": "capital"}), form])
    )
    assert ask(agent) == form
    assert (receiver.record.answer, texts(receiver.record)) == (ANSWER, [PARIS])


def test_different_tools_are_different_hops(receiver: Receiver) -> None:
    script: list[Any] = [("cities", {"input": "capital"}), ("countries", {"input": "country"}), ANSWER]
    tools: list[Any] = [query_tool("cities", "d1"), retriever_tool("countries", "d2", "d3")]
    ask(FunctionAgent(tools=tools, llm=Caller(script=script)))
    record = receiver.record
    assert texts(record) == [PARIS, FRANCE, BERLIN]
    assert [context.hop for context in record.contexts] == [0, 1, 1]
    assert record.contexts_source == "in_prompt"


def test_retriever_tool_with_a_reranker(receiver: Receiver) -> None:
    class First(BaseNodePostprocessor):
        def _postprocess_nodes(
            self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
        ) -> list[NodeWithScore]:
            return nodes[:1]

    tool = retriever_tool("docs", "d1", "d2", node_postprocessors=[First()])
    ask(FunctionAgent(tools=[tool], llm=Caller(script=[("docs", {"input": "capital"}), ANSWER])))
    record = receiver.record
    assert texts(record) == [PARIS]
    assert [context.text for context in record.retrieved] == [PARIS, FRANCE]


def test_agent_that_looks_nothing_up(receiver: Receiver) -> None:
    memory = Memory.from_defaults(session_id="kitchen")
    agent = FunctionAgent(tools=[query_tool("docs")], llm=Caller(script=[ANSWER]))
    assert ask(agent, memory=memory) == ANSWER
    assert receiver.record.session == "kitchen"
    record = receiver.record
    assert (record.question, record.answer, record.contexts) == (QUESTION, ANSWER, ())


def test_an_agents_own_instructions_are_no_passages(receiver: Receiver) -> None:
    script: list[Any] = [f"Thought: I can answer now.\nAnswer: {ANSWER}"]
    agent = ReActAgent(tools=[query_tool("docs")], llm=Caller(script=script), streaming=False)
    assert ask(agent) == ANSWER
    assert (receiver.record.contexts, receiver.record.contexts_source) == ((), "retrieved")


def test_a_call_that_a_model_wrote_in_codes_is_no_passage(receiver: Receiver) -> None:
    async def calculate_rates_tool(table_name: str, group_by: str) -> str:
        """Rates by group."""
        return RATES

    arguments = '{"table_name": "FACT_COURSES", "group_by": "CODE_COURSE"}'
    called = f"Thought: I need it.\nAction: calculate_rates_tool\nAction Input: {arguments}"
    llm = Caller(script=[called, f"Thought: I can answer now.\nAnswer: {ANSWER}"])
    ask(
        ReActAgent(
            tools=[FunctionTool.from_defaults(async_fn=calculate_rates_tool)], llm=llm, streaming=False
        )
    )
    assert (texts(receiver.record), receiver.record.notes) == ([RATES], ())


@pytest.mark.parametrize("is_message", [False, True])
def test_a_model_that_is_given_tools_is_an_agent_of_one_call(receiver: Receiver, is_message: bool) -> None:
    """The answer is what the tool returned; the question is the user's, not what the model asked the tool."""
    llm = Caller(script=[("docs", {"input": "its capital"}), ANSWER])
    asked: Any = ChatMessage(role=MessageRole.USER, content=QUESTION) if is_message else QUESTION
    assert str(llm.predict_and_call([query_tool("docs", "d1")], user_msg=asked)) == ANSWER
    record = receiver.record
    assert (record.question, record.answer, texts(record), record.notes) == (QUESTION, ANSWER, [PARIS], ())


def test_a_model_that_is_given_a_form_as_a_tool_is_asked_nothing(receiver: Receiver) -> None:
    async def grade(relevant: str) -> str:
        """Whether a text is relevant."""
        return relevant

    asked = [ChatMessage(role=MessageRole.USER, content=f"Is this relevant, yes or no? {PARIS}")]
    llm = Caller(script=[("grade", {"relevant": "yes"})])
    asyncio.run(llm.apredict_and_call([FunctionTool.from_defaults(async_fn=grade)], chat_history=asked))
    assert receiver.records == []


class Part(BaseModel):
    """A block of what a tool server returned."""

    type: str = "text"
    text: str
    annotations: None = None


class Served(BaseModel):
    """What a client of a tool server returns."""

    meta: None = None
    content: list[Part]
    isError: bool = False


@pytest.mark.parametrize("failed", [False, True])
def test_what_a_tool_server_returned_is_read_out_of_its_form(receiver: Receiver, failed: bool) -> None:
    async def search(query: str) -> Served:
        """Search."""
        return Served(content=[Part(text=RATES)], isError=failed)

    llm = Caller(script=[("search", {"query": "rates"}), ANSWER])
    ask(FunctionAgent(tools=[FunctionTool.from_defaults(async_fn=search)], llm=llm))
    assert texts(receiver.record) == ([] if failed else [RATES])


def test_what_code_puts_around_every_message_is_not_the_users(receiver: Receiver) -> None:
    reminder = "Remember to use the tables that you have access to."
    for at, said in enumerate(("Who signs?", "And where?", "Since when?")):
        agent = FunctionAgent(tools=[query_tool("docs")], llm=Caller(script=[ANSWER]))
        asyncio.run(_run(agent, f"Now: {at}\n{reminder}\n\nQuestion: {said}"))
    assert [record.question for record in receiver.records[1:]] == ["And where?", "Since when?"]
    assert all(any(n.startswith("question") for n in record.notes) for record in receiver.records)


async def _run(agent: Any, message: str) -> None:
    await agent.run(user_msg=message)


def test_what_a_tool_without_a_result_returned_is_no_passage(receiver: Receiver) -> None:
    def send(to: str) -> None:
        """Sends what was found."""

    calls = [("search", {"input": QUESTION}), ("send", {"to": "the office of the mayor"})]
    llm = Caller(script=[*calls, ANSWER])
    ask(FunctionAgent(tools=[retriever_tool("search", "d1"), FunctionTool.from_defaults(send)], llm=llm))
    turn = receiver.record
    assert ([one.text for one in (*turn.contexts, *turn.retrieved)], turn.notes) == ([PARIS], ())


def test_agent_that_says_nothing(receiver: Receiver) -> None:
    ask(FunctionAgent(tools=[query_tool("docs")], llm=Caller(script=[""])))
    assert receiver.record.answer == ""


@pytest.mark.parametrize("form", ["message", "history"])
def test_questions_as_messages(receiver: Receiver, form: str) -> None:
    message = ChatMessage(role=MessageRole.USER, content=QUESTION)
    agent = FunctionAgent(tools=[query_tool("docs")], llm=Caller(script=[ANSWER]))
    earlier = [ChatMessage(role=MessageRole.USER, content="hello"), message]
    given: Any = {"user_msg": message} if form == "message" else {"user_msg": None, "chat_history": earlier}
    ask(agent, **given)
    assert receiver.record.question == QUESTION


def test_only_the_text_of_named_tools_counts_if_any_is_named() -> None:
    def web(query: str) -> str:
        """Search the web."""
        return PARIS

    receiver = Receiver()
    instrument(receiver, tool_contexts=["other"])
    tool = FunctionTool.from_defaults(web)
    agent = FunctionAgent(tools=[tool], llm=Caller(script=[("web", {"query": "capital"}), ANSWER]))
    ask(agent)
    instrument(plain := Receiver())
    ask(agent)
    assert texts(receiver.record) == []
    assert texts(plain.record) == [PARIS]


def test_tool_that_fails_is_noted(receiver: Receiver) -> None:
    tool = RetrieverTool.from_defaults(Fixed(error=ConnectionError("no store")), name="docs", description="d")
    ask(FunctionAgent(tools=[tool], llm=Caller(script=[("docs", {"input": "capital"}), ANSWER])))
    record = receiver.record
    assert (record.status, record.answer, record.contexts) == ("ok", ANSWER, ())
    assert record.notes == (
        sentence("no_contexts"),
        "a step failed and the run went on: ConnectionError: no store",
    )


def test_model_that_fails(receiver: Receiver) -> None:
    class Fails(Caller):
        def replies(self, messages: Any) -> Any:
            raise ConnectionError("429")

    agent = FunctionAgent(tools=[query_tool("docs")], llm=Fails(script=[]))
    with pytest.raises(Exception, match="429"):
        ask(agent)
    record = receiver.record
    assert (record.status, record.question) == ("error", QUESTION)
    assert "429" in (record.error or "")


async def test_two_turns_of_one_conversation(receiver: Receiver) -> None:
    agent = FunctionAgent(
        tools=[query_tool("docs", "d1")],
        llm=Caller(script=[("docs", {"input": "capital"}), ANSWER, "You are welcome."]),
    )
    memory = ChatMemoryBuffer.from_defaults(token_limit=4000)
    await agent.run(user_msg=QUESTION, memory=memory)
    await agent.run(user_msg="Thank you!", memory=memory)
    first, second = receiver.records
    assert (texts(first), first.answer) == ([PARIS], ANSWER)
    assert (second.question, texts(second), second.answer) == ("Thank you!", [], "You are welcome.")


async def test_agents_side_by_side(receiver: Receiver) -> None:
    agent = FunctionAgent(
        tools=[query_tool("docs", "d1")], llm=Caller(script=[("docs", {"input": "capital"}), ANSWER])
    )
    await asyncio.gather(*(agent.run(user_msg=f"Question {number}?") for number in range(10)))
    records = receiver.records
    assert sorted(record.question for record in records) == [f"Question {number}?" for number in range(10)]
    assert all(texts(record) == [PARIS] and record.answer == ANSWER for record in records)


def test_cancelled_run(receiver: Receiver) -> None:
    class Endless(Scripted):
        async def acomplete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponse:
            asked.set()
            await asyncio.Event().wait()
            raise AssertionError

    async def main() -> None:
        tool = QueryEngineTool.from_defaults(engine("d1", llm=Endless()), name="docs", description="docs")
        agent = FunctionAgent(tools=[tool], llm=Caller(script=[("docs", {"input": "capital"}), ANSWER]))
        handler = agent.run(user_msg=QUESTION)
        await asyncio.wait_for(asked.wait(), 100)
        await handler.cancel_run()
        with pytest.raises(BaseException):  # noqa: B017 - its class moved between versions
            await handler

    asked = asyncio.Event()
    asyncio.run(main())
    assert (receiver.record.status, receiver.record.question) == ("cancelled", QUESTION)
    assert texts(receiver.record) == [PARIS]


async def test_a_tool_that_waits_for_a_person_did_not_fail(receiver: Receiver) -> None:
    async def approve(ctx: Context) -> str:
        """Asks whoever runs it."""
        told = await ctx.wait_for_event(HumanResponseEvent, waiter_event=InputRequiredEvent(**asks))
        return f"{told.response}, the clerk approves of it."

    approve.__annotations__["ctx"] = Context  # the framework does not read it as a text

    said: dict[str, Any] = {"response": "yes"}
    asks: dict[str, Any] = {"prefix": "May I?"}

    handler = FunctionAgent(tools=[approve], llm=Caller(script=[("approve", {}), ANSWER])).run(QUESTION)
    async for event in handler.stream_events():
        if isinstance(event, InputRequiredEvent):
            handler.ctx.send_event(HumanResponseEvent(**said))
    await handler
    assert (receiver.record.answer, receiver.record.notes) == (ANSWER, ())
