"""Questions, passages and answers in states of the application's own: under any name, in forms, in parts."""

from __future__ import annotations

import json
from typing import Any, TypedDict, cast

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate, PromptTemplate
from langchain_core.runnables import RunnableLambda, RunnablePassthrough
from langchain_core.tools import tool
from langchain_parts import BERLIN, FRANCE, PARIS, QUESTION, Receiver, Shelf, calls, joined, says, texts
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph
from pydantic import BaseModel

from steelyard.recording.building._steps import parts_of
from steelyard_langchain import CallbackHandler

SHOWN = ChatPromptTemplate.from_template("Context: {context}\nAsked: {asked}")


class Fields(TypedDict, total=False):
    """Whatever nodes put in."""

    asked: Any
    mail: list[Any]
    sender: str
    user_text_query: str
    tracks: str
    body: str
    annex: str
    question: str
    log: str
    context: str
    documents: list[Any]
    sources: list[str]
    decision: Any
    rows: list[Any]
    answer: str
    report: str


def graph(*nodes: Any) -> Any:
    """A graph of these nodes, one after the other."""
    built: Any = StateGraph(Fields).add_sequence(list(nodes))
    return built.add_edge(START, nodes[0].__name__).compile()


def looks_up(state: Fields) -> Fields:
    return {"context": joined(Shelf(documents=[PARIS]).invoke("France"))}


def writes(reply: Any) -> Any:
    def write(state: Fields) -> Fields:
        return {"report": (SHOWN | says(reply)).invoke({"context": state["context"], "asked": state}).text}

    return write


def test_a_conversation_of_any_name_asks_last(receiver: Receiver, config: Any) -> None:
    made = graph(looks_up, writes("It is Paris."))
    made.invoke({"mail": [HumanMessage(QUESTION)], "sender": "mia@example.com"}, config)
    assert (receiver.record.question, texts(receiver.record.contexts)) == (QUESTION, [PARIS.page_content])


def test_the_only_text_whose_name_ends_as_a_question_s_does_is_one(receiver: Receiver, config: Any) -> None:
    made = graph(looks_up, writes("It is Paris."))
    made.invoke({"user_text_query": QUESTION, "tracks": "No track is like this one."}, config)
    assert receiver.record.question == QUESTION


def test_one_of_several_texts_of_a_request_is_no_question(receiver: Receiver, config: Any) -> None:
    text = {"body": PARIS.page_content, "annex": FRANCE.page_content}
    chain = PromptTemplate.from_template("Sum up.\nBody: {body}\nAnnex: {annex}") | says("Two facts.")
    chain.invoke(text, config)
    assert receiver.record.question == ""


def test_the_first_line_of_a_conversation_is_no_passage(receiver: Receiver, config: Any) -> None:
    def logs(state: Fields) -> Fields:
        return {"log": f"user: {state['question']}"}

    def write(state: Fields) -> Fields:
        prompt = f"{state['context']}\n\nChat:\n{state['log']}\n\nQuestion: {state['question']}"
        return {"answer": says("It is Paris.").invoke(prompt).text}

    graph(looks_up, logs, write).invoke({"question": QUESTION}, config)
    assert texts(receiver.record.contexts) == [PARIS.page_content]


def test_a_few_words_beside_documents_tell_where_they_are_from(receiver: Receiver, config: Any) -> None:
    def find(state: Fields) -> Fields:
        return {"documents": Shelf(documents=[PARIS]).invoke("France"), "sources": ["KB: atlas.pdf (Pg:4)"]}

    def write(state: Fields) -> Fields:
        prompt = f"{state['sources'][0]}:\n{state['documents'][0].page_content}\n\n{state['question']}"
        return {"answer": says("It is Paris.").invoke(prompt).text}

    graph(find, write).invoke({"question": QUESTION}, config)
    assert texts(receiver.record.contexts) == [PARIS.page_content]


class Way(BaseModel):
    """Where to go."""

    path: str
    why: str


def test_the_form_that_was_filled_in_last_is_the_answer(receiver: Receiver, config: Any) -> None:
    way = {"path": "/france", "why": "It tells of France."}

    def choose(state: Fields) -> Fields:
        says("the capital of that country").invoke(f"Rewrite: {state['question']}")
        chain = SHOWN | says(json.dumps(way)) | (lambda said: Way.model_validate_json(said.text))
        return {"decision": chain.invoke({"context": state["context"], "asked": state["question"]})}

    graph(looks_up, choose).invoke({"question": QUESTION}, config)
    assert (json.loads(receiver.record.answer), texts(receiver.record.contexts)) == (
        way,
        [PARIS.page_content],
    )


