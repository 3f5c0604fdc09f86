"""What the recorder takes for a turn, for its answer and for its passages, and what a turn keeps alive."""

from __future__ import annotations

import json
from collections import OrderedDict
from typing import Any, TypedDict

import pytest
from langchain_core.documents import Document
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnableLambda
from langchain_parts import BERLIN, FRANCE, PARIS, QUESTION, Receiver, Shelf, calls, joined, lcel, says, texts
from langgraph.config import get_stream_writer
from langgraph.graph import END, START, StateGraph
from pydantic import BaseModel

from steelyard_langchain import attach, detach

GRADER = ChatPromptTemplate.from_template(
    "You are a grader. Is it relevant, yes or no?\n{document}\n{question}"
)


def size_of(receiver: Receiver) -> int:
    """What the last draft says that it keeps."""
    return int(receiver.drafts[-1].size)


class Own(list[Any]):
    """A list of an application's own, as ORMs return them."""


@pytest.mark.parametrize("holds", [list, tuple, set, Own, lambda rows: OrderedDict(enumerate(rows))])
def test_what_is_kept_weighs_whatever_holds_it(receiver: Receiver, config: Any, holds: Any) -> None:
    chain: Any = ChatPromptTemplate.from_template("{question}") | says("It is Paris.")
    rows = holds(f"{number:0500}" for number in range(100))
    chain.invoke({"question": QUESTION, "others": rows}, config)
    assert size_of(receiver) >= 100 * 500


def test_every_run_of_a_turn_has_a_weight(receiver: Receiver, config: Any) -> None:
    chain: Any = ChatPromptTemplate.from_template("{question}") | says("It is Paris.")
    sizes = []
    for _ in range(2):
        chain.invoke({"question": QUESTION}, config)
        sizes.append(size_of(receiver))
        for _ in range(50):
            chain = chain | (lambda message: message)
    assert sizes[1] >= sizes[0] + 50 * 500
    chain.invoke({"question": QUESTION, "others": [f"{number:0100}" for number in range(300)]}, config)
    assert size_of(receiver) >= sizes[1] + 300 * 100, "short texts are many"


def test_a_grader_on_its_own_is_not_a_turn_but_a_short_answer_is(receiver: Receiver) -> None:
    attach(receiver)
    try:
        (GRADER | says("yes")).invoke({"document": PARIS.page_content, "question": QUESTION})
        (ChatPromptTemplate.from_template("{question}") | says("Yes.")).invoke({"question": "Is Rome old?"})
    finally:
        detach()
    assert receiver.record.question == "Is Rome old?"


@pytest.mark.parametrize("known", [{}, {"documents": []}])
def test_a_number_that_code_makes_of_a_form_is_no_turn(receiver: Receiver, config: Any, known: Any) -> None:
    judge = says('{"tone": 2, "why": "It is kind.", "whole": 3}')
    chain: Any = ChatPromptTemplate.from_template("How good?\n{question}\n{reply}") | judge
    (chain | (lambda said: json.loads(said.content)["tone"] / 3)).invoke(
        {"question": QUESTION, "reply": "Paris.", **known}, config
    )
    assert receiver.records == []


@pytest.mark.parametrize("given", ["question", "messages"])
def test_a_graph_that_returns_an_answer_is_a_turn_whatever_its_prompt_speaks_of(
    receiver: Receiver, config: Any, given: str
) -> None:
    told = "Rewrite the search query if a search fails, and grade what you find. Route what is no question."
    reply = AIMessage("I don't know")
    asked = {"question": QUESTION} if given == "question" else {"messages": [HumanMessage(QUESTION)]}

    def answer(state: Any) -> dict[str, Any]:
        says(reply.text).invoke(f"{told}\n\n{QUESTION}")
        return {"answer": reply.text} if given == "question" else {"messages": [*asked["messages"], reply]}

    RunnableLambda(answer).invoke(asked, config)
    assert (receiver.record.question, receiver.record.answer) == (QUESTION, reply.text)


