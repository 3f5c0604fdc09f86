"""Searches of vector stores outside of retrievers: told once, and changed in nothing."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.example_selectors import (
    MaxMarginalRelevanceExampleSelector,
    SemanticSimilarityExampleSelector,
)
from langchain_core.messages import HumanMessage, SystemMessage
from langchain_core.prompts import ChatPromptTemplate, FewShotPromptTemplate, PromptTemplate
from langchain_core.runnables import RunnableLambda, RunnablePassthrough
from langchain_core.vectorstores import InMemoryVectorStore
from langchain_parts import FRANCE, PARIS, QUESTION, Receiver, Shelf, says, texts
from langgraph.config import get_store
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.store.memory import InMemoryStore

from steelyard_langchain import CallbackHandler, attach, record

FACTS = (PARIS.page_content, FRANCE.page_content)
ANSWER = "Paris is the capital of France."


class Store(InMemoryVectorStore):
    """A class that is made before any handler is, with a search of its own on top of another."""

    def similarity_search(self, query: str, k: int = 4, **kwargs: Any) -> list[Document]:
        return [document for document, _ in self.similarity_search_with_score(query, k, **kwargs)]


class Async(Store):
    """A store whose coroutines search by themselves."""

    async def asimilarity_search(self, query: str, k: int = 4, **kwargs: Any) -> list[Document]:
        await asyncio.sleep(0)
        return [FRANCE, PARIS]


def filled(kind: type[InMemoryVectorStore] = Store) -> InMemoryVectorStore:
    store = kind(DeterministicFakeEmbedding(size=8))
    store.add_documents([PARIS, FRANCE])
    return store


def prompt_of(documents: list[Any]) -> str:
    found = [one[0] if isinstance(one, tuple) else one for one in documents]
    return "Use this.\n\n" + "\n\n".join(one.page_content for one in found) + f"\n\n{QUESTION}"


@pytest.mark.parametrize(
    "search",
    [
        "similarity_search",
        "similarity_search_with_score",
        "max_marginal_relevance_search",
        "asimilarity_search",
        "asimilarity_search_with_score",
    ],
)
@pytest.mark.parametrize("kind", [Store, Async])
def test_what_a_step_searches_is_known(receiver: Receiver, kind: type[Store], search: str) -> None:
    store = filled(kind)

    async def answer(question: str) -> Any:
        found = getattr(store, search)(question, k=2)
        return await says(ANSWER).ainvoke(prompt_of(await found if search.startswith("a") else found))

    chain: Any = RunnableLambda(answer)
    asyncio.run(chain.ainvoke(QUESTION, {"callbacks": [CallbackHandler(receiver)]}))
    made = receiver.record
    assert (made.evidence, made.question) == ("known", QUESTION)
    assert sorted((one.id, one.text) for one in made.contexts) == [
        (one.id, one.page_content) for one in (PARIS, FRANCE)
    ]


def test_what_a_retriever_searches_is_told_once(receiver: Receiver) -> None:
    retriever = filled().as_retriever()
    chain: Any = retriever | RunnableLambda(prompt_of) | says(ANSWER)
    chain.invoke(QUESTION, {"callbacks": [CallbackHandler(receiver)]})
    assert len(receiver.record.contexts) == 2
    assert receiver.record.stages == ()


def test_a_search_outside_of_any_run_belongs_to_the_answer_that_shows_it(receiver: Receiver) -> None:
    attach(receiver)
    says(ANSWER).invoke(prompt_of(filled().similarity_search(QUESTION)))
    assert receiver.record.evidence == "known"


def test_a_search_in_a_block_belongs_to_it(receiver: Receiver) -> None:
    with record(receiver, question=QUESTION) as turn:
        turn.answer = str(says(ANSWER).invoke(prompt_of(filled().similarity_search(QUESTION))).content)
    assert [one.id for one in receiver.record.contexts] != [None, None]


def test_a_class_that_is_made_later_is_watched_and_errors_stay_its_own(receiver: Receiver) -> None:
    class Heard(CallbackHandler):
        failed: list[str] = []

        def on_retriever_error(self, error: BaseException, **kwargs: Any) -> None:
            self.failed.append(type(error).__name__)
            super().on_retriever_error(error, **kwargs)

    handler = Heard(receiver)

    class Broken(InMemoryVectorStore):
        def similarity_search(self, query: str, k: int = 4, **kwargs: Any) -> list[Document]:
            raise LookupError(query)

    def answer(question: str) -> Any:
        with pytest.raises(LookupError):
            filled(Broken).similarity_search(question)
        return says(ANSWER).invoke(prompt_of(filled().similarity_search(question)))

    RunnableLambda(answer).invoke(QUESTION, {"callbacks": [handler]})
    assert len(receiver.record.contexts) == 2 and handler.failed == ["LookupError"]


def test_other_handlers_see_no_difference() -> None:
    from langchain_core.callbacks import BaseCallbackHandler

    class Listener(BaseCallbackHandler):
        heard: list[str] = []

        def on_retriever_start(self, *args: Any, **kwargs: Any) -> None:
            self.heard.append("retriever")

    CallbackHandler(Receiver())
    chain: Any = RunnableLambda(lambda question: len(filled().similarity_search(question)))
    chain.invoke(QUESTION, {"callbacks": [Listener(), CallbackHandler(Receiver())]})
    assert Listener.heard == []


@pytest.mark.parametrize("kind", [SemanticSimilarityExampleSelector, MaxMarginalRelevanceExampleSelector])
@pytest.mark.parametrize("is_async", [False, True])
def test_examples_that_a_prompt_searches_for_are_not_passages(
    receiver: Receiver, kind: Any, is_async: bool
) -> None:
    examples = [
        {"asked": f"How big is {one}?", "query": f"MATCH (c) WHERE c.name = '{one}'"} for one in "ABC"
    ]
    selector = kind.from_examples(examples, DeterministicFakeEmbedding(size=8), Store, k=2)
    shots = FewShotPromptTemplate(
        example_selector=selector,
        example_prompt=PromptTemplate.from_template("{asked} -> {query}"),
        suffix="{question}",
        input_variables=["question"],
    )
    store = filled()
    chain: Any = RunnableLambda(lambda question: {"question": prompt_of(store.similarity_search(question))})
    chain = chain | shots | says(ANSWER)
    config: Any = {"callbacks": [CallbackHandler(receiver)]}
    asyncio.run(chain.ainvoke(QUESTION, config)) if is_async else chain.invoke(QUESTION, config)
    assert {*texts(receiver.record.contexts)} == {PARIS.page_content, FRANCE.page_content}


MEMORY = "She prefers trains to planes and is allergic to peanuts."
USER = ("memories", "u1")


@pytest.mark.parametrize("way", ["search", "get", "asearch", "aget"])
def test_a_memory_that_the_prompt_shows_is_known(receiver: Receiver, way: str) -> None:
    async def answer(state: MessagesState) -> dict[str, Any]:
        store = get_store()
        found = getattr(store, way)(*((USER, "m1") if way.endswith("get") else (USER,)))
        found = await found if way.startswith("a") else found
        memories = [found] if way.endswith("get") else found
        told = SystemMessage("You know her.\n" + "\n".join(one.value["data"] for one in memories))
        return {"messages": [await says("Take a banana.").ainvoke([told, *state["messages"]])]}

    store = InMemoryStore()
    store.put(USER, "m1", {"data": MEMORY})
    graph: Any = StateGraph(MessagesState).add_node("answer", answer).add_edge(START, "answer")
    asked = {"messages": [HumanMessage("A snack?")]}
    handler = CallbackHandler(receiver)
    asyncio.run(graph.compile(store=store).ainvoke(asked, {"callbacks": [handler]}))
    record = receiver.record
    assert (texts(record.contexts), record.evidence, record.notes) == ([MEMORY], "known", ())


def test_a_store_that_holds_nothing_tells_nothing(receiver: Receiver) -> None:
    store = InMemoryStore()
    CallbackHandler(receiver)
    assert (store.search(USER), store.get(USER, "m1")) == ([], None)
    assert receiver.drafts == []


@pytest.mark.parametrize("is_within", [False, True])
def test_what_a_store_tells_about_passages_is_not_text_beside_them(
    receiver: Receiver, is_within: bool
) -> None:
    about = {"source": "/data/in/atlas of the world, 3rd edition.pdf", "made": "printed in Leiden in 1811"}
    found = [
        Document(id=f"4f0c-11-9a-{at}", page_content=one, metadata=about) for at, one in enumerate(FACTS)
    ]
    template = ChatPromptTemplate.from_template("Use this context.\n\n{context}\n\nQuestion: {question}")
    context: Any = Shelf(documents=found) | (str if is_within else lambda documents: documents)
    chain: Any = {"context": context, "question": RunnablePassthrough()} | template | says(ANSWER)
    chain.invoke(QUESTION, {"callbacks": [CallbackHandler(receiver)]})
    assert (texts(receiver.record.contexts), receiver.record.notes) == ([*FACTS], ())
