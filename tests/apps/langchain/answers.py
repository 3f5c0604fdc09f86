"""What becomes of the model's reply: forms, citations, checks, several calls; and the classic chains."""

from __future__ import annotations

import warnings
from operator import add
from typing import Annotated, Any, TypedDict

from langchain_classic.chains import (
    LLMChain,
    MapReduceDocumentsChain,
    MapRerankDocumentsChain,
    ReduceDocumentsChain,
    RefineDocumentsChain,
    RetrievalQA,
    StuffDocumentsChain,
    create_retrieval_chain,
)
from langchain_classic.chains.combine_documents import create_stuff_documents_chain
from langchain_classic.output_parsers.regex import RegexParser
from langchain_core.documents import Document
from langchain_core.messages import AnyMessage, HumanMessage, SystemMessage
from langchain_core.output_parsers import JsonOutputParser, StrOutputParser
from langchain_core.prompts import ChatPromptTemplate, PromptTemplate
from langchain_core.runnables import RunnableLambda, RunnablePassthrough
from langchain_core.runnables import chain as as_chain
from langgraph.graph import START, StateGraph
from pydantic import BaseModel

from apps.app import BOTH, Truth, chain
from apps.island import FARES, FERRY, PRICE, PRICE_ANSWER, STORM, SUNDAY, SUNDAY_ANSWER
from apps.langchain.pieces import ANSWERING, answering, calls, joined, model, prompt, shelf

PAIR = Truth(question=SUNDAY, contexts=(FERRY, FARES), answer=SUNDAY_ANSWER)
FOUND = shelf(FERRY, FARES)
STEPS: Any = {"context": FOUND | joined, "question": RunnablePassthrough()}


class Cited(BaseModel):
    """An answer with the numbers of its sources."""

    answer: str
    citations: list[int]


class Quote(BaseModel):
    """What a source says."""

    source_id: int
    quote: str


class Quoted(BaseModel):
    """An answer with its quotes."""

    answer: str
    quotes: list[Quote]


@chain(PAIR, ways=BOTH)
def answer_in_a_form() -> Any:
    """`with_structured_output`: the answer comes as arguments of a forced tool call, with citations."""
    form = model(otherwise=calls("Cited", answer=SUNDAY_ANSWER, citations=[0]))
    return STEPS | ANSWERING | form.with_structured_output(Cited)


@chain(PAIR, ways=BOTH)
def answer_with_quotes() -> Any:
    """The form quotes its sources word for word: a quote is not the answer."""
    quote = {"source_id": 0, "quote": "On Sundays it doesn't leave before 9:40."}
    form = model(otherwise=calls("Quoted", answer=SUNDAY_ANSWER, quotes=[quote]))
    return STEPS | ANSWERING | form.with_structured_output(Quoted) | (lambda given: given.model_dump())


@chain(PAIR, ways=BOTH)
def answer_as_json() -> Any:
    """The model is told to write JSON; a parser makes a mapping of it."""
    written = f'{{"answer": "{SUNDAY_ANSWER}", "confidence": 0.9}}'
    return STEPS | ANSWERING | model(otherwise=written) | JsonOutputParser()


@chain(
    Truth(
        question=SUNDAY,
        contexts=(FERRY, FARES),
        answer=f"{SUNDAY_ANSWER}\n\nSources: island/0.md, island/1.md",
    )
)
def sources_added_to_the_answer() -> Any:
    """A function appends the list of sources to the model's text."""
    add: Any = RunnableLambda(lambda text: f"{text}\n\nSources: island/0.md, island/1.md")
    return STEPS | ANSWERING | model(otherwise=SUNDAY_ANSWER) | StrOutputParser() | add


@chain(PAIR, ways=BOTH)
def answer_checked_afterwards() -> Any:
    """A second call checks the answer against the passages and says `yes`; the answer stays the first's."""
    check = prompt("Facts:\n{context}\n\nIs this supported? {answer}") | model(otherwise="yes")

    @as_chain
    def answer(question: str) -> str:
        given = {"context": joined(FOUND.invoke(question)), "question": question}
        text = answering(SUNDAY_ANSWER).invoke(given)
        verdict = check.invoke({"context": joined(FOUND.invoke(question)), "answer": text})
        return text if verdict.content == "yes" else "I don't know."

    return answer


