"""Agents and graphs: one record per turn, contexts over all tool calls, the last reply as the answer."""

from __future__ import annotations

from typing import Annotated, Any, TypedDict

import pytest
from langchain.agents import AgentState, create_agent
from langchain_core.documents import Document
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.tools import (
    InjectedToolCallId,
    StructuredTool,
    ToolException,
    create_retriever_tool,
    tool,
)
from langchain_parts import BERLIN, PARIS, QUESTION, SEINE, Receiver, Shelf, calls, lcel, says, texts
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import Command, interrupt

from steelyard_langchain import CallbackHandler

ASKED = "What is the capital of France, and its river?"
ANSWER = "Paris, and the Seine."
SHELF = Shelf(by_word={"river": [SEINE, PARIS], "capital": [PARIS, BERLIN]})


def searching(*, then: str = ANSWER) -> Any:
    return says(
        calls("search", 1, query="capital of France"), calls("search", 2, query="river in Paris"), then
    )


def retriever_tool(response_format: Any) -> Any:
    return create_retriever_tool(SHELF, "search", "Searches.", response_format=response_format)


def user(text: str = ASKED) -> Any:
    return {"messages": [("user", text)]}


def remembering(state: Any, *steps: Any) -> Any:
    """A graph of steps one after the other that remembers its threads."""
    builder = StateGraph(state)
    builder.add_sequence(steps)
    builder.add_edge(START, steps[0].__name__)
    return builder.compile(checkpointer=InMemorySaver())


@pytest.mark.parametrize("response_format", ["content", "content_and_artifact"])
def test_retriever_tools(receiver: Receiver, config: Any, response_format: Any) -> None:
    create_agent(searching(), [retriever_tool(response_format)]).invoke(user(), config)
    record = receiver.record
    assert (record.question, record.answer, record.status) == (ASKED, ANSWER, "ok")
    assert [(c.text, c.hop, c.query) for c in record.contexts] == [
        (PARIS.page_content, 0, "capital of France"),
        (BERLIN.page_content, 0, "capital of France"),
        (SEINE.page_content, 1, "river in Paris"),
    ]
    assert record.contexts_source == "in_prompt"
    assert record.standalone_question is None
    assert record.notes == ()


@tool(response_format="content_and_artifact")
def search_with_artifact(query: str) -> tuple[str, list[Document]]:
    """Searches."""
    found = [SEINE] if "river" in query else [PARIS]
    return "\n".join(document.page_content for document in found), found


@tool
def search(query: str) -> str:
    """Searches."""
    return SEINE.page_content if "river" in query else PARIS.page_content


def test_a_tool_with_documents_as_artifact(receiver: Receiver, config: Any) -> None:
    model = says(
        calls("search_with_artifact", 1, query="capital of France"),
        calls("search_with_artifact", 2, query="river"),
        ANSWER,
    )
    create_agent(model, [search_with_artifact]).invoke(user(), config)
    record = receiver.record
    assert [(c.text, c.hop, c.query, c.id) for c in record.contexts] == [
        (PARIS.page_content, 0, "capital of France", "d1"),
        (SEINE.page_content, 1, "river", "d4"),
    ]


def test_text_of_a_named_tool_is_context(receiver: Receiver) -> None:
    handler = CallbackHandler(receiver, tool_contexts=["search"])
    create_agent(searching(), [search]).invoke(user(), using(handler))
    assert texts(receiver.record.contexts) == [PARIS.page_content, SEINE.page_content]


@pytest.mark.parametrize("name", ["search", "get_policy", "execute_sql", "fetch_page", "zorble"])
def test_text_of_a_tool_counts_whatever_its_name(receiver: Receiver, config: Any, name: str) -> None:
    def returns(query: str) -> str:
        """Knows places."""
        return PARIS.page_content

    known = StructuredTool.from_function(returns, name=name)
    create_agent(says(calls(name, query="capital"), ANSWER), [known]).invoke(user(), config)
    assert texts(receiver.record.contexts) == [PARIS.page_content]
    assert (receiver.record.contexts_source, receiver.record.notes) == ("in_prompt", ())