class Part(BaseModel):
    """A step of a plan."""

    text: str
    tool: str


@pytest.mark.parametrize("printed", [str, lambda parts: json.dumps([part.model_dump() for part in parts])])
def test_a_plan_that_code_prints_into_the_prompt_is_no_passage(
    receiver: Receiver, config: Any, printed: Any
) -> None:
    parts = [{"text": "Find the town", "tool": "dir"}, {"text": "Say its name", "tool": "echo"}]

    def answer(asked: str) -> str:
        plan = json.loads(says(json.dumps(parts)).invoke(f"Plan how to answer.\n{asked}").text)
        planner: Any = RunnableLambda(lambda _: {"steps": [Part(**part) for part in plan]})
        steps = planner.invoke(asked)["steps"]
        found = joined(Shelf().invoke(asked))
        return says("It is Paris.").invoke(f"Steps: {printed(steps)}\n\n{found}\n\n{asked}").text

    RunnableLambda(answer).invoke(QUESTION, config)
    assert texts(receiver.record.contexts) == [one.page_content for one in Shelf().documents]


def test_a_chain_that_writes_a_query_and_returns_documents_is_not_a_turn(
    receiver: Receiver, config: Any
) -> None:
    imagined = ChatPromptTemplate.from_template("Write a passage on {question}") | says("Rome is old.")
    (imagined | (lambda message: str(message.content)) | Shelf()).invoke({"question": QUESTION}, config)
    assert (len(receiver.drafts), receiver.records) == (1, [])


def test_a_summary_under_a_telling_name_is_not_a_passage(receiver: Receiver, config: Any) -> None:
    draft = "The capital is on the Seine and has been so for a thousand years."
    summarize = ChatPromptTemplate.from_template("Sum up: {text}") | says(draft)

    def answer(given: dict[str, str]) -> dict[str, Any]:
        found = Shelf(documents=[PARIS, BERLIN]).invoke(given["question"])
        return {"context": summarize.invoke({"text": joined(found[:1])}).content, **given}

    last = ChatPromptTemplate.from_template("{context}\n{question}") | says("Paris.")
    (RunnableLambda(answer) | last).invoke({"question": QUESTION}, config)
    assert texts(receiver.record.contexts) == [PARIS.page_content]


@pytest.mark.parametrize("found_by", ["Of one city.", QUESTION])
def test_a_passage_that_is_kept_in_metadata_is_what_the_prompt_shows(
    receiver: Receiver, config: Any, found_by: str
) -> None:
    """A sentence is searched by, and the window around it is shown; or a question, and its answer."""
    whole = "Paris is where the government of France has sat for most of a thousand years."
    about = {"whole": whole, "title": "A short history of its government, its towns and its rivers, vol. 2"}
    document = Document(found_by, id="w1", metadata=about)
    prompt: Any = RunnableLambda(lambda found: f"Use this:\n{found[0].metadata['whole']}\n\n{QUESTION}")
    (Shelf(documents=[document]) | prompt | says("It is Paris.")).invoke(QUESTION, config)
    (one,) = receiver.record.contexts
    assert (one.id, one.text, receiver.record.evidence) == ("w1", whole, "known")


def test_an_answer_that_leaves_by_a_stream_is_the_last_reply_and_is_said_to_be(
    receiver: Receiver, config: Any
) -> None:
    class Asked(TypedDict):
        query: str

    def answer(state: Asked) -> dict[str, Any]:
        found = Shelf(documents=[PARIS, FRANCE]).invoke(state["query"])
        for piece in says("It is on the Seine.").stream(f"{joined(found)}\n\n{state['query']}"):
            get_stream_writer()(piece.content)
        return {}

    graph: Any = StateGraph(Asked).add_node("answer", answer).add_edge(START, "answer").compile()
    told = "".join(graph.stream({"query": QUESTION}, config, stream_mode="custom"))
    record = receiver.record
    assert (record.answer, record.question, len(record.contexts)) == (told, QUESTION, 2)
    assert any(note.startswith("answer: the output tells none") for note in record.notes)