@chain(Truth(question=SUNDAY, contexts=(FERRY, FARES), answer=SUNDAY_ANSWER, relayed=True), ways=BOTH)
def answer_polished() -> Any:
    """A second call rewrites the draft for the reader: the user sees the second reply."""
    polish = prompt("Polish this draft: {draft}") | model(otherwise=SUNDAY_ANSWER) | StrOutputParser()
    draft = STEPS | ANSWERING | model(otherwise="Sunday, first ferry: 9:40, not earlier.") | StrOutputParser()
    return {"draft": draft} | polish


@chain(PAIR, ways=BOTH)
def answer_tried_again() -> Any:
    """The first answer fails a check; a second try with the same passages is shown."""
    replies = iter(["Maybe never.", SUNDAY_ANSWER])

    @as_chain
    def answer(question: str) -> str:
        given = {"context": joined(FOUND.invoke(question)), "question": question}
        text = ""
        while "9:40" not in text:
            text = answering(next(replies)).invoke(given)
        return text

    return answer


@chain(Truth(question=SUNDAY, contexts=(FERRY, FARES), answer=SUNDAY_ANSWER), given=lambda q: {"input": q})
def retrieval_chain_of_the_library() -> Any:
    """`create_retrieval_chain` over `create_stuff_documents_chain`."""
    template = ChatPromptTemplate.from_messages([("system", "Use:\n{context}"), ("human", "{input}")])
    return create_retrieval_chain(
        FOUND, create_stuff_documents_chain(model(otherwise=SUNDAY_ANSWER), template)
    )


@chain(PAIR, given=lambda q: {"query": q}, ways=BOTH)
def retrieval_qa_with_sources() -> Any:
    """`RetrievalQA` with `return_source_documents`."""
    return RetrievalQA.from_chain_type(
        model(otherwise=SUNDAY_ANSWER), retriever=FOUND, return_source_documents=True
    )