def test_where_tools_are_named_no_other_counts_by_its_name(receiver: Receiver) -> None:
    handler = CallbackHandler(receiver, tool_contexts=["gazetteer"])
    create_agent(searching(), [search]).invoke(user(), using(handler))
    assert receiver.record.contexts == ()


@pytest.mark.parametrize("named", [(), ("search_index",)])
def test_an_error_of_a_searching_tool_is_not_a_passage(receiver: Receiver, named: Any) -> None:
    @tool
    def search_index(query: str) -> str:
        """Searches."""
        raise ToolException("The index cannot be reached at the moment.")

    search_index.handle_tool_error = True
    agent = create_agent(says(calls("search_index", query="capital"), ANSWER), [search_index])
    agent.invoke(user(), using(CallbackHandler(receiver, tool_contexts=named)))
    assert receiver.record.contexts == ()


def test_a_thread_is_cut_at_the_users_last_words(receiver: Receiver, config: Any) -> None:
    model = says(calls("search", query="capital"), "Paris.", "You are welcome.")
    agent = create_agent(model, [retriever_tool("content")], checkpointer=InMemorySaver())
    thread: Any = {**config, "configurable": {"thread_id": "t1"}}
    agent.invoke(user(QUESTION), thread)
    agent.invoke(user("Thanks"), thread)
    first, second = receiver.records
    assert (first.question, first.answer, len(first.contexts)) == (QUESTION, "Paris.", 2)
    assert (second.question, second.answer, second.contexts) == ("Thanks", "You are welcome.", ())
    assert first.metadata["thread_id"] == second.metadata["thread_id"] == "t1"
    assert set(first.metadata) == {"thread_id", "run_name"}
    assert first.tags == ()


async def test_streamed_agent(receiver: Receiver, config: Any) -> None:
    agent = create_agent(searching(), [retriever_tool("content")])

    async for _ in agent.astream(user(), config, stream_mode="messages"):
        pass
    assert (receiver.record.question, receiver.record.answer) == (ASKED, ANSWER)
    assert len(receiver.record.contexts) == 3


def approval_graph(model: Any) -> Any:
    """Retrieve, ask a person, answer."""

    def retrieve(state: MessagesState) -> dict[str, Any]:
        SHELF.invoke("capital")
        return {}

    def approve(state: MessagesState) -> dict[str, Any]:
        interrupt("May I?")
        return {}

    def answer(state: MessagesState) -> dict[str, Any]:
        return {"messages": [model.invoke([HumanMessage(f"{PARIS.page_content} {QUESTION}")])]}

    return remembering(MessagesState, retrieve, approve, answer)


def test_interrupt_and_resume(receiver: Receiver, config: Any, handler: CallbackHandler) -> None:
    graph = approval_graph(says("Paris."))
    thread: Any = {**config, "configurable": {"thread_id": "t2"}}
    graph.invoke(user(QUESTION), thread)
    graph.invoke(Command(resume="yes"), thread)
    stopped, resumed = receiver.records
    assert (stopped.status, stopped.question, stopped.answer) == ("interrupted", QUESTION, "")
    assert (resumed.status, resumed.question, resumed.answer) == ("ok", QUESTION, "Paris.")
    assert texts(resumed.contexts) == [PARIS.page_content]
    assert texts(resumed.retrieved) == [PARIS.page_content, BERLIN.page_content]


def test_what_a_person_says_to_a_graph_is_neither_its_question_nor_a_passage(
    receiver: Receiver, config: Any
) -> None:
    class Draft(TypedDict, total=False):
        report: dict[str, str]
        remark: str
        answer: str

    def review(state: Draft) -> Draft:
        return {"remark": interrupt("Is that so?")}

    def answer(state: Draft) -> Draft:
        rest = f"{SHELF.invoke('capital')[0].page_content}\nA person said: {state['remark']}"
        return {"answer": str(says("Paris.").invoke(f"{state['report']}\n{rest}").content)}

    graph = remembering(Draft, review, answer)
    thread: Any = {**config, "configurable": {"thread_id": "t3"}}
    graph.invoke({"report": {"kind": "crack", "at": "beam 4"}}, thread)
    graph.invoke(Command(resume="Say it in a single word, please."), thread)
    resumed = receiver.records[-1]
    assert (resumed.question, texts(resumed.contexts)) == ("", [PARIS.page_content])
    assert any(note.startswith("question: not found") for note in resumed.notes)


