"""Plain Python around separate calls: classes of notebooks, services, chat loops. No run is around them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from operator import itemgetter
from typing import Any, Literal

from langchain_core.messages import HumanMessage, SystemMessage, ToolMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.runnables import RunnablePassthrough
from langchain_core.tools import tool
from pydantic import BaseModel

from apps.app import Truth, script
from apps.island import DOG, FARES, FERRY, NEWS, PRICE, PRICE_ANSWER, STORM, SUNDAY, SUNDAY_ANSWER
from apps.langchain.pieces import ANSWERING, answering, calls, documents, joined, model, prompt, shelf, store

ROOTLESS: Any = dict.fromkeys(("openinference", "openllmetry"), ("turns", "question", "contexts", "answer"))
"""Where no run is around the calls, a recorder may say `record` instead of joining what it cannot join."""

HIDDEN: Any = {**ROOTLESS, **dict.fromkeys(("handler", "attach", "block"), ("contexts",))}
"""And where no retriever runs and no document passes by, a block cannot know the contexts either."""


@script(
    Truth(question=SUNDAY, contexts=(FERRY, FARES), answer=SUNDAY_ANSWER),
    rootless=True,
    allowed_notes=HIDDEN,
)
def search_then_ask(config: Any) -> str:
    """`similarity_search`, a formatted text, one model call: the shortest RAG script."""
    context = joined(store(FERRY, FARES).similarity_search(SUNDAY, k=2))
    messages = ANSWERING.format_messages(context=context, question=SUNDAY)
    return str(model(otherwise=SUNDAY_ANSWER).invoke(messages, config).content)


@script(
    Truth(question=SUNDAY, contexts=(FERRY, FARES), answer=SUNDAY_ANSWER),
    rootless=True,
    allowed_notes=ROOTLESS,
)
def retrieve_then_run_a_chain(config: Any) -> str:
    """The retriever is invoked on its own; its documents are passed to a chain."""
    found = shelf(FERRY, FARES).invoke(SUNDAY, config)
    return answering(SUNDAY_ANSWER).invoke({"context": found, "question": SUNDAY}, config)


@script(
    Truth(question=SUNDAY, contexts=(FERRY, FARES), answer=SUNDAY_ANSWER),
    rootless=True,
    allowed_notes=ROOTLESS,
)
def retrieve_then_ask(config: Any) -> str:
    """The retriever and the model are invoked one after the other, the prompt is an f-string."""
    found = shelf(FERRY, FARES).invoke(SUNDAY, config)
    prompted = f"Answer out of this:\n{joined(found)}\n\nThe question: {SUNDAY}"
    return str(model(otherwise=SUNDAY_ANSWER).invoke(prompted, config).content)


@tool
def search_pages(query: str) -> list[str]:
    """Searches the island's pages."""
    return [FERRY, FARES]


def tool_loop(config: Any, run: Callable[[Any], Any]) -> str:
    """Asks a model until it calls no more tools."""
    speaks = model(("Signe", SUNDAY_ANSWER), otherwise=calls("search_pages", query="Sunday ferry"))
    messages: list[Any] = [SystemMessage("You help visitors."), HumanMessage(SUNDAY)]
    while True:
        messages.append(reply := speaks.invoke(messages, config))
        if not reply.tool_calls:
            return str(reply.content)
        messages += [run(call) for call in reply.tool_calls]


@script(
    Truth(question=SUNDAY, contexts=(FERRY, FARES), answer=SUNDAY_ANSWER),
    rootless=True,
    allowed_notes=ROOTLESS,
)
def tool_loop_in_plain_python(config: Any) -> str:
    """A loop of a notebook: a model with tools, each call run by `tool.invoke`."""
    return tool_loop(config, lambda call: search_pages.invoke(call, config))


@script(
    Truth(question=SUNDAY, contexts=(FERRY, FARES), answer=SUNDAY_ANSWER),
    rootless=True,
    allowed_notes={**ROOTLESS, "block": ("contexts",)},
)
def functions_called_for_the_model(config: Any) -> str:
    """The same with plain functions, whose results only the messages hold."""

    def run(call: Any) -> ToolMessage:
        return ToolMessage(json.dumps([FERRY, FARES]), tool_call_id=call["id"])

    return tool_loop(config, run)


class Relevance(BaseModel):
    """A grade."""

    response: Literal["Relevant", "Irrelevant"]


