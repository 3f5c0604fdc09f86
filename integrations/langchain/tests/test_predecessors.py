"""Runs that are built upon what a model replied in an earlier run of the same task or thread."""

from __future__ import annotations

import asyncio
import gc
import json
import threading
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from operator import itemgetter
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate, MessagesPlaceholder
from langchain_core.runnables import Runnable, RunnableLambda, RunnablePassthrough
from langchain_parts import PARIS, QUESTION, SEINE, Receiver, Shelf, says, texts

from steelyard_langchain import CallbackHandler, attach, record

WHOLE = "What should a visitor know of Paris?"
PEOPLE = "How many people live in Paris today?"
RIVER = "Which river runs through the city of Paris?"
MANY = "Some two million of them, and ten in the region around it."
SEINE_RUNS = "It is the Seine, which comes in from the east."
WRITTEN = "question_rewritten_only"
SHOWN = "this run was shown what a model replied in an earlier run"


@pytest.fixture(autouse=True)
def attached(receiver: Receiver) -> CallbackHandler:
    return attach(receiver)


def writer(reply: str) -> Runnable[Any, list[str]]:
    prompt = ChatPromptTemplate.from_template("Break this down into sub-questions, one a line: {question}")
    return prompt | says(reply) | StrOutputParser() | (lambda text: text.split("\n"))


def answering(answer: Any, template: str = "{pairs}\nContext: {context}\nQuestion: {question}") -> Any:
    """A chain that searches and answers, and may be shown what was answered before."""
    prompt = ChatPromptTemplate.from_template(template)
    return (
        RunnablePassthrough.assign(context=itemgetter("question") | Shelf(documents=[PARIS, SEINE]))
        | prompt
        | says(answer)
        | StrOutputParser()
    )


def names(receiver: Receiver) -> list[list[str]]:
    """The notes of each record that speak of earlier runs, by the words they begin with."""
    said = [[note for note in one.notes if "earlier run" in note] for one in receiver.records]
    assert all("record(...)" in note for notes in said for note in notes)
    return [[name for note in one for name in (WRITTEN, SHOWN) if note.startswith(name)] for one in said]


def test_a_check_of_what_an_earlier_run_answered_says_so(receiver: Receiver) -> None:
    answer = answering("The Seine does.").invoke({"question": RIVER, "pairs": ""})
    check = ChatPromptTemplate.from_template("Mark from 0 to 1: {question}\n{answer}\n{context}")
    given = {"question": RIVER, "answer": answer, "context": SEINE.page_content}
    (check | says('{"faithfulness": 0.9, "comment": "It says what the context says."}')).invoke(given)
    assert names(receiver) == [[], [SHOWN]]


@pytest.mark.parametrize("lead", ["", "1. ", "- ", "Sub-question: "])
def test_questions_that_a_model_wrote_before_are_noted(receiver: Receiver, lead: str) -> None:
    written = writer(f"{lead}{PEOPLE}\n{lead}{RIVER}").invoke({"question": WHOLE})
    answering("Two million.").invoke({"question": written[0].removeprefix(lead), "pairs": ""})
    answering("The Seine.").invoke({"question": written[1].removeprefix(lead), "pairs": f"1: {PEOPLE}"})
    assert texts(receiver.records[0].contexts) == [PARIS.page_content, SEINE.page_content]
    assert names(receiver) == [[WRITTEN], [WRITTEN] if "Sub" in lead else [WRITTEN, SHOWN]]


def test_what_a_model_was_given_to_translate_is_what_the_user_asked(receiver: Receiver) -> None:
    prompt = ChatPromptTemplate.from_template("Translate this to English.\n\nGerman: {text}")
    asked = "Welcher Fluss fließt durch Paris?"
    written = (prompt | says(RIVER) | StrOutputParser()).invoke({"text": asked})
    answering("The Seine.").invoke({"question": written, "pairs": ""})
    turn = receiver.records[-1]
    assert (turn.question, turn.standalone_question, names(receiver)[-1]) == (asked, RIVER, [])
    assert any(note.startswith("question_guessed") for note in turn.notes)