class Letter(TypedDict, total=False):
    mail: str
    draft: str
    sent: str


MAIL = "Dear museum, which city is the capital of France? Yours, Ada"
DRAFT = "Dear Ada, the capital of France is Paris. Kind regards from all of us."


@pytest.mark.parametrize("said", [DRAFT, DRAFT.replace("Kind", "Very kind")], ids=["agreed", "changed"])
def test_a_draft_that_a_person_sends_is_the_answer(receiver: Receiver, config: Any, said: str) -> None:
    def write(state: Letter) -> Letter:
        found = SHELF.invoke("capital")[0].page_content
        return {"draft": str(says(DRAFT).invoke(f"{found}\nReply to: {state['mail']}").content)}

    def review(state: Letter) -> Letter:
        return {"sent": interrupt(state["draft"])}

    graph = remembering(Letter, write, review)
    thread: Any = {**config, "configurable": {"thread_id": "t5"}}
    graph.invoke({"mail": MAIL}, thread)
    graph.invoke(Command(resume=said), thread)
    stopped, resumed = receiver.records
    assert (stopped.status, resumed.status) == ("interrupted", "ok")
    assert (resumed.question, resumed.answer) == (MAIL, said)
    assert texts(resumed.contexts) == [PARIS.page_content]


def test_two_interrupts(receiver: Receiver, config: Any) -> None:
    def retrieve(state: MessagesState) -> dict[str, Any]:
        SHELF.invoke("capital")
        return {}

    def ask(state: MessagesState) -> dict[str, Any]:
        interrupt("May I?")
        return {}

    def ask_again(state: MessagesState) -> dict[str, Any]:
        interrupt("Really?")
        return {}

    def answer(state: MessagesState) -> dict[str, Any]:
        return {"messages": [says("Paris.").invoke(PARIS.page_content)]}

    graph = remembering(MessagesState, retrieve, ask, ask_again, answer)
    thread: Any = {**config, "configurable": {"thread_id": "t4"}}
    graph.invoke(user(QUESTION), thread)
    graph.invoke(Command(resume=""), thread)
    graph.invoke(Command(resume="yes"), thread)
    assert [record.status for record in receiver.records] == ["interrupted", "interrupted", "ok"]
    last = receiver.records[-1]
    assert (last.question, last.answer) == (QUESTION, "Paris.")
    assert texts(last.contexts) == [PARIS.page_content]


class Library(TypedDict, total=False):
    question: str
    documents: list[Document]
    answer: str


def test_documents_that_a_thread_remembers_are_not_this_turns(receiver: Receiver, config: Any) -> None:
    def retrieve(state: Library) -> Library:
        return {"documents": [PARIS]} if "capital" in state["question"] else {}

    def generate(state: Library) -> Library:
        shown = state["documents"][0].page_content if "capital" in state["question"] else "(nothing)"
        return {"answer": str(says("A reply.").invoke(f"{shown} {state['question']}").content)}

    graph = remembering(Library, retrieve, generate)
    thread: Any = {**config, "configurable": {"thread_id": "t5"}}
    graph.invoke({"question": QUESTION}, thread)
    graph.invoke({"question": "Thanks!"}, thread)
    first, second = receiver.records
    assert (texts(first.contexts), first.question) == ([PARIS.page_content], QUESTION)
    assert (second.contexts, second.question) == ((), "Thanks!")


def test_a_breakpoint_before_the_tools_interrupts(receiver: Receiver, config: Any) -> None:
    agent = create_agent(
        says(calls("search", query="capital"), "Paris."),
        [retriever_tool("content")],
        checkpointer=InMemorySaver(),
        interrupt_before=["tools"],
    )
    thread: Any = {**config, "configurable": {"thread_id": "t3"}}
    agent.invoke(user(QUESTION), thread)
    agent.invoke(None, thread)
    stopped, resumed = receiver.records
    assert (stopped.status, stopped.answer) == ("interrupted", "")
    assert (resumed.status, resumed.question, resumed.answer) == ("ok", QUESTION, "Paris.")
    assert len(resumed.contexts) == 2