class State(TypedDict, total=False):
    """Of a graph whose model fills in a form."""

    messages: list[Any]


def test_the_answer_in_the_arguments_of_a_forced_tool_call(receiver: Receiver, config: Any) -> None:
    form = calls("Answer", answer="It is Paris, on the Seine.", sources=[1])

    def respond(state: State) -> Any:
        found = Shelf(documents=[PARIS, FRANCE]).invoke(QUESTION)
        return {"messages": [*state["messages"], says(form).invoke(f"{joined(found)}\n{QUESTION}")]}

    builder = StateGraph(State)
    builder.add_node("respond", respond)
    builder.add_edge(START, "respond")
    builder.add_edge("respond", END)
    builder.compile().invoke({"messages": [HumanMessage(QUESTION)]}, config)
    record = receiver.record
    assert (record.status, record.answer) == ("ok", "It is Paris, on the Seine.")
    assert texts(record.contexts) == [PARIS.page_content, FRANCE.page_content]


def test_a_history_counts_and_images_are_let_go(receiver: Receiver, config: Any) -> None:
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "iVBORw0KGgo" * 100_000}}
    old = HumanMessage("What did I ask before? " * 20_000)

    def ask(question: str) -> str:
        given = [old, HumanMessage([{"type": "text", "text": f"{PARIS.page_content}\n{question}"}, image])]
        Shelf(documents=[PARIS]).invoke(question)
        return str(says("It is Paris, on the Seine.").invoke(given).content)

    RunnableLambda(ask).invoke(QUESTION, config)
    assert 460_000 < size_of(receiver) < 600_000
    assert texts(receiver.record.contexts) == [PARIS.page_content]
    assert len(str(old.content)) == 460_000  # the application's own messages stay as they are
    assert "iVBOR" in image["image_url"]["url"]  # type: ignore[index]


def test_metadata_and_results_of_steps_count(receiver: Receiver, config: Any) -> None:
    kept = [{"row": "x y " * 50_000}]
    chain = RunnableLambda(lambda question: question) | RunnableLambda(lambda question: {"rows": kept})
    (chain | (lambda given: QUESTION) | lcel()).invoke(QUESTION, config)
    assert 200_000 < size_of(receiver) < 220_000


ROWS = "[('Signe', 'Sunday', '9:40', 'Nordhavn'), ('Signe', 'Monday', '7:15', 'Nordhavn')]"


def test_rows_of_a_database_under_a_name_of_their_own_are_one_passage(
    receiver: Receiver, config: Any
) -> None:
    def look_up(question: str) -> dict[str, Any]:
        found = joined(Shelf(documents=[PARIS]).invoke(question))
        return {
            "sql_query": "SELECT * FROM boats",
            "sql_result": ROWS,
            "context": found,
            "question": question,
        }

    ask = ChatPromptTemplate.from_template("{context}\n\nRows:\n{sql_result}\n\n{question}")
    (RunnableLambda(look_up) | ask | says("It is Paris, on the Seine.")).invoke(QUESTION, config)
    assert texts(receiver.record.contexts) == [PARIS.page_content, ROWS]
    assert receiver.record.contexts_source == "in_prompt"


class Advice(BaseModel):
    """A form whose texts have names of their own."""

    headline: str
    details: str


def test_a_form_without_a_known_name_is_shown_as_a_whole(receiver: Receiver, config: Any) -> None:
    told: dict[str, Any] = {"headline": "It is Paris.", "details": "Paris lies on the Seine."}
    form = says(calls("Advice", **told)).with_structured_output(Advice)
    context: Any = RunnableLambda(
        lambda question: {"context": joined(Shelf().invoke(question)), "q": question}
    )
    (context | ChatPromptTemplate.from_template("{context}\n{q}") | form).invoke(QUESTION, config)
    assert json.loads(receiver.record.answer) == told
    assert receiver.record.contexts_source == "in_prompt"