@pytest.mark.parametrize(
    "asked", ["Which alternate airport is planned?", "Plans for an alternate airport, please!"]
)
def test_words_that_a_form_took_out_of_what_was_asked_are_noted(receiver: Receiver, asked: str) -> None:
    """Even if only a word or two stand around them, as behind a label."""
    prompt = ChatPromptTemplate.from_template("Which tool, and with what?\n{question}")
    form = (prompt | says('{"tool": "search", "input": "alternate airport"}')).invoke({"question": asked})
    answering("Munich.").invoke({"question": json.loads(form.text)["input"], "pairs": ""})
    assert names(receiver)[-1] == [WRITTEN]


def test_each_part_and_the_whole_of_a_question_answered_in_parts_are_noted(receiver: Receiver) -> None:
    pairs = ""
    questions = writer(f"1. {PEOPLE}\n2. {RIVER}").invoke({"question": WHOLE})
    for question, answer in zip(questions, (MANY, SEINE_RUNS), strict=True):
        told = answering(answer).invoke({"question": question, "pairs": pairs})
        pairs += f"\n---\nQuestion: {question}\nAnswer: {told}"
    last = ChatPromptTemplate.from_template("{context}\nQuestion: {question}") | says("A river and people.")
    last.invoke({"context": pairs, "question": WHOLE})
    assert names(receiver) == [[WRITTEN], [WRITTEN, SHOWN], [SHOWN]]


@pytest.mark.parametrize("joins", ["call", "chain"])
def test_what_joins_the_answers_of_files_has_their_passages(receiver: Receiver, joins: str) -> None:
    told = []
    for document, answer in ((PARIS, MANY), (SEINE, SEINE_RUNS)):
        prompt = ChatPromptTemplate.from_template("From this file alone: {context}\n{question}")
        search = {"context": Shelf(documents=[document]), "question": RunnablePassthrough()}
        told.append((search | prompt | says(answer) | StrOutputParser()).invoke(WHOLE))
    answers = "\n".join(f"File {at}: {text}" for at, text in enumerate(told))
    joined = "It has two million people and a river."
    if joins == "call":
        says(joined).invoke(f"Make one answer of these.\nQuestion: {WHOLE}\n{answers}")
    else:
        prompt = ChatPromptTemplate.from_template("Make one answer of these.\n{question}\n{answers}")
        (prompt | says(joined)).invoke({"question": WHOLE, "answers": answers})
    *parts, whole = receiver.records
    assert [texts(part.contexts) for part in parts] == [[PARIS.page_content], [SEINE.page_content]]
    assert (whole.question, whole.answer, whole.evidence) == (WHOLE, joined, "known")
    assert texts(whole.contexts) == [PARIS.page_content, SEINE.page_content]
    assert whole.notes


def test_a_part_that_a_thread_answers_for_the_run_around_it_is_noted(receiver: Receiver) -> None:
    def in_a_thread(question: str) -> str:
        with ThreadPoolExecutor(1) as pool:
            return str(pool.submit(answering(MANY).invoke, {"question": question, "pairs": ""}).result())

    (writer(PEOPLE) | (lambda asked: in_a_thread(asked[0]))).invoke({"question": WHOLE})
    assert [note for note in receiver.records[0].notes if note.startswith(WRITTEN)]


@pytest.mark.parametrize("way", ["invoke", "ainvoke", "stream", "astream", "handler", "form", "completion"])
def test_what_a_model_wrote_is_known_however_it_is_called(receiver: Receiver, way: str) -> None:
    chain = answering("Two million.")

    async def run() -> None:
        if way == "ainvoke":
            await writer(PEOPLE).ainvoke({"question": WHOLE})
            await chain.ainvoke({"question": PEOPLE, "pairs": ""})
        elif way == "astream":
            _ = [piece async for piece in says(PEOPLE).astream(f"Break down: {WHOLE}")]
            _ = [piece async for piece in chain.astream({"question": PEOPLE, "pairs": ""})]

    if way in ("ainvoke", "astream"):
        asyncio.run(run())
    elif way == "stream":
        list(writer(PEOPLE).stream({"question": WHOLE}))
        list(chain.stream({"question": PEOPLE, "pairs": ""}))
    elif way == "handler":  # one for each call
        writer(PEOPLE).invoke({"question": WHOLE}, {"callbacks": [CallbackHandler(receiver)]})
        chain.invoke({"question": PEOPLE, "pairs": ""}, {"callbacks": [CallbackHandler(receiver)]})
    else:
        call: Any = {"name": "Parts", "args": {"questions": [RIVER, PEOPLE]}, "id": "1"}
        asks = says(AIMessage("", tool_calls=[call]) if way == "form" else f"{RIVER}\n{PEOPLE}")
        asks.invoke(f"Break down: {WHOLE}")
        chain.invoke({"question": PEOPLE, "pairs": ""})
    assert names(receiver) == [[WRITTEN]]