def using(handler: CallbackHandler) -> Any:
    return {"callbacks": [handler]}


def rag_tool() -> Any:
    @tool
    def ask_library(question: str) -> str:
        """Asks the library."""
        return str(lcel(says("The library says Paris.")).invoke(question))

    return ask_library


@pytest.mark.parametrize("nested", ["root_only", "all"])
def test_a_chain_used_as_a_tool(receiver: Receiver, nested: Any) -> None:
    handler = CallbackHandler(receiver, nested=nested)
    agent = create_agent(says(calls("ask_library", question="Which capital?"), "Paris."), [rag_tool()])
    agent.invoke(user(QUESTION), using(handler))
    root = next(record for record in receiver.records if record.question == QUESTION)
    assert root.answer == "Paris."
    assert len(root.contexts) == 3
    inner = [record for record in receiver.records if record is not root]
    if nested == "root_only":
        assert inner == []
        return
    (chain,) = inner
    assert (chain.question, chain.answer) == ("Which capital?", "The library says Paris.")
    assert len(chain.contexts) == 3
    assert chain.id.startswith(root.id)


def test_a_tool_that_answers_directly(receiver: Receiver, config: Any) -> None:
    @tool(return_direct=True)
    def final(query: str) -> str:
        """Answers."""
        return "Straight from the tool."

    create_agent(says(calls("final", query="x")), [final]).invoke(user(QUESTION), config)
    assert receiver.record.answer == "Straight from the tool."


def team(*, approves: str, by: str) -> Any:
    """A writer, and somebody with other instructions who has the last word on what was written."""

    def write(state: MessagesState) -> Any:
        found = "\n".join(one.page_content for one in Shelf().invoke("France"))
        reply = says("Paris is the capital.").invoke([("system", f"Write.\n{found}"), *state["messages"]])
        return {"messages": [AIMessage(str(reply.content), name="writer")]}

    def review(state: MessagesState) -> Any:
        return {"messages": [says(approves).invoke([("system", by), *state["messages"]])]}

    graph = StateGraph(MessagesState)
    graph.add_sequence([write, review])
    graph.add_edge(START, "write")
    return graph.compile()


@pytest.mark.parametrize(
    ("approves", "by", "answer"),
    [
        ("APPROVE", "Reply APPROVE if it is fine, else say what to mend.", "Paris is the capital."),
        ("fine", "Is it 'fine' or 'poor'?", "Paris is the capital."),
        ("Paris.", "Answer in one word, for example Rome.", "Paris."),
        ("Good - it names it.", "Say 'Good' or 'Not good', and why.", "Paris is the capital."),
        ("Answer: it is Paris.", "Begin with 'Answer'.", "Answer: it is Paris."),
    ],
)
def test_a_teams_last_word_on_an_answer_is_not_the_answer(
    receiver: Receiver, approves: str, by: str, answer: str
) -> None:
    asked = {"messages": [("user", QUESTION)]}
    team(approves=approves, by=by).invoke(asked, {"callbacks": [CallbackHandler(receiver)]})
    made = receiver.record
    assert made.answer == answer
    assert any("verdict" in note for note in made.notes) == (answer != approves)
    assert len(made.contexts) == 3


def test_a_tool_that_keeps_what_it_was_told_in_the_state_brings_nothing(
    receiver: Receiver, config: Any
) -> None:
    class Kept(AgentState[Any]):
        steps: list[str]

    @tool
    def plan(steps: list[str], tool_call_id: Annotated[str, InjectedToolCallId]) -> Command[Any]:
        """Keep a plan."""
        told = ToolMessage(f"Updated the list of steps to {steps}", tool_call_id=tool_call_id)
        return Command(update={"steps": steps, "messages": [told]})

    steps = ["look up the capital of France", "write one sentence about it"]
    model = says(calls("plan", 1, steps=steps), calls("search", 2, query="capital"), ANSWER)
    create_agent(model, [plan, search], state_schema=Kept).invoke(user(), config)
    assert texts(receiver.record.contexts) == [PARIS.page_content]
