"""Evidence and answers that are no plain text: rows of a database, records, forms, revisions."""

from __future__ import annotations

import json
from operator import itemgetter
from typing import Annotated, Any, TypedDict

import pytest
from langchain.agents import create_agent
from langchain_core.documents import Document
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.output_parsers import JsonOutputParser, StrOutputParser
from langchain_core.prompts import ChatPromptTemplate, PromptTemplate
from langchain_core.runnables import RunnableLambda, RunnableParallel, RunnablePassthrough
from langchain_core.tools import InjectedToolCallId, create_retriever_tool, tool
from langchain_parts import PARIS, QUESTION, Receiver, Shelf, calls, joined, says, texts
from langgraph.graph import START, StateGraph
from langgraph.prebuilt import ToolNode
from langgraph.types import Command

from steelyard_langchain import attach, detach

COUNTED = "How many employees are there?"


def given(value: Any) -> RunnableLambda[Any, Any]:
    """A step that brings a value from outside."""
    return RunnableLambda(lambda _: value)


@pytest.mark.parametrize(
    ("rows", "shown"),
    [
        ("[(8,)]", "[(8,)]"),
        ([{"p.name": "Ida Berg"}], "[{'p.name': 'Ida Berg'}]"),
        ({"name": "Mia", "invoices": [{"no": "R-17", "amount": 42.5}]},) * 2,
    ],
)
def test_rows_and_records_that_a_prompt_shows_are_passages(
    receiver: Receiver, config: Any, rows: Any, shown: Any
) -> None:
    query = (
        ChatPromptTemplate.from_template("Write SQL for: {question}") | says("SELECT 1") | StrOutputParser()
    )
    ask = ChatPromptTemplate.from_template("Question: {question}\nSQL: {query}\nResult: {response}")
    chain = RunnablePassthrough.assign(query=query).assign(response=given(rows)) | ask | says("There are 8.")
    chain.invoke({"question": COUNTED}, config)
    assert texts(receiver.record.contexts) == [str(shown)]
    assert receiver.record.evidence == "known"


def test_a_short_result_of_a_tool_stands_beside_a_long_one(receiver: Receiver, config: Any) -> None:
    model = says("There are 8.")
    schema = "CREATE TABLE staff (id INTEGER, name TEXT)"

    def answer(question: str) -> Any:
        return model.invoke(
            [
                ("user", question),
                *_told("schema", schema),
                *_told("rows", "[(8,)]"),
            ]
        )

    RunnableLambda(answer).invoke(COUNTED, config)
    assert texts(receiver.record.contexts) == [schema, "[(8,)]"]


def test_a_short_row_beside_long_ones_is_a_passage(receiver: Receiver, config: Any) -> None:
    model = says("From nine to five.")
    said = [
        "Open nine to five",
        PARIS.page_content,
        "\u5df4\u9ece\u662f\u6cd5\u56fd\u7684\u9996\u90fd\u3002" * 9 + "\u2014",
    ]
    rows = json.dumps({"count": 3, "rows": list(enumerate(said))})
    ask: Any = RunnableLambda(lambda asked: model.invoke([("user", asked), *_told("rows", rows)]))
    ask.invoke("When are you open?", config)
    expected = [json.dumps(row, ensure_ascii=False) for row in enumerate(said)]
    assert texts(receiver.record.contexts) == expected


def _told(tool: str, result: str) -> list[Any]:
    called = {"name": tool, "args": {}, "id": tool, "type": "tool_call"}
    return [AIMessage("", tool_calls=[called]), {"role": "tool", "content": result, "tool_call_id": tool}]


def test_an_answer_made_anew_after_a_review_is_the_last_one(receiver: Receiver, config: Any) -> None:
    prompt = ChatPromptTemplate.from_template("{context}\n{question}")
    first = {"context": Shelf() | joined, "question": RunnablePassthrough()}
    review = ChatPromptTemplate.from_template("What does it lack?\n{answer}") | says("Say where it lies.")
    anew = ChatPromptTemplate.from_template("Write it anew.\n{answer}\n{review}") | says(
        "Paris, on the Seine."
    )
    chain = first | RunnablePassthrough.assign(answer=prompt | says("It is Paris.") | StrOutputParser())
    chain = chain.assign(review=review | StrOutputParser()).assign(final=anew | StrOutputParser())
    chain.invoke(QUESTION, config)
    assert receiver.record.answer == "Paris, on the Seine."
    assert PARIS.page_content in texts(receiver.record.contexts)


