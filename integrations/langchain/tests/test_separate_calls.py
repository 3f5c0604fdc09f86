"""Retrievers, tools and models that plain Python calls one after the other, with no chain around them."""

from __future__ import annotations

import asyncio
import logging
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnableLambda
from langchain_core.tools import tool
from langchain_parts import BERLIN, FRANCE, PARIS, QUESTION, Broken, Receiver, Shelf, says, texts

from steelyard_langchain import CallbackHandler, attach

SEPARATE = "no run holds the search and this call together; `with record(...):` around both does"


@pytest.fixture(autouse=True)
def attached(receiver: Receiver) -> CallbackHandler:
    return attach(receiver)


@tool
def search(query: str) -> list[str]:
    """Search."""
    return [PARIS.page_content, FRANCE.page_content]


@tool(response_format="content_and_artifact")
def look_up(query: str) -> Any:
    """Search."""
    found = Shelf(documents=[PARIS, FRANCE]).invoke(query)
    return "\n".join(one.page_content for one in found), found


@tool
def weather(city: str) -> str:
    """The weather."""
    return "It rains in Paris, and will until Sunday."


def test_a_model_that_was_shown_what_was_retrieved_before_it_is_a_turn(receiver: Receiver) -> None:
    found = Shelf().invoke("capital France")
    says("Paris.").invoke(f"Context: {found[0].page_content}\n\nQuestion: {QUESTION}")
    record = receiver.record
    assert (record.question, record.answer, record.contexts_source) == (QUESTION, "Paris.", "in_prompt")
    assert texts(record.contexts) == [PARIS.page_content]
    assert texts(record.retrieved) == [PARIS.page_content, FRANCE.page_content, BERLIN.page_content]
    assert record.contexts[0].query == "capital France"
    assert [note.partition(":")[0] for note in record.notes[1:]] == ["question_guessed"]


@pytest.mark.parametrize(
    "prompt",
    [
        [SystemMessage(f"Answer from: {PARIS.page_content}"), HumanMessage(QUESTION)],
        f"{PARIS.page_content}\n{QUESTION}",
        f"{PARIS.page_content} {QUESTION}",
        f"<context>{PARIS.page_content}</context>\nUser question: {QUESTION}",
        f"Answer by the context:\n{PARIS.page_content}\nAnswer the question by the above context: {QUESTION}",
        f"Answer by the context:\n{PARIS.page_content}\n\n{QUESTION}",
    ],
)
def test_the_question_is_found_beside_the_passages(receiver: Receiver, prompt: Any) -> None:
    Shelf().invoke("seat of government")
    says("Paris.").invoke(prompt)
    assert receiver.record.question == QUESTION


def test_a_question_that_the_prompt_does_not_show_is_noted(receiver: Receiver) -> None:
    Shelf().invoke("capital of France")
    says("It is old.").invoke(f"Write a poem about this: {PARIS.page_content}")
    record = receiver.record
    assert record.question == "capital of France"
    assert [note.partition(":")[0] for note in record.notes[1:]] == ["question_rewritten_only"]


@pytest.mark.parametrize("which", [search, look_up], ids=["list", "artifact"])
def test_a_tool_loop_in_plain_python_is_a_turn(receiver: Receiver, which: Any) -> None:
    call: Any = {"name": which.name, "args": {"query": "capital"}, "id": "1", "type": "tool_call"}
    messages: list[Any] = [HumanMessage(QUESTION), AIMessage("", tool_calls=[call])]
    messages.append(which.invoke(call))
    says("Paris.").invoke(messages)
    record = receiver.record
    assert (record.question, record.answer) == (QUESTION, "Paris.")
    assert texts(record.contexts) == [PARIS.page_content, FRANCE.page_content]


def test_plain_text_that_a_tool_returned_counts(receiver: Receiver) -> None:
    call: Any = {"name": "weather", "args": {"city": "Paris"}, "id": "1", "type": "tool_call"}
    says("Yes.").invoke([HumanMessage("Rain?"), AIMessage("", tool_calls=[call]), weather.invoke(call)])
    record = receiver.record
    assert (record.question, record.contexts_source) == ("Rain?", "in_prompt")
    assert texts(record.contexts) == [weather.invoke({"city": "Paris"})]


def test_a_model_that_calls_a_tool_has_not_answered(receiver: Receiver) -> None:
    Shelf().invoke("capital")
    call: Any = {"name": "weather", "args": {"city": "Paris"}, "id": "1"}
    says(AIMessage("", tool_calls=[call])).invoke(f"{PARIS.page_content}\n{QUESTION}")
    assert receiver.drafts == []


