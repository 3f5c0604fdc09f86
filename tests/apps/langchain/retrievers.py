"""Retrievers made of other retrievers, and passages that are not what the index was searched for."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from langchain_classic.retrievers import (
    ContextualCompressionRetriever,
    EnsembleRetriever,
    MergerRetriever,
    MultiQueryRetriever,
    MultiVectorRetriever,
    ParentDocumentRetriever,
)
from langchain_classic.retrievers.document_compressors import (
    DocumentCompressorPipeline,
    LLMChainExtractor,
    LLMChainFilter,
    LLMListwiseRerank,
)
from langchain_core.documents import BaseDocumentCompressor, BaseDocumentTransformer, Document
from langchain_core.runnables import RunnableLambda, RunnablePassthrough
from langchain_core.runnables import chain as as_chain
from langchain_core.stores import InMemoryStore
from langchain_core.tools import tool
from langchain_text_splitters import RecursiveCharacterTextSplitter

from apps.app import ALL, BOTH, Truth, chain
from apps.island import FARES, FERRY, LENS, MUSEUM, NEWS, STORM, SUNDAY, SUNDAY_ANSWER, embed
from apps.langchain.pieces import ANSWERING, answering, calls, documents, joined, model, shelf, store

PAIR = Truth(question=SUNDAY, contexts=(FERRY, STORM), answer=SUNDAY_ANSWER)
ONE = Truth(question=SUNDAY, contexts=(FERRY,), answer=SUNDAY_ANSWER)


def over(retriever: Any) -> Any:
    """The usual chain over a retriever."""
    return {"context": retriever | joined, "question": RunnablePassthrough()} | answering(SUNDAY_ANSWER)


@chain(Truth(question=SUNDAY, contexts=(FERRY, FARES), answer=SUNDAY_ANSWER))
def vector_store_as_retriever() -> Any:
    """`vectorstore.as_retriever(search_kwargs={"k": 2})`."""
    return over(store(FERRY, FARES).as_retriever(search_kwargs={"k": 2}))


@chain(PAIR)
def retriever_that_writes_queries() -> Any:
    """MultiQueryRetriever."""
    by_word = {"timetable": [FERRY, STORM], "morning": [STORM]}
    return over(
        MultiQueryRetriever.from_llm(
            shelf(FERRY, by_word=by_word), model(otherwise="ferry timetable\nmorning boat")
        )
    )


@chain(PAIR)
def two_searches_fused() -> Any:
    """EnsembleRetriever over a keyword search and a vector search."""
    return over(EnsembleRetriever(retrievers=[shelf(FERRY, STORM), shelf(FERRY)], weights=[0.4, 0.6]))


@chain(Truth(question=SUNDAY, contexts=(FERRY, STORM), answer=SUNDAY_ANSWER))
def two_stores_merged() -> Any:
    """MergerRetriever: the lists of two stores, one from each in turn."""
    return over(MergerRetriever(retrievers=[shelf(FERRY), shelf(STORM)]))


@chain(Truth(question=SUNDAY, contexts=("On Sundays it doesn't leave before 9:40.",), answer=SUNDAY_ANSWER))
def sentences_extracted() -> Any:
    """A model extracts what matters from each passage; only the extracts are in the prompt."""
    extracts = LLMChainExtractor.from_llm(
        model(("Signe", "On Sundays it doesn't leave before 9:40."), otherwise="NO_OUTPUT")
    )
    return over(ContextualCompressionRetriever(base_compressor=extracts, base_retriever=shelf(FERRY, FARES)))


@chain(ONE)
def passages_filtered_by_a_model() -> Any:
    """LLMChainFilter asks for each passage whether it matters."""
    keeps = LLMChainFilter.from_llm(model(("Signe", "YES"), otherwise="NO"))
    return over(ContextualCompressionRetriever(base_compressor=keeps, base_retriever=shelf(FERRY, FARES)))


@chain(Truth(question=SUNDAY, contexts=(STORM, FERRY), answer=SUNDAY_ANSWER))
def reranked_in_one_call() -> Any:
    """LLMListwiseRerank orders all passages in one call and keeps the best two."""
    ranks = model(otherwise=calls("RankDocuments", ranked_document_ids=[2, 0, 1]))
    rerank: Any = LLMListwiseRerank.from_llm(ranks, top_n=2)
    return over(
        ContextualCompressionRetriever(base_compressor=rerank, base_retriever=shelf(FERRY, FARES, STORM))
    )


class Nearest(BaseDocumentCompressor):
    """Stands for a cross-encoder: keeps the passage that shares most with the question."""

    def compress_documents(self, documents: Any, query: str, callbacks: Any = None) -> list[Document]:
        def near(document: Document) -> float:
            pairs = zip(embed(document.page_content), embed(query), strict=True)
            return sum(one * other for one, other in pairs)

        best = max(documents, key=near)
        return [Document(page_content=best.page_content, metadata={"relevance_score": near(best)})]


@chain(ONE)
def reranked_by_a_small_model() -> Any:
    """A cross-encoder in a pipeline of compressors keeps the best passage; it is no language model."""
    nearest = DocumentCompressorPipeline(transformers=[Nearest()])
    return over(ContextualCompressionRetriever(base_compressor=nearest, base_retriever=shelf(FARES, FERRY)))


@chain(Truth(question=SUNDAY, contexts=(FERRY, STORM, FARES), answer=SUNDAY_ANSWER))
def reordered_for_long_contexts() -> Any:
    """A document transformer after the retriever puts the weakest passages in the middle."""

    class Ends(BaseDocumentTransformer):
        def transform_documents(self, documents: Any, **kwargs: Any) -> list[Document]:
            return [*documents[::2], *reversed(documents[1::2])]

    return over(shelf(FERRY, FARES, STORM) | Ends().transform_documents)


@chain(Truth(question=LENS, contexts=(MUSEUM,), answer=SUNDAY_ANSWER))
def summaries_searched_passages_shown() -> Any:
    """MultiVectorRetriever: summaries are searched for, the passages they stand for are shown."""
    summaries = store("On the museum and its lens.")
    docstore: InMemoryStore = InMemoryStore()
    (found,) = documents(MUSEUM)
    docstore.mset([("m1", found)])
    summaries.add_documents([Document(page_content="Lighthouse museum, briefly.", metadata={"doc_id": "m1"})])
    return over(MultiVectorRetriever(vectorstore=summaries, docstore=docstore, id_key="doc_id"))


@chain(Truth(question=SUNDAY, contexts=(f"{FERRY} {STORM}",), answer=SUNDAY_ANSWER))
def children_searched_parents_shown() -> Any:
    """ParentDocumentRetriever: small chunks are searched for, their parents are shown."""
    retriever = ParentDocumentRetriever(
        vectorstore=store(),
        docstore=InMemoryStore(),
        child_splitter=RecursiveCharacterTextSplitter(chunk_size=60, chunk_overlap=0),
    )
    retriever.add_documents([Document(page_content=f"{FERRY} {STORM}")])
    return over(retriever)


@chain(Truth(question=SUNDAY, contexts=(FERRY, STORM), answer=SUNDAY_ANSWER, one_text=True))
def neighbours_joined() -> Any:
    """After retrieval a function puts the neighbouring chunk behind each chunk that was found."""

    def widen(found: list[Document]) -> list[Document]:
        return [Document(page_content=f"{found[0].page_content}\n{STORM}", metadata=found[0].metadata)]

    return over(shelf(FERRY) | widen)


@chain(PAIR, ways=BOTH)
def retriever_as_a_plain_function() -> Any:
    """A function with `@chain` is the retriever: it asks a service and makes Documents."""

    @as_chain
    def search(question: str) -> list[Document]:
        return documents(FERRY, STORM)

    return over(search)


@chain(replace(PAIR, one_text=True), ways=BOTH)
def texts_of_a_plain_function() -> Any:
    """A function that returns text is the retriever: only its place says that it is a passage."""

    @as_chain
    def context(question: str) -> str:
        hits = [{"content": FERRY, "score": 0.9}, {"content": STORM, "score": 0.4}]
        return "\n\n".join(str(hit["content"]) for hit in hits)

    return {"context": context, "question": RunnablePassthrough()} | answering(SUNDAY_ANSWER)


@chain(Truth(question=SUNDAY, contexts=(FERRY, NEWS), answer=SUNDAY_ANSWER), ways=BOTH)
def a_tool_in_a_chain() -> Any:
    """A search tool that returns a list of results stands in the chain beside the retriever."""

    @tool
    def web_search(query: str) -> list[dict[str, str]]:
        """Searches the web."""
        return [{"url": "https://island.example/news", "content": NEWS}]

    def both(found: dict[str, Any]) -> str:
        return f"{joined(found['local'])}\n\nFrom the web:\n" + "\n".join(
            hit["content"] for hit in found["web"]
        )

    return {
        "context": {"local": shelf(FERRY), "web": web_search} | RunnableLambda(both),
        "question": RunnablePassthrough(),
    } | answering(SUNDAY_ANSWER)


@chain(ONE, ways=ALL)
def second_model_after_a_failure() -> Any:
    """`with_fallbacks`: the first model fails, the second answers from the same prompt."""
    broken = model(otherwise=ConnectionError("overloaded"))
    spare = broken.with_fallbacks([model(otherwise=SUNDAY_ANSWER)])
    return (
        {"context": shelf(FERRY) | joined, "question": RunnablePassthrough()}
        | ANSWERING
        | spare
        | (lambda message: message.content)
    )