def test_an_answer_in_a_form_beside_its_documents(receiver: Receiver, config: Any) -> None:
    said = f"```json\n{json.dumps({'answer': 'It is Paris.', 'confidence': 0.9})}\n```"
    form = ChatPromptTemplate.from_template("{docs}\n{q}") | says(said) | JsonOutputParser()
    chain = RunnableParallel(docs=itemgetter("q") | Shelf(), q=itemgetter("q")).assign(out=form)
    chain.invoke({"q": QUESTION}, config)
    assert receiver.record.answer == "It is Paris."


def test_a_short_answer_out_of_a_form_that_escapes_it(receiver: Receiver, config: Any) -> None:
    form = ChatPromptTemplate.from_template("{docs}\n{q}") | says(json.dumps({"befund": "\u00dcber neun"}))
    chain = RunnableParallel(docs=itemgetter("q") | Shelf(), q=itemgetter("q"))
    (chain | form | JsonOutputParser()).invoke({"q": QUESTION}, config)
    assert receiver.record.answer == "\u00dcber neun"


def test_a_query_beside_the_form_of_an_answer_is_not_the_answer(receiver: Receiver, config: Any) -> None:
    query = ChatPromptTemplate.from_template("Rewrite: {q}") | says("capital of France") | StrOutputParser()
    form = ChatPromptTemplate.from_template("{query}\n{q}") | says('{"reply": "I do not know."}')
    chain = RunnablePassthrough.assign(query=query).assign(made=form | JsonOutputParser())
    chain.invoke({"q": QUESTION}, config)
    assert (receiver.record.question, receiver.record.answer) == (QUESTION, "I do not know.")


def test_a_label_that_routes_is_not_the_answer(receiver: Receiver, config: Any) -> None:
    label = ChatPromptTemplate.from_template("Classify as support, sales or spam:\n{email}") | says("support")
    reply = ChatPromptTemplate.from_template("Reply to this.\n{email}\nArticles:\n{kb}") | says(
        "Dear Mia, it is."
    )
    chain = RunnablePassthrough.assign(category=label | StrOutputParser(), kb=given([PARIS.page_content]))
    chain.assign(draft=reply | StrOutputParser()).invoke({"email": "Is Paris in France?"}, config)
    assert receiver.record.answer == "Dear Mia, it is."
    assert texts(receiver.record.contexts) == [PARIS.page_content]


def test_a_prompt_that_was_written_down_as_one_text_is_read(receiver: Receiver) -> None:
    prompt = ChatPromptTemplate.from_template(
        "Answer from this context:\n\n{context}\n\nQuestion: {question}"
    )
    attach(receiver)
    try:
        says("It is Paris.").invoke(prompt.format(context=PARIS.page_content, question=QUESTION))
    finally:
        detach()
    record = receiver.record
    assert (record.question, texts(record.contexts), record.evidence) == (
        QUESTION,
        [PARIS.page_content],
        "guessed",
    )


def test_a_search_that_finds_nothing_may_say_so_by_an_identifier(receiver: Receiver, config: Any) -> None:
    def answer(question: str) -> Any:
        return says("I found none.").invoke(
            [("user", question), *_told("policies", "NO_RELEVANT_POLICY_FOUND")]
        )

    RunnableLambda(answer).invoke(QUESTION, config)
    assert receiver.record.contexts == ()


def test_the_question_under_any_name_beside_a_memory(receiver: Receiver, config: Any) -> None:
    ask = ChatPromptTemplate.from_template("{context}\n{chat_history}\nHuman: {human_input}")
    chain = RunnablePassthrough.assign(context=given(PARIS.page_content)) | ask | says("It is Paris.")
    history = "Human: Is Rome old?\nAI: Yes, it is."
    chain.invoke({"human_input": QUESTION, "chat_history": history}, config)
    assert receiver.record.question == QUESTION