def test_a_reply_without_blanks_between_words_is_known(receiver: Receiver) -> None:
    first = "\u5854\u9ad8\u4e09\u767e\u4e09\u5341\u7c73\u56e0\u6b64\u662f\u57ce"
    first += "\u91cc\u6700\u9ad8\u7684\u5efa\u7b51"
    answering(first).invoke({"question": QUESTION, "pairs": ""})
    answering("Paris.").invoke({"question": RIVER, "pairs": first})
    assert names(receiver) == [[], [SHOWN]]


def test_a_block_around_the_runs_is_one_record_without_such_notes(receiver: Receiver) -> None:
    with record(receiver, question=WHOLE) as turn:
        (question,) = writer(PEOPLE).invoke({"question": WHOLE})
        told = answering(MANY).invoke({"question": question, "pairs": ""})
        turn.answer = answering(SEINE_RUNS).invoke({"question": RIVER, "pairs": told})
    assert (receiver.record.question, names(receiver)) == (WHOLE, [[]])


def independent(receiver: Receiver) -> None:
    """Answers quote the passages, of which some come again."""
    for question, quoted in ((QUESTION, PARIS), (RIVER, SEINE), (QUESTION, PARIS)):
        answering(quoted.page_content).invoke({"question": question, "pairs": ""})


def the_same_text(receiver: Receiver) -> None:
    """One text for all questions, out of which the answers are quoted."""
    text = f"{PARIS.page_content}\n{SEINE.page_content}"
    for question, quoted in ((QUESTION, PARIS), (RIVER, SEINE)):
        prompt = ChatPromptTemplate.from_template("{context}\nQuestion: {question}")
        (prompt | says(quoted.page_content)).invoke({"context": text, "question": question})


def found_again(receiver: Receiver) -> None:
    """What a model knew by itself stands in a passage that is retrieved for the next question."""
    (ChatPromptTemplate.from_template("{question}") | says(MANY)).invoke({"question": PEOPLE})
    shelf = Shelf(documents=[Document(page_content=f"The people of Paris. {MANY}")])
    prompt = ChatPromptTemplate.from_template("{context}\nQuestion: {question}")
    made = {"context": shelf, "question": RunnablePassthrough()} | prompt | says("Two million.")
    made.invoke("How large is it?")


def conversation(receiver: Receiver) -> None:
    """A history of messages, under a name of its own."""
    prompt = ChatPromptTemplate.from_messages(
        [MessagesPlaceholder("so_far"), ("human", "Context: {context}\nQuestion: {question}")]
    )
    so_far: list[Any] = []
    for question, answer in ((PEOPLE, MANY), (RIVER, SEINE_RUNS)):
        search = RunnablePassthrough.assign(context=itemgetter("question") | Shelf(documents=[SEINE]))
        (search | prompt | says(answer)).invoke({"question": question, "so_far": list(so_far)})
        so_far += [HumanMessage(question), AIMessage(answer)]


def history_as_text(receiver: Receiver) -> None:
    """A history as text, told by its name."""
    template = "{chat_history}\nContext: {context}\nQuestion: {question}"
    told = ""
    for question, answer in ((PEOPLE, MANY), (RIVER, SEINE_RUNS)):
        answering(answer, template).invoke({"question": question, "chat_history": told})
        told += f"Q: {question}\nA: {answer}\n"


def roles_as_text(receiver: Receiver) -> None:
    """A history as text, told by the roles in it."""
    told = ""
    for question, answer in ((PEOPLE, MANY), (RIVER, SEINE_RUNS)):
        answering(answer).invoke({"question": question, "pairs": told})
        told += f"Human: {question}\nAI: {answer}\n"