def test_a_field_of_the_answer_that_the_prompt_shows_is_no_passage(receiver: Receiver, config: Any) -> None:
    refusal = "I have no information about that."

    def write(state: Fields) -> Fields:
        said = says(json.dumps({"path": "none", "why": refusal}))
        prompt = f'If you cannot, say "{refusal}"\n\n{state["context"]}\n\nQuestion: {state["question"]}'
        made: Any = RunnableLambda(lambda _: prompt) | said | (lambda one: Way.model_validate_json(one.text))
        return {"decision": made.invoke({})}

    graph(looks_up, write).invoke({"question": QUESTION}, config)
    assert texts(receiver.record.contexts) == [PARIS.page_content]


def test_a_call_of_a_form_answers_if_no_thread_can_go_on(receiver: Receiver, config: Any) -> None:
    replies = [calls("Response", output="It is Paris.", id=7)]
    built: Any = StateGraph(MessagesState)
    built.add_node("agent", lambda state: {"messages": [says(*replies).invoke(state["messages"])]})
    built.add_edge(START, "agent").add_edge("agent", END)
    built.compile().invoke({"messages": [HumanMessage(QUESTION)]}, config)
    assert (receiver.record.status, receiver.record.answer) == ("ok", "It is Paris.")


def test_what_replies_end_with_may_be_put_together_by_code(receiver: Receiver, config: Any) -> None:
    thought = "The first source is a map, and maps tell of capitals, so it is the better one of both.\n"

    def write(state: Fields) -> Fields:
        reply = (SHOWN | says(f"{thought}Final advice: Go to Paris by train.")).invoke(
            {"context": state["context"], "asked": state["question"]}
        )
        return {"report": f"# Board\n\n## Travel\n{reply.text.split('Final advice:')[1].strip()}"}

    graph(looks_up, write).invoke({"question": QUESTION}, config)
    assert (receiver.record.contexts_source, texts(receiver.record.contexts)) == (
        "in_prompt",
        [PARIS.page_content],
    )


def test_a_graph_may_be_answered_by_a_model_that_nobody_saw(receiver: Receiver, config: Any) -> None:
    def find(state: Fields) -> Fields:
        return {"rows": [PARIS.page_content, BERLIN.page_content]}

    def write(state: Fields) -> Fields:
        return {"answer": "It is Paris."}

    graph(find, write).invoke({"question": QUESTION}, config)
    record = receiver.record
    assert (record.question, record.answer) == (QUESTION, "It is Paris.")
    assert texts(record.contexts) == [PARIS.page_content, BERLIN.page_content]
    assert (record.contexts_source, record.notes) == ("retrieved", ("no model run was seen in this turn",))


def test_a_question_ends_where_an_earlier_prompt_shows_its_end(
    receiver: Receiver, handler: CallbackHandler
) -> None:
    config: Any = {"callbacks": [handler]}
    asked = "compare the capitals of both"
    says('{"kind": "NEW"}').invoke(f'Classify this question: "{asked}"', config)
    found = joined(Shelf(documents=[PARIS]).invoke("France", config))
    manner = "Please compare them with care, and answer the question in simple and polite words."
    says("They differ.").invoke(f"Here they are:\n{found}\n\nUser's question: {asked}\n{manner}", config)
    record = next(one for one in receiver.records if one.answer == "They differ.")
    assert (record.question, texts(record.contexts)) == (asked, [PARIS.page_content])


def test_a_list_of_one_text_is_that_text() -> None:
    text = (
        '{"name": "Paris", "text": "It is a capital.", "more": ["It has twenty districts, and the Seine."]}'
    )
    assert [one.text for one in parts_of([text])] == [text]


def test_a_search_for_rows_alone_is_no_turn(receiver: Receiver, config: Any) -> None:
    rows: Any = RunnableLambda(lambda found: [{"title": "A page", "text": one.page_content} for one in found])
    graded: Any = RunnableLambda(
        lambda row: row if says("yes").invoke(str(row)).text == "yes" else None
    ).map()
    search: Any = {"documents": Shelf(documents=[PARIS]) | rows | graded, "query": RunnablePassthrough()}
    (RunnablePassthrough() | search).invoke(QUESTION, config)
    assert not receiver.records


def test_a_list_of_queries_as_json_is_no_turn(receiver: Receiver, config: Any) -> None:
    prompt = ChatPromptTemplate.from_template("Generate 2 search queries as a JSON array.\nQuestion: {q}")
    queries = json.dumps(["Tell me of the capital of France, please.", "What is the seat of its government?"])
    (prompt | says(queries)).invoke({"q": QUESTION}, config)
    assert not receiver.records