def test_a_form_filled_in_from_a_text_alone_is_not_a_turn(receiver: Receiver, config: Any) -> None:
    form = says(calls("Advice", headline="Paris", details="The Seine."))
    ask = ChatPromptTemplate.from_template("Take the fields out of this:\n{input}")
    for raw in (True, False):
        chain = ask | form.with_structured_output(Advice, include_raw=raw)
        chain.invoke({"input": PARIS.page_content}, config)
    assert (len(receiver.drafts), receiver.records) == (2, [])


class Person(BaseModel):
    """A part of a form, with a field that no model has to fill in."""

    name: str
    born: int | None = None


class People(BaseModel):
    """A form made of others."""

    people: list[Person]


def test_a_form_with_defaults_within_is_not_a_turn_by_itself(receiver: Receiver, config: Any) -> None:
    """Taking a graph's nodes out of documents, one call a document: nobody asked anything."""
    form = says(calls("People", people=[{"name": "Marie"}, {"name": "Pierre"}]))
    ask = ChatPromptTemplate.from_template("Take the people out of this:\n{input}")
    for raw in (True, False):
        chain = ask | form.with_structured_output(People, include_raw=raw)
        chain.invoke({"input": PARIS.page_content}, config)
    assert (len(receiver.drafts), receiver.records) == (2, [])


def test_a_question_that_repeats_a_passage_stays_whole_where_the_run_searches(
    receiver: Receiver, config: Any
) -> None:
    asked = f"I read something.\nContext:\n{PARIS.page_content}\nQuestion: is it true?"
    lcel(says("Yes, it is.")).invoke(asked, config)
    assert receiver.record.question == asked


def test_a_question_that_a_model_wrote_is_not_taken_from_the_prompt(receiver: Receiver, config: Any) -> None:
    written = ChatPromptTemplate.from_template("Ask something on France.") | says("What is its capital?")
    ask = ChatPromptTemplate.from_template("Context: {context}\nQuestion: {question}") | says("It is Paris.")

    def run(given: dict[str, str]) -> Any:
        question = written.invoke({}).content
        return ask.invoke({"context": joined(Shelf().invoke(str(question))), "question": question})

    RunnableLambda(run).invoke({}, config)
    assert receiver.record.question == ""
    assert receiver.record.notes[0].startswith("question: not found")


WINDOW = "It lies on the Seine. {} Its mayor is chosen for six years, and its parks are open to all."
"""What stands around a passage in its book."""


def ask(context: str) -> str:
    return str(says("Paris.").invoke(f"You help.\n\nContext:\n{context}\n\nQuestion: {QUESTION}").content)


@pytest.mark.parametrize("around", [WINDOW, "[book.md, page 3]\n{}"])
def test_a_window_around_a_passage_that_code_wrote_is_noted_and_a_label_is_not(
    receiver: Receiver, config: Any, around: str
) -> None:
    def answer(question: str) -> str:
        return ask(around.format(Shelf(documents=[PARIS]).invoke(question)[0].page_content))

    RunnableLambda(answer).invoke(QUESTION, config)
    record = receiver.record
    assert texts(record.contexts) == [PARIS.page_content]
    assert any("place that was not seen" in note for note in record.notes) == (around is WINDOW)


def test_what_models_wrote_on_the_way_is_not_even_guessed(receiver: Receiver, config: Any) -> None:
    notes = ["In Norway six in ten homes have a pump.", "Finland counted a million pumps last year."]

    def answer(question: str) -> str:
        return ask("\n".join(str(says(note).invoke("Sum up what was found.").content) for note in notes))

    RunnableLambda(answer).invoke(QUESTION, config)
    assert (texts(receiver.record.contexts), receiver.record.contexts_source) == ([], "retrieved")