@chain(
    Truth(question=PRICE, contexts=(FARES, STORM), answer=PRICE_ANSWER, relayed=True),
    given=lambda q: {"query": q},
    ways=BOTH,
)
def mapped_and_reduced() -> Any:
    """Map-reduce: each passage is read in a call of its own; the notes are combined into the answer."""
    reader = model(
        ("Grown-ups", "A grown-up pays 12 euros, a dog 3."), otherwise="A ticket stays good for one more day."
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        each = LLMChain(llm=reader, prompt=PromptTemplate.from_template("Note what matters: {page}"))
        last = LLMChain(
            llm=model(otherwise=PRICE_ANSWER),
            prompt=PromptTemplate.from_template("Notes:\n{page}\n\nQuestion: {question}"),
        )
        stuff = StuffDocumentsChain(llm_chain=last, document_variable_name="page")
        combine = MapReduceDocumentsChain(
            llm_chain=each,
            reduce_documents_chain=ReduceDocumentsChain(combine_documents_chain=stuff),
            document_variable_name="page",
        )
        return RetrievalQA(combine_documents_chain=combine, retriever=shelf(FARES, STORM))


@chain(
    Truth(question=PRICE, contexts=(FARES, STORM), answer=PRICE_ANSWER, relayed=True),
    given=lambda q: {"query": q},
    ways=BOTH,
)
def refined_passage_by_passage() -> Any:
    """Refine: the first passage gives an answer that each further passage may improve."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        first = LLMChain(
            llm=model(otherwise="A grown-up pays 12 euros and a dog pays 3."),
            prompt=PromptTemplate.from_template("Passage: {page}\nQuestion: {question}"),
        )
        more = LLMChain(
            llm=model(otherwise=PRICE_ANSWER),
            prompt=PromptTemplate.from_template("So far: {answer}\nMore: {page}\nQuestion: {question}"),
        )
        combine = RefineDocumentsChain(
            initial_llm_chain=first,
            refine_llm_chain=more,
            document_variable_name="page",
            initial_response_name="answer",
        )
        return RetrievalQA(combine_documents_chain=combine, retriever=shelf(FARES, STORM))


@chain(Truth(question=PRICE, contexts=(FARES, STORM), answer=PRICE_ANSWER, relayed=True), ways=BOTH)
def refined_within_a_function() -> Any:
    """A function makes a Document, finds another, and refines by a classic chain, which fills no template."""
    refining = refined_passage_by_passage().combine_documents_chain

    def answer(question: str) -> Any:
        pages = [Document(page_content=FARES), *shelf(STORM).invoke(question)]
        return refining.invoke({"input_documents": pages, "question": question})["output_text"]

    return RunnableLambda(answer)


@chain(
    Truth(question=SUNDAY, contexts=(FERRY,), answer=SUNDAY_ANSWER),
    given=lambda q: {"query": q},
    ways=BOTH,
)
def best_of_one_answer_each() -> Any:
    """Map-rerank: each passage gives an answer with a score, and the best answer is shown."""
    reader = model(
        ("Signe", f"{SUNDAY_ANSWER}\nScore: 95"), otherwise="This document does not answer.\nScore: 0"
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        each = LLMChain(
            llm=reader,
            prompt=PromptTemplate(
                template="Passage: {page}\nQuestion: {question}",
                input_variables=["page", "question"],
                output_parser=RegexParser(regex=r"(.*?)\nScore: (\d*)", output_keys=["answer", "score"]),
            ),
        )
        combine = MapRerankDocumentsChain(
            llm_chain=each, document_variable_name="page", rank_key="score", answer_key="answer"
        )
        return RetrievalQA(combine_documents_chain=combine, retriever=shelf(FERRY, FARES))


class News(TypedDict, total=False):
    """What a graph keeps that names its answer as it likes."""

    query: str
    router: str
    pages: str
    brief: str


@chain(
    Truth(question=SUNDAY, contexts=(FERRY, FARES), answer=SUNDAY_ANSWER),
    given=lambda question: {"query": question},
)
def answer_under_a_name_of_its_own() -> Any:
    """A graph's state holds a route, the joined passages and the answer, none under a usual name."""

    def route(state: News) -> News:
        return {"router": "pages"}

    def look(state: News) -> News:
        return {"pages": joined(shelf(FERRY, FARES).invoke(state["query"]))}

    def write(state: News) -> News:
        given = {"context": state["pages"], "question": state["query"]}
        return {"brief": answering(SUNDAY_ANSWER).invoke(given)}

    builder = StateGraph(News)
    builder.add_sequence([route, look, write])
    builder.add_edge(START, "route")
    return builder.compile()


class Talk(TypedDict, total=False):
    """A conversation whose parts have names of their own."""

    current_query: AnyMessage
    conversation: Annotated[list[AnyMessage], add]
    found: list[Any]


@chain(
    Truth(question=SUNDAY, contexts=(FERRY, FARES), answer=SUNDAY_ANSWER),
    given=lambda question: {"current_query": HumanMessage(question)},
)
def conversation_under_a_name_of_its_own() -> Any:
    """The user's message is the state's `current_query`, and the messages are its `conversation`."""

    def look(state: Talk) -> Talk:
        return {"found": FOUND.invoke(str(state["current_query"].content))}

    def talk(state: Talk) -> Talk:
        said = [SystemMessage(f"You know this:\n{joined(state['found'])}"), state["current_query"]]
        return {"conversation": [state["current_query"], model(otherwise=SUNDAY_ANSWER).invoke(said)]}

    builder = StateGraph(Talk)
    builder.add_sequence([look, talk])
    builder.add_edge(START, "look")
    return builder.compile()


@chain(Truth(question=SUNDAY, contexts=(FERRY,), answer=SUNDAY_ANSWER))
def other_chain_where_one_fails() -> Any:
    """`with_fallbacks` around a whole chain, whose model fails after it was shown other passages."""
    question: Any = RunnablePassthrough()
    failing = ANSWERING | model(otherwise=RuntimeError("out of tokens")) | StrOutputParser()
    first = {"context": shelf(STORM) | joined, "question": question} | failing
    return first.with_fallbacks(
        [{"context": shelf(FERRY) | joined, "question": question} | answering(SUNDAY_ANSWER)]
    )