def test_a_passage_with_the_names_of_a_form_that_repeats_it_is_one(receiver: Receiver, config: Any) -> None:
    row = '{"name": "Paris", "text": "It is a capital.", "more": ["It has twenty districts, and the Seine."]}'

    def find(state: Fields) -> Fields:
        return {"rows": [{"title": "Page 1", "text": row}, {"title": "Page 2", "text": BERLIN.page_content}]}

    def write(state: Fields) -> Fields:
        prompt = "\n\n".join(one["text"] for one in state["rows"]) + f"\n\n{state['question']}"
        return {"answer": says(row).invoke(prompt).text}

    graph(find, write).invoke({"question": QUESTION}, config)
    assert texts(receiver.record.contexts) == [row, BERLIN.page_content]


@pytest.mark.parametrize("helper", ["A short title", "when does it open on a Sunday"])
def test_code_answers_in_the_place_of_a_model_whatever_models_said_on_the_way(
    receiver: Receiver, config: Any, helper: str
) -> None:
    asking = ChatPromptTemplate.from_template("Rewrite it as a search query: {question}") | says(helper)
    chain = RunnablePassthrough.assign(
        extra=asking | StrOutputParser(), answer=RunnableLambda(lambda _: "Nobody here knows.")
    )
    chain.invoke({"question": QUESTION}, config)
    assert (receiver.record.question, receiver.record.answer) == (QUESTION, "Nobody here knows.")
    assert receiver.record.contexts == ()


class Dated(MessagesState, total=False):
    """A conversation, and what was made of what a tool brought."""

    events: list[dict[str, str]]


class Dates(BaseModel):
    """A form."""

    events: list[dict[str, str]]


def test_what_a_form_was_filled_in_from_is_no_answer(receiver: Receiver, config: Any) -> None:
    events = [{"year": "1811", "what": "The tower was built."}, {"year": "1868", "what": "The lens came."}]

    @tool
    def search(query: str) -> str:
        """Searches."""
        return "The tower was built in 1811 and has had its lens since 1868."

    def ask(state: Dated) -> Any:
        return {"messages": [says(calls("search", query="tower")).invoke(state["messages"])]}

    def look(state: Dated) -> Any:
        found = search.invoke(cast(AIMessage, state["messages"][-1]).tool_calls[0]["args"])
        return {"messages": [ToolMessage(found, tool_call_id="call-1", name="search")]}

    def date(state: Dated) -> Any:
        form = says(calls("Dates", events=events)).with_structured_output(Dates)
        return {"events": cast(Dates, form.invoke(f"Date this:\n{state['messages'][-1].content}")).events}

    def check(state: Dated) -> None:
        says('{"score": 0.9, "improvements": ""}').invoke(f"Rate the dates: {state['events']}")

    builder: Any = StateGraph(Dated).add_sequence([ask, look, date, check])
    builder.add_edge(START, "ask").compile().invoke({"messages": [("user", "When was it built?")]}, config)
    assert json.loads(receiver.record.answer) == {"events": events}


def test_a_tool_that_answers_as_it_did_before(receiver: Receiver, config: Any) -> None:
    @tool(return_direct=True)
    def hours(day: str) -> str:
        """Tells when it opens."""
        return "It opens at ten on every day but Monday."

    made: Any = create_agent(says(calls("hours", day="Friday")), [hours], checkpointer=InMemorySaver())
    thread: Any = {**config, "configurable": {"thread_id": "1"}}
    for _ in range(2):
        made.invoke({"messages": [("user", "When does it open?")]}, thread)
    assert [one.answer for one in receiver.records] == ["It opens at ten on every day but Monday."] * 2


class Reported(MessagesState, total=False):
    """A conversation, with a report beside it."""

    brief: str
    final_report: str


@pytest.mark.parametrize("lead", ["Here is the report: ", ""])
def test_what_code_says_in_the_users_place_may_be_what_a_model_said(
    receiver: Receiver, config: Any, lead: str
) -> None:
    def begin(state: Reported) -> Any:
        return {
            "messages": [AIMessage("I will look into it.")],
            "brief": says("Which capital?").invoke("x").text,
        }

    def report(state: Reported) -> Any:
        found = joined(Shelf(documents=[PARIS]).invoke("France"))
        text = says("The capital of France is Paris.").invoke(f"Report on {state['brief']}\n{found}").text
        return {"final_report": text, "messages": [lead + text] if lead else [HumanMessage("That is all.")]}

    builder: Any = StateGraph(Reported).add_sequence([begin, report])
    builder.add_edge(START, "begin").compile().invoke({"messages": [("user", QUESTION)]}, config)
    assert receiver.record.answer == f"{lead}The capital of France is Paris."
    assert texts(receiver.record.contexts) == [PARIS.page_content]