def unchanged(receiver: Receiver) -> None:
    """A rewriter that leaves the user's own question as it is."""
    (question,) = writer(WHOLE).invoke({"question": WHOLE})
    answering("Much.").invoke({"question": question, "pairs": ""})


def by_chance(receiver: Receiver) -> None:
    """Short words of a reply come again."""
    answering("Two million.").invoke({"question": PEOPLE, "pairs": ""})
    answering("Why?").invoke({"question": "And its river?", "pairs": "All of Latvia has two million."})
    answering("Because.").invoke({"question": "Why?", "pairs": ""})


def suggested(receiver: Receiver) -> None:
    """A reply names a question among other words, and the user asks it."""
    answering(f"{RIVER} Just ask.").invoke({"question": QUESTION, "pairs": ""})
    answering("The Seine.").invoke({"question": RIVER, "pairs": ""})
    answering(f"Ask me something else, for example: {PEOPLE}").invoke({"question": QUESTION, "pairs": ""})
    answering("Many.").invoke({"question": PEOPLE, "pairs": ""})


def in_one_batch(receiver: Receiver) -> None:
    """Runs that begin together are not shown each other's replies."""
    parts = [{"question": PEOPLE, "pairs": ""}, {"question": RIVER, "pairs": MANY}]
    answering(MANY).batch(parts, {"max_concurrency": 1})


@pytest.mark.parametrize(
    "run",
    [
        independent,
        the_same_text,
        found_again,
        conversation,
        history_as_text,
        roles_as_text,
        unchanged,
        by_chance,
        suggested,
        in_one_batch,
    ],
)
def test_runs_that_owe_each_other_nothing_are_not_noted(
    receiver: Receiver, run: Callable[[Receiver], None]
) -> None:
    run(receiver)
    assert names(receiver) == [[] for _ in receiver.records]
    assert receiver.records


async def test_other_tasks_and_threads_are_not_looked_at(receiver: Receiver) -> None:
    thread = threading.Thread(target=lambda: writer(PEOPLE).invoke({"question": WHOLE}))
    thread.start()
    thread.join()

    await asyncio.create_task(writer(RIVER).ainvoke({"question": WHOLE}))
    await answering("Two million.").ainvoke({"question": RIVER, "pairs": ""})
    answering("Two million.").invoke({"question": PEOPLE, "pairs": ""})
    assert names(receiver) == [[], []]


def test_large_prompts_and_all_but_the_latest_are_let_go(receiver: Receiver) -> None:
    class Kept(str):
        """A text that can be looked for once nobody should hold it."""

    held: list[weakref.ref[Kept]] = []
    for size in (60_000, *[10] * 20):
        prompt = Kept("word " * size)
        held.append(weakref.ref(prompt))
        says("A reply of more than six words, kept for the next.").invoke([HumanMessage(prompt)])
        receiver.drafts.clear()
        del prompt
    gc.collect()
    alive = [at for at, one in enumerate(held) if one() is not None]
    assert 0 not in alive
    assert len(alive) <= 12


def test_an_answer_that_was_checked_ends_its_search_and_is_no_passage_later(receiver: Receiver) -> None:
    """What a run asked last may be a check of its answer."""
    kept: list[str] = []

    def recall(_: str) -> str:
        return "\n".join(kept)

    def turn(question: str) -> dict[str, Any]:
        found = Shelf(documents=[PARIS if "capital" in question else SEINE]).invoke(question)
        shown = RunnableLambda(recall).invoke("")
        reply = f"{MANY} {PARIS.page_content}" if "capital" in question else SEINE_RUNS
        said = says(reply).invoke(f"{shown}\n\n{found[0].page_content}\n\n{question}").content
        says("yes").invoke(f"Is this grounded? Reply yes or no.\n{said}")
        kept.append(f"Guest of the house: {question}\nHouse: {said}")
        return {"reply_to_guest": said}

    for question in (QUESTION, RIVER):
        RunnableLambda(turn).invoke(question)
    first, second = receiver.records
    assert texts(first.contexts) == [PARIS.page_content]
    assert texts(second.contexts) == [SEINE.page_content]