def test_an_answer_that_holds_all_that_models_said_was_put_together(receiver: Receiver, config: Any) -> None:
    first, second = says("The museum opens at ten on Sundays."), says("It is closed on all Mondays.")
    ask = ChatPromptTemplate.from_template("{docs}\n{question}")
    chain = (
        RunnablePassthrough.assign(sundays=ask | first | StrOutputParser())
        .assign(mondays=ask | second | StrOutputParser())
        .assign(leaflet=lambda s: f"## Sundays\n{s['sundays']}\n\n## Mondays\n{s['mondays']}")
    )
    chain.invoke({"question": "When is it open?", "docs": [PARIS]}, config)
    assert receiver.record.answer == (
        "## Sundays\nThe museum opens at ten on Sundays.\n\n## Mondays\nIt is closed on all Mondays."
    )


def test_an_answer_that_asks_back_is_the_answer(receiver: Receiver, config: Any) -> None:
    ask = ChatPromptTemplate.from_template("{docs}\n{question}")
    plan = ask | says("The user wants the opening hours of a museum.") | StrOutputParser()
    reply = ChatPromptTemplate.from_template("{plan}\n{docs}") | says("Which of the museums do you mean?")
    chain = RunnablePassthrough.assign(plan=plan).assign(words=reply | StrOutputParser())
    chain.invoke({"question": "When is it open?", "docs": [PARIS]}, config)
    assert receiver.record.answer == "Which of the museums do you mean?"


def test_the_answer_in_a_state_of_odd_names_is_the_text_that_code_made_of_the_last_reply(
    receiver: Receiver, config: Any
) -> None:
    passage = PARIS.page_content
    write = (
        ChatPromptTemplate.from_template("{found}\nSummarise what it says on {topic}")
        | says("<think>Short.</think>The city of Paris is the capital of France since long ago.")
        | (lambda said: f"## Summary\n{said.content.partition('</think>')[2]}\n### Sources\n* shelf")
    )
    asks = itemgetter("topic") | says('{"query": "capital of France"}') | StrOutputParser()
    chain = RunnablePassthrough.assign(search=asks, found=given(passage)).assign(report=write)
    shown = chain.invoke({"topic": QUESTION}, config)["report"]
    assert (receiver.record.question, receiver.record.answer) == (QUESTION, shown)
    assert texts(receiver.record.contexts) == [passage]


def test_passages_under_a_name_that_answers_have_too_are_not_the_answer(
    receiver: Receiver, config: Any
) -> None:
    write = ChatPromptTemplate.from_template("{content}\n{task}") | says("It is Paris.") | StrOutputParser()
    chain = RunnablePassthrough.assign(content=given([PARIS.page_content])).assign(draft=write)
    chain.invoke({"task": QUESTION}, config)
    assert (receiver.record.answer, texts(receiver.record.contexts)) == ("It is Paris.", [PARIS.page_content])


def test_a_status_of_a_word_is_not_the_answer_that_a_model_gave(receiver: Receiver, config: Any) -> None:
    shelf = Shelf(by_word={"capital": [PARIS]})
    ask: Any = RunnableLambda(lambda x: shelf.invoke(x["user_input"])) | joined | says("It is Paris.")
    chain = RunnablePassthrough.assign(status=ask | (lambda _: "done"))
    chain.invoke({"user_input": QUESTION}, config)
    assert (receiver.record.answer, texts(receiver.record.contexts)) == ("It is Paris.", [PARIS.page_content])
    assert any(note.startswith("answer: ") for note in receiver.record.notes)


