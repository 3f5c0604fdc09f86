"""Everything that finds passages in a LangChain application, built by the choice of its kind."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any
from zlib import crc32

from langchain_classic.retrievers import (
    ContextualCompressionRetriever,
    EnsembleRetriever,
    MultiQueryRetriever,
)
from langchain_core.documents import Document
from langchain_core.documents.compressor import BaseDocumentCompressor
from langchain_core.embeddings import Embeddings
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import Runnable, RunnableLambda
from langchain_core.vectorstores import VectorStore

from generator.choices import Choices
from generator.langchain.models import Speaker, now
from generator.texts import title_of
from generator.turns import Turn

KINDS = (
    *("base", "store", "multi_query", "ensemble", "compression", "documents", "texts", "dicts"),
    *("rows", "joined", "titled", "read"),
)
"""Of the last seven five are plain functions: of documents, texts, dicts, rows with titles, one joined text.
`titled` makes rows with titles out of what a retriever found, `read` finds titles, and then their texts."""


def documents(texts: Sequence[str]) -> list[Document]:
    return [
        Document(page_content=text, id=f"d{crc32(text.encode())}", metadata={"source": f"page-{at}.md"})
        for at, text in enumerate(texts)
    ]


class Shelf(BaseRetriever):
    """Finds what the turn says; one of two halves finds every other passage."""

    half: int | None = None
    most: int | None = None

    def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
        found = now(run_manager).find(query)[: self.most]
        return documents(found if self.half is None else found[self.half :: 2])


class Store(VectorStore):
    """A vector store whose search finds what the turn says."""

    @property
    def embeddings(self) -> Embeddings | None:
        return None

    def similarity_search(self, query: str, k: int = 4, **kwargs: Any) -> list[Document]:
        return documents(now().find(query))

    @classmethod
    def from_texts(cls, *args: Any, **kwargs: Any) -> Store:
        raise NotImplementedError


class KeepsShown(BaseDocumentCompressor):
    """Keeps what the turn shows."""

    def compress_documents(
        self, documents: Sequence[Document], query: str, callbacks: Any = None
    ) -> list[Document]:
        shown = now().shown if callbacks is None else now(_Manager(callbacks)).shown
        return [document for document in documents if document.page_content in shown]


class _Manager:
    def __init__(self, callbacks: Any) -> None:
        self.metadata = getattr(callbacks, "metadata", None)


def retriever(choices: Choices) -> Runnable[Any, Any]:
    """What is invoked with a query."""
    kind = choices["retriever"]
    if choices["way"] == "batch" and kind == "store":
        kind = "base"  # a store is not told which run of the batch it searches for
    if kind == "store":
        return Store().as_retriever()
    if kind == "multi_query":
        return MultiQueryRetriever.from_llm(Shelf(), llm=Speaker(role="queries"), include_original=True)
    if kind == "ensemble":
        return EnsembleRetriever(retrievers=[Shelf(half=0), Shelf(half=1)], weights=[0.5, 0.5])
    if kind == "compression":
        return ContextualCompressionRetriever(base_compressor=KeepsShown(), base_retriever=Shelf())
    if kind == "titled":
        return Shelf() | RunnableLambda(titled)
    if kind == "read":
        hits: Runnable[Any, Any] = RunnableLambda(lambda query: {"query": query, "hits": found_titles(query)})
        return hits | RunnableLambda(read_pages)
    return Shelf() if kind == "base" else RunnableLambda(finder(kind)).with_config(run_name="look")


def rows(found: Sequence[str]) -> list[dict[str, Any]]:
    return [{"title": title_of(at), "text": text, "link": f"#{at}"} for at, text in enumerate(found)]


def titled(found: Sequence[Document]) -> list[dict[str, Any]]:
    """Documents as rows with titles."""
    return rows([one.page_content for one in found])


def found_titles(query: str) -> list[dict[str, str]]:
    """What a search tells of pages before they are read."""
    return [{"heading": f"No {at} of 9", "link": f"#{at}"} for at in range(len(now().find(query)))]


def read_pages(given: dict[str, Any]) -> list[dict[str, Any]]:
    """The same with the texts of the pages."""
    found = now().find(given["query"])
    read = [{**hit, "text": text} for hit, text in zip(given["hits"], found, strict=True)]
    now().wholes += map(_of_row, read)
    return read


def finder(kind: str) -> Callable[[str], Any]:
    """A plain function that finds passages."""

    def find(query: str) -> Any:
        found = now().find(query)
        if kind == "texts":
            return list(found)
        if kind == "dicts":
            return [{"text": text, "score": 0.9, "page": at} for at, text in enumerate(found)]
        if kind == "rows":
            return rows(found)
        if kind == "joined":
            return now().came("\n\n".join(found))
        return documents(found)

    return find


def texts(found: Any) -> list[str]:
    """The texts of whatever was found."""
    if isinstance(found, str):
        return [found] if found else []
    return [
        each if isinstance(each, str) else _of_row(each) if isinstance(each, dict) else each.page_content
        for each in found
    ]


def _of_row(row: dict[str, Any]) -> str:
    return f"{row['heading']}\n{row['text']}" if "heading" in row else str(row["text"])


def shown(found: Any, turn: Turn | None = None) -> list[str]:
    """The texts of what was found that the answering model is to see."""
    wanted = (turn or now()).shown
    return [text for text in texts(found) if any(passage in text for passage in wanted)]