def test_what_was_looked_up_for_an_earlier_question_of_a_conversation_does_not_count(
    receiver: Receiver,
) -> None:
    messages: list[Any] = []
    for question, document, answer in ((QUESTION, PARIS, "Paris."), ("And of Germany?", BERLIN, "Berlin.")):
        (found,) = Shelf(documents=[document]).invoke(question)
        messages.append(HumanMessage(f"Context: {found.page_content}\nQuestion: {question}"))
        messages.append(says(answer).invoke(messages))
    first, second = receiver.records
    assert (texts(first.contexts), texts(second.contexts)) == ([PARIS.page_content], [BERLIN.page_content])
    assert second.question == "And of Germany?"


def test_tool_messages_of_an_earlier_question_do_not_make_a_turn(receiver: Receiver) -> None:
    call: Any = {"name": "weather", "args": {"city": "Paris"}, "id": "1", "type": "tool_call"}
    told = weather.invoke(call)
    assert isinstance(told, ToolMessage)
    before: list[Any] = [HumanMessage("Rain?"), AIMessage("", tool_calls=[call]), told, AIMessage("Yes.")]
    says("You are welcome.").invoke([*before, HumanMessage("Thank you!")])
    assert receiver.records == []


def test_a_chain_given_a_prompt_with_passages_in_it_is_told_what_was_searched(receiver: Receiver) -> None:
    """Its own template stands around that prompt, so that no model is sent it as it is."""
    from langchain_core.prompts import ChatPromptTemplate

    found = Shelf(documents=[PARIS]).invoke(QUESTION)
    prompt = f"By this context only:\n{found[0].page_content}\n---\nBy the above context: {QUESTION}"
    talks = ChatPromptTemplate.from_template("A friendly talk.\n\nHuman: {input}\nAI:") | says("Paris.")
    talks.invoke({"input": prompt})
    record = receiver.record
    assert (record.question, texts(record.contexts), record.evidence) == (
        QUESTION,
        [PARIS.page_content],
        "known",
    )


def test_threads_do_not_see_what_others_retrieved(receiver: Receiver) -> None:
    Shelf(documents=[PARIS]).invoke("capital")
    thread = threading.Thread(target=lambda: says("Paris.").invoke(f"{PARIS.page_content}\n{QUESTION}"))
    thread.start()
    thread.join()
    assert receiver.records == []


@pytest.mark.parametrize("way", ["pool", "gather"])
def test_what_workers_and_tasks_found_for_the_code_around_a_call_counts_for_it(
    receiver: Receiver, way: str
) -> None:
    shelves = [Shelf(documents=[PARIS]), Shelf(documents=[FRANCE])]

    async def gathered() -> list[list[Document]]:
        return await asyncio.gather(*(shelf.ainvoke("capital") for shelf in shelves))

    for question in (QUESTION, "Which city is it?"):
        if way == "gather":
            found = asyncio.run(gathered())
        else:
            with ThreadPoolExecutor(2) as pool:
                found = list(pool.map(lambda shelf: shelf.invoke("capital"), shelves))
        shown = "\n".join(one.page_content for each in found for one in each)
        says("Paris.").invoke(f"Context: {shown}\n\nQuestion: {question}")
    for record, question in zip(receiver.records, (QUESTION, "Which city is it?"), strict=True):
        assert (record.question, record.contexts_source) == (question, "in_prompt")
        assert texts(record.contexts) == [PARIS.page_content, FRANCE.page_content]
        assert record.notes[0] == SEPARATE