def test_exchanges_that_a_step_writes_down_under_labels_of_its_own_are_no_passages(
    receiver: Receiver, config: Any
) -> None:
    said = ["Paris is where the government of France has its seat.", "Its river is the Seine."]
    ask: Any = (
        RunnablePassthrough.assign(
            earlier=lambda x: "\n".join(
                f"Visitor said: {v}\nWe said: {w}" for v, w in map(dict.values, x["past"])
            ),
            found=given(PARIS.page_content),
        )
        | ChatPromptTemplate.from_template(
            "[KNOWLEDGE]\n{found}\n[EARLIER]\n{earlier}\n[VISITOR]\n{utterance}"
        )
        | says(*said)
    )
    ask.invoke({"utterance": QUESTION, "past": []}, config)
    ask.invoke({"utterance": "And its river?", "past": [{"visitor": QUESTION, "we": said[0]}]}, config)
    assert [texts(record.contexts) for record in receiver.records] == [[PARIS.page_content]] * 2


def test_a_function_that_returns_its_answer_beside_what_it_found_is_a_turn(
    receiver: Receiver, config: Any
) -> None:
    shelf, model = Shelf(by_word={"capital": [PARIS]}), says("It is Paris.")

    def ask(question: str) -> tuple[str, list[Document]]:
        found = shelf.invoke(question)
        return str(model.invoke(f"{joined(found)}\n{question}").content), found

    RunnableLambda(ask).invoke(QUESTION, config)
    assert (receiver.record.answer, texts(receiver.record.contexts)) == ("It is Paris.", [PARIS.page_content])


def test_of_an_input_of_odd_names_the_only_text_that_is_no_code_is_the_question(
    receiver: Receiver, config: Any
) -> None:
    """The query that a model wrote for a search is not the answer, whatever stands beside it."""
    shelf = Shelf(by_word={"government": [PARIS]})
    asks = itemgetter("ticket") | says("seat of government, France") | StrOutputParser()
    write = ChatPromptTemplate.from_template("{customer} writes: {ticket}\n{found}") | says("It is Paris.")
    found = RunnablePassthrough.assign(search=asks).assign(found=lambda x: joined(shelf.invoke(x["search"])))
    chain = found.assign(reply_text=write | StrOutputParser())
    chain.invoke({"ticket": QUESTION, "customer": "C-20931"}, config)
    record = receiver.record
    assert (record.question, record.answer) == (QUESTION, "It is Paris.")
    assert [note.partition(":")[0] for note in record.notes] == ["question_guessed"]
    assert texts(record.contexts) == [PARIS.page_content]


def test_a_list_of_messages_that_the_caller_goes_on_with_is_read_as_it_was(
    receiver: Receiver, config: Any
) -> None:
    def answer(state: dict[str, Any]) -> dict[str, Any]:
        found = Shelf(documents=[PARIS]).invoke(QUESTION)
        said = says("It is Paris.").invoke(f"{joined(found)}\n\n{QUESTION}")
        return {"messages": [*state["messages"], said]}

    asked = [("user", QUESTION)]
    returned = RunnableLambda(answer).invoke({"messages": asked}, config)["messages"]
    for messages in (asked, returned):
        messages.append(("user", "And of Germany?"))
    assert (receiver.record.question, receiver.record.answer) == (QUESTION, "It is Paris.")


def test_what_tells_the_form_of_the_reply_is_not_a_passage(receiver: Receiver, config: Any) -> None:
    form = 'Reply with JSON that has these fields: {"answer": "a text", "sources": ["a text each"]}'
    ask = ChatPromptTemplate.from_template("{context}\n\n{question}\n\n{format_instructions}")
    reply = '{"answer": "It is Paris.", "sources": ["d1"]}'

    def run(question: str) -> Any:
        found = joined(Shelf(documents=[PARIS]).invoke(question))
        filled = {"context": found, "question": question, "format_instructions": form}
        return (ask | says(reply) | StrOutputParser() | JsonOutputParser()).invoke(filled)["answer"]

    RunnableLambda(run).invoke(QUESTION, config)
    assert texts(receiver.record.contexts) == [PARIS.page_content]
    assert receiver.record.answer == "It is Paris."