class SelfRag:
    """A class of chains that its `run` calls one by one: grade each passage, answer, check."""

    def __init__(self) -> None:
        self.store = store(FERRY, FARES, STORM)
        self.grade = prompt("Is this relevant to {query}? {context}") | model(
            ("Signe", calls("Relevance", response="Relevant")),
            otherwise=calls("Relevance", response="Irrelevant"),
        ).with_structured_output(Relevance)
        self.answer = answering(SUNDAY_ANSWER)
        self.support = prompt("Is {answer} supported by {context}?") | model(otherwise="Fully supported")

    def run(self, query: str, config: Any) -> str:
        kept = []
        for document in self.store.similarity_search(query, k=3):
            grade: Any = self.grade.invoke({"query": query, "context": document.page_content}, config)
            if grade.response == "Relevant":
                kept.append(document.page_content)
        answer = self.answer.invoke({"context": "\n".join(kept), "question": query}, config)
        self.support.invoke({"answer": answer, "context": "\n".join(kept)}, config)
        return answer


@script(Truth(question=SUNDAY, contexts=(FERRY,), answer=SUNDAY_ANSWER), rootless=True, allowed_notes=HIDDEN)
def class_of_graders(config: Any) -> str:
    """Self-RAG as a class: three grades, an answer and a check are five roots of one turn."""
    return SelfRag().run(SUNDAY, config)


@script(
    Truth(question=SUNDAY, contexts=(FERRY, NEWS), answer=SUNDAY_ANSWER, one_text=True),
    rootless=True,
    allowed_notes=HIDDEN,
)
def class_that_also_searches_the_web(config: Any) -> str:
    """Corrective RAG as a class: the best passage and the web's text are put together by hand."""
    found = store(FERRY, FARES).similarity_search(SUNDAY, k=2)
    judge = prompt("How relevant, 0 to 1? {document}") | model(("Signe", "0.6"), otherwise="0.1")
    scores = [float(str(judge.invoke({"document": d.page_content}, config).content)) for d in found]
    query = (prompt("Rewrite for the web: {q}") | model(otherwise="ferry Sunday news")).invoke(
        {"q": SUNDAY}, config
    )
    web = {str(query.content): NEWS}[str(query.content)]
    knowledge = "\n".join([found[scores.index(max(scores))].page_content, web])
    return answering(SUNDAY_ANSWER).invoke({"context": knowledge, "question": SUNDAY}, config)


@script(
    Truth(question=PRICE, contexts=(FARES, FERRY), answer=PRICE_ANSWER, relayed=True),
    rootless=True,
    parts=(
        Truth(question="What does a dog pay?", contexts=(FARES,), answer=DOG),
        Truth(question="When does it leave?", contexts=(FERRY,), answer=DOG),
    ),
)
def loop_over_sub_questions(config: Any) -> str:
    """Decomposition as a loop of a notebook: each pair of question and answer is a chain run of its own."""
    search = shelf(FERRY, by_word={"dog": [FARES]})
    small = {
        "context": search | joined,
        "question": RunnablePassthrough(),
    } | answering(DOG)
    pairs = [small.invoke(part, config) for part in ("What does a dog pay?", "When does it leave?")]
    last = prompt("Pairs: {pairs}\nQuestion: {question}")
    return answering(PRICE_ANSWER, last).invoke({"pairs": "\n".join(pairs), "question": PRICE}, config)


DOG_FARE = "What does a dog pay on the ferry?"
DEPARTURE = "When does the ferry leave?"
LEAVES = "The Signe leaves at nine, and takes a dog along."


@script(
    Truth(question=PRICE, contexts=(FARES, FERRY), answer=PRICE_ANSWER, relayed=True),
    rootless=True,
    parts=(
        Truth(question=DOG_FARE, contexts=(FARES,), answer=DOG),
        Truth(question=DEPARTURE, contexts=(FERRY,), answer=LEAVES),
    ),
)
def sub_questions_on_top_of_each_other(config: Any) -> str:
    """A model breaks the question down; each part is shown the pairs before it, a last chain all of them."""
    decompose = prompt("Generate sub-questions related to: {question}") | model(
        otherwise=f"1. {DOG_FARE}\n2. {DEPARTURE}"
    )
    written = str(decompose.invoke({"question": PRICE}, config).content).split("\n")
    search = shelf(FERRY, by_word={"dog": [FARES]})
    template = prompt("Pairs: {pairs}\nContext: {context}\nQuestion: {question}")
    told = ""
    for line, reply in zip(written, (DOG, LEAVES), strict=True):
        part = RunnablePassthrough.assign(context=itemgetter("question") | search | joined)
        question = line.partition(". ")[2]
        shown = (part | answering(reply, template)).invoke({"question": question, "pairs": told}, config)
        told += f"\nQuestion: {question}\nAnswer: {shown}"
    last = prompt("Pairs of questions and answers:\n{context}\nQuestion: {question}")
    return answering(PRICE_ANSWER, last).invoke({"context": told, "question": PRICE}, config)