def test_what_a_pool_found_for_one_turn_tells_nothing_of_it_to_another(receiver: Receiver) -> None:
    """Two tenants hold the same text under ids of their own, and ask at the same time."""
    both = threading.Barrier(2)
    pool = ThreadPoolExecutor(2)

    def run(tenant: str) -> str:
        own = [PARIS.model_copy(update={"id": f"{tenant}-secret", "metadata": {"of": tenant}})]
        found = pool.submit(Shelf(documents=own).invoke, f"words of {tenant}").result(60)
        both.wait(60)
        said = says(f"Paris, {tenant}.").invoke(f"{found[0].page_content}\n{QUESTION} ({tenant})")
        both.wait(60)
        return str(said.content)

    threads = [threading.Thread(target=RunnableLambda(run).invoke, args=[name]) for name in ("one", "two")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    pool.shutdown()
    assert sorted(record.answer for record in receiver.records) == ["Paris, one.", "Paris, two."]
    for record in receiver.records:
        assert texts(record.contexts) == [PARIS.page_content]
        assert "secret" not in str(record.contexts) and "words of" not in str(record.contexts)


@pytest.mark.parametrize("way", ["call", "chain"])
def test_what_models_replied_in_a_pool_is_no_passage_of_the_turn_around_it(
    receiver: Receiver, way: str
) -> None:
    """Threads of a pool know nothing of the run that fills them."""
    says_of = {
        PARIS.page_content: "One note names Paris.",
        FRANCE.page_content: "The other one names France.",
    }

    def sub(document: Any) -> str:
        found = Shelf(documents=[document]).invoke("a part of it")
        text = found[0].page_content
        model = says(says_of[text]) if way == "call" else RunnableLambda(lambda p: p) | says(says_of[text])
        return str(model.invoke(f"Sum this up: {text}").content)

    def run(question: str) -> str:
        with ThreadPoolExecutor(2) as pool:
            notes = list(pool.map(sub, [PARIS, FRANCE]))
        return str(says("Paris, in France.").invoke("\n".join([*notes, question])).content)

    RunnableLambda(run).invoke(QUESTION)
    record = receiver.records[-1]
    assert (record.question, texts(record.contexts)) == (QUESTION, [])
    assert any("replies of runs in other threads" in note for note in record.notes)


def test_the_text_of_an_input_that_was_searched_for_before_is_its_question(receiver: Receiver) -> None:
    found = Shelf(documents=[PARIS, FRANCE]).invoke(QUESTION)
    template = ChatPromptTemplate.from_template("Essay: {essay}\nNews:\n{context}\nComment on it.")
    chain = template | says("It is Paris.")
    chain.invoke({"essay": QUESTION, "context": "\n\n".join(one.page_content for one in found)})
    record = receiver.record
    assert (record.question, texts(record.contexts)) == (QUESTION, [PARIS.page_content, FRANCE.page_content])


def test_a_critique_of_the_answer_before_is_not_a_turn(receiver: Receiver) -> None:
    found = Shelf(documents=[PARIS]).invoke("capital")
    reply = "The capital of France is the city of Paris."
    says(reply).invoke(f"{found[0].page_content}\nQuestion: {QUESTION}")
    form = '{"adequate": true, "missing": ""}'
    review = (
        f"Review this answer.\nAnswer: {reply}\n\nIs it complete?\nReply with JSON only:\n{form}\nor\n{form}"
    )
    says(form).invoke(review)
    assert receiver.record.answer == reply


def test_a_chain_is_told_where_its_joined_context_came_from(receiver: Receiver) -> None:
    """The passages are those that were retrieved, not cuts of the one text that the chain was given."""
    from langchain_core.prompts import ChatPromptTemplate

    found = Shelf(documents=[PARIS, FRANCE, BERLIN]).invoke("capital of France")
    joined = " ".join(one.page_content for one in found[:2])
    chain = ChatPromptTemplate.from_template("{context}\nQuestion: {question}") | says("Paris.")
    chain.invoke({"context": joined, "question": QUESTION})
    record = receiver.record
    assert [(one.text, one.id) for one in record.contexts] == [
        (PARIS.page_content, "d1"),
        (FRANCE.page_content, "d2"),
    ]
    assert (record.contexts_source, record.notes) == ("in_prompt", ())
    assert len(record.retrieved) == 3


@pytest.mark.parametrize("way", ["invoke", "ainvoke"])
async def test_a_chain_that_only_searches_is_kept_for_the_call_after_it(receiver: Receiver, way: str) -> None:
    chain: Any = Shelf(documents=[PARIS]) | (lambda found: found[0].page_content)

    text = await chain.ainvoke("capital") if way == "ainvoke" else chain.invoke("capital")
    await says("Paris.").ainvoke(f"{text}\nQuestion: {QUESTION}")
    assert (receiver.record.question, texts(receiver.record.contexts)) == (QUESTION, [PARIS.page_content])


def test_an_answer_whose_words_a_last_step_changes_is_a_turn(receiver: Receiver) -> None:
    prompt: Any = Shelf(documents=[PARIS]) | (lambda found: f"{found[0].page_content}\nQuestion: {QUESTION}")
    chain = prompt | says("The passage names Paris.") | (lambda reply: PARIS.page_content.upper())
    chain.invoke("capital")
    assert receiver.record.answer == PARIS.page_content.upper()


def test_a_search_that_failed_leaves_nothing_behind(receiver: Receiver, attached: CallbackHandler) -> None:
    with pytest.raises(ConnectionError):
        Broken().invoke("capital")
    says("Paris.").invoke(QUESTION)
    assert (receiver.records, attached.stats()["open"], attached.stats()["runs"]) == ([], 0, 0)


def test_only_the_latest_searches_are_kept(receiver: Receiver) -> None:
    Shelf(documents=[PARIS]).invoke("capital")
    for number in range(8):
        Shelf(documents=[BERLIN]).invoke(f"other {number}")
    says("Paris.").invoke(f"{PARIS.page_content}\nQuestion: {QUESTION}")
    assert receiver.records == []


@pytest.mark.parametrize(
    "template",
    [
        "Answer by the following context:\n\n{passages}\n\nQuestion: {question}",
        "You know maps.\n\nHere's a question: {question}\n\nHere's some context:\n\n{passages}\n\nAnswer:\n",
    ],
)
def test_a_search_that_leaves_no_run_is_guessed_from_the_prompt(receiver: Receiver, template: str) -> None:
    passages = f"{PARIS.page_content}\n\n---\n\n{FRANCE.page_content}"
    says("Paris.").invoke(template.format(passages=passages, question=QUESTION))
    record = receiver.record
    assert (record.question, record.contexts_source) == (QUESTION, "guessed")
    assert texts(record.contexts) == [PARIS.page_content, FRANCE.page_content]
    assert [note.partition(":")[0] for note in record.notes] == [
        SEPARATE.partition(":")[0],
        "question_guessed",
        "contexts_guessed",
    ]


@pytest.mark.parametrize(
    "prompt",
    [
        f"Sum up these documents:\n\n{PARIS.page_content}\n\n{FRANCE.page_content}",
        f"Is the context relevant? Say yes or no.\nContext:\n{PARIS.page_content}\nQuestion: {QUESTION}",
    ],
)
def test_a_summary_or_a_grade_on_its_own_is_not_a_turn(receiver: Receiver, prompt: str) -> None:
    says("no").invoke(prompt)
    assert receiver.records == []


def test_a_model_with_nothing_retrieved_before_it_is_counted_and_said_once(
    receiver: Receiver, attached: CallbackHandler, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, "steelyard.langchain"):
        for _ in range(2):
            says("Paris.").invoke(QUESTION)
        assert (receiver.records, attached.stats()["without_root"]) == ([], 2)
    (line,) = caplog.messages
    assert "with record(...)" in line


BANK = "Every sum is paid to the account of the firm at the bank of the town."


class Invoices(Shelf):
    """Finds what is alike for every customer but for the name, and what is the same for all."""

    def _get_relevant_documents(self, query: str, **_: Any) -> list[Document]:
        return [Document(f"Invoice of {query} for May: the sum of 300 euros is due in June."), Document(BANK)]


@pytest.mark.parametrize("kind", ["sequence", "function"])
def test_what_an_abandoned_stream_found_serves_no_later_turn_of_its_thread(
    receiver: Receiver, kind: str
) -> None:
    """The next job of a pool's thread may be another user's, and its passages may be almost the same."""
    prompt = ChatPromptTemplate.from_template("{context}\nQuestion: When is it due?")

    def looked_up(customer: str) -> dict[str, str]:
        return {"context": "\n".join(one.page_content for one in Invoices().invoke(customer))}

    def answered(customer: str) -> str:
        return str((prompt | says("In June.")).invoke(looked_up(customer)).content)

    def elsewhere(customer: str) -> str:
        with ThreadPoolExecutor(1) as pool:
            shown = pool.submit(looked_up, customer).result()
        return str((prompt | says("In June.")).invoke(shown).content)

    chain: Any = RunnableLambda(answered)
    if kind == "sequence":
        chain = RunnableLambda(looked_up) | prompt | says("In June.") | StrOutputParser()
    stream = chain.stream("Anders")
    next(stream)
    stream.close()
    RunnableLambda(elsewhere).invoke("Berger")
    last = receiver.records[-1]
    shown = ["Invoice of Berger for May: the sum of 300 euros is due in June.", BANK]
    assert (texts(last.contexts), last.contexts_source) == (shown, "in_prompt")
    assert not any("Anders" in text for text in texts(last.retrieved))


@pytest.mark.parametrize("fence", ["{}", "```json\n{}\n```"])
def test_of_a_reply_in_json_that_the_application_reads_the_part_it_names_answer_is_the_answer(
    receiver: Receiver, fence: str
) -> None:
    reply = fence.format('{"answer": "In June.", "sources": [1]}')
    found = Invoices().invoke("Anders")
    says(reply).invoke(f"Context: {found[0].page_content}\n\nQuestion: When is it due?")
    assert receiver.records[-1].answer == "In June."