def test_what_stands_in_an_entry_with_a_passage_tells_about_it(receiver: Receiver, config: Any) -> None:
    row = Document(page_content="[('Wesonard', 412)]")

    def rows(documents: list[Document]) -> list[dict[str, str]]:
        return [{"title": "Page 7 of the handbook", "text": one.page_content} for one in documents]

    def write(found: list[dict[str, str]]) -> str:
        return "\n".join(f"## {one['title']}\n{one['text']}" for one in found)

    context = Shelf(documents=[row]) | RunnableLambda(rows) | RunnableLambda(write)
    ask = ChatPromptTemplate.from_template("{context}\n\n{question}")
    chain = {"context": context, "question": RunnablePassthrough()} | ask | says("It is 412.")
    chain.invoke("How many are there?", config)
    assert texts(receiver.record.contexts) == [row.page_content]


def test_of_documents_that_are_mere_names_what_the_tool_wrote_of_them_counts(
    receiver: Receiver, config: Any
) -> None:
    dish = Document(page_content="Lentil soup", metadata={"needs": "lentils, carrots and cumin", "time": 25})
    about = PromptTemplate.from_template("{page_content}, made of {needs}, in {time} minutes")
    find = create_retriever_tool(Shelf(documents=[dish]), "find", "Finds dishes.", document_prompt=about)
    model = says(calls("find", 1, query="soup"), "Lentil soup takes 25 minutes.")
    agent: Any = create_agent(model, [find])
    agent.invoke({"messages": [("user", "What can I cook quickly?")]}, config)
    assert texts(receiver.record.contexts) == [
        "Lentil soup, made of lentils, carrots and cumin, in 25 minutes"
    ]


def test_a_tool_that_keeps_what_it_found_in_the_state_tells_a_model_no_more_than_that(
    receiver: Receiver, config: Any
) -> None:
    class Desk(TypedDict, total=False):
        question: str
        told: list[Any]
        raw: str
        pages: str
        sources: list[Any]
        answer: str

    @tool
    def search(query: str, tool_call_id: Annotated[str, InjectedToolCallId]) -> Command[Any]:
        """Searches."""
        told = ToolMessage("1 page found.", tool_call_id=tool_call_id)
        kept = {"pages": f"Pages:\n{PARIS.page_content}", "sources": [{"title": "Atlas", "page": 3}]}
        return Command(update={"told": [told], "raw": PARIS.page_content, **kept})

    def answer(state: Desk) -> dict[str, Any]:
        return {"answer": says("It is Paris.").invoke(f"{state['pages']}\n\n{state['question']}").content}

    graph = StateGraph(Desk)
    graph.add_node("search", ToolNode([search], messages_key="told"))
    graph.add_node("answer", answer)
    graph.add_edge(START, "search")
    graph.add_edge("search", "answer")
    graph.compile().invoke({"question": QUESTION, "told": [calls("search", 1, query="capital")]}, config)
    assert texts(receiver.record.contexts) == [PARIS.page_content]
    assert receiver.record.answer == "It is Paris."


def test_a_statement_that_nothing_was_found_is_not_a_passage_in_whatever_language(
    receiver: Receiver, config: Any
) -> None:
    context = Shelf(documents=[]) | RunnableLambda(lambda found: joined(found) or "Không tìm thấy gì cả.")
    ask = ChatPromptTemplate.from_template("{context}\n\n{question}")
    chain = {"context": context, "question": RunnablePassthrough()} | ask | says("I cannot tell.")
    chain.invoke(QUESTION, config)
    assert receiver.record.contexts == ()
    assert any("a few words stand where a look-up found nothing" in note for note in receiver.record.notes)


def test_an_answer_that_leaves_by_a_stream_of_its_own_is_what_the_model_said_last(
    receiver: Receiver, config: Any
) -> None:
    """What the run returns was there before: the model was shown it."""

    def answer(question: str) -> dict[str, Any]:
        pages = given([PARIS.page_content]).invoke(None)
        said = says("It is Paris.").invoke(f"{pages[0]}\n\n{question}").content
        sent.append(said)
        return {"pages": pages, "done": True}

    sent: list[Any] = []
    RunnableLambda(answer).invoke(QUESTION, config)
    assert receiver.record.answer == sent[0]
    assert texts(receiver.record.contexts) == [PARIS.page_content]