@script(
    Truth(question=SUNDAY, contexts=(FERRY,), answer=SUNDAY_ANSWER),
    Truth(question=PRICE, contexts=(FARES,), answer=PRICE_ANSWER),
    rootless=True,
    allowed_notes=ROOTLESS,
)
async def two_users_at_once(config: Any) -> tuple[str, str]:
    """A service: two requests at once, each in a task of its own, must not be mixed."""

    async def serve(question: str, passage: str, answer: str) -> str:
        found = await shelf(passage).ainvoke(question, config)
        await asyncio.sleep(0)
        return await answering(answer).ainvoke({"context": joined(found), "question": question}, config)

    return await asyncio.gather(serve(SUNDAY, FERRY, SUNDAY_ANSWER), serve(PRICE, FARES, PRICE_ANSWER))


class Shelfmark(BaseModel):
    """Where to look."""

    datasource: str


@script(Truth(question=SUNDAY, contexts=(FERRY, FARES), answer=SUNDAY_ANSWER))
def route_asked_for_first(config: Any) -> str:
    """A chain fills in a form with a route; then the chain of that route answers."""
    form = model(otherwise=calls("Shelfmark", datasource="harbour_pages")).with_structured_output(Shelfmark)
    router = prompt("Route the question to the data source that can answer it.\n\n{question}") | form
    route: Any = router.invoke({"question": SUNDAY}, config)
    found = {"harbour_pages": shelf(FERRY, FARES)}[route.datasource]
    chain = {"context": found | joined, "question": RunnablePassthrough()} | answering(SUNDAY_ANSWER)
    return str(chain.invoke(SUNDAY, config))


class Described(BaseModel):
    """Questions that a page answers."""

    questions: list[str]


@script(Truth(question=SUNDAY, contexts=(FERRY, FARES), answer=SUNDAY_ANSWER))
def pages_described_for_the_index(config: Any) -> str:
    """Each page is summarised, and questions are made that it answers, before anybody asks one."""
    page = {"page": lambda document: document.page_content}
    summarise = page | prompt("Summarise this page:\n\n{page}") | model(otherwise="It is about boats.")
    form = model(otherwise=calls("Described", questions=["When do boats leave?"]))
    imagine = (
        page
        | prompt("Which questions does this page answer?\n\n{page}")
        | form.with_structured_output(Described)
        | (lambda described: described.questions)
    )
    pages = documents(FERRY, FARES)
    summarise.batch(pages, config)
    imagine.batch(pages, config)
    chain = {"context": shelf(FERRY, FARES) | joined, "question": RunnablePassthrough()}
    return str((chain | answering(SUNDAY_ANSWER)).invoke(SUNDAY, config))


class Links(BaseModel):
    """What a page says of a thing."""

    thing: str
    links: list[str]


@script(
    Truth(question=SUNDAY, contexts=(FERRY, FARES), answer=SUNDAY_ANSWER),
    allowed_notes=dict.fromkeys(("openinference", "openllmetry"), ("turns",)),
)
def fields_taken_out_of_pages(config: Any) -> str:
    """A graph of things is made: a form is filled in for each page, before anybody asks."""
    form = model(otherwise=calls("Links", thing="Signe", links=["leaves from Nordhavn"]))
    extract = prompt("What is linked with what?\n\n{input}") | form.with_structured_output(
        Links, include_raw=True
    )
    extract.batch([{"input": FERRY}, {"input": FARES}], config)
    chain = {"context": shelf(FERRY, FARES) | joined, "question": RunnablePassthrough()}
    return str((chain | answering(SUNDAY_ANSWER)).invoke(SUNDAY, config))


@script(Truth(question=SUNDAY, contexts=(FERRY,), answer=SUNDAY_ANSWER), rootless=True, allowed_notes=HIDDEN)
def streamed_to_a_page(config: Any) -> str:
    """A page streams: search, then `llm.stream(messages)`, pieces shown as they come."""
    context = joined(store(FERRY).similarity_search(SUNDAY, k=1))
    messages = [SystemMessage(f"Context:\n{context}"), HumanMessage(SUNDAY)]
    return "".join(str(piece.content) for piece in model(otherwise=SUNDAY_ANSWER).stream(messages, config))


@script(
    Truth(question=SUNDAY, contexts=(FERRY, FARES), answer=SUNDAY_ANSWER, one_text=True),
    rootless=True,
    allowed_notes=ROOTLESS,
)
def prompt_filled_before_the_chain(config: Any) -> str:
    """The retriever is invoked, the prompt is filled in, and a chain of model and parser is given that."""
    found = shelf(FERRY, FARES).invoke(SUNDAY, config)
    filled = ANSWERING.invoke({"context": joined(found), "question": SUNDAY})
    return (model(otherwise=SUNDAY_ANSWER) | StrOutputParser()).invoke(filled, config)
