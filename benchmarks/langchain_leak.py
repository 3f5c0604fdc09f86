"""What a long-lived LangChain handler keeps after many runs of every kind of end.

1,000 normal, 1,000 cancelled and 1,000 early-broken runs on one handler; after each thousand, the handler's
tables and the process's memory, and at the end the same once the time to live is over.

    python benchmarks/langchain_leak.py [--runs 1000] [--ttl 1]
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import time
import tracemalloc
from typing import Any

from langchain_core.documents import Document
from langchain_core.language_models.fake_chat_models import FakeListChatModel
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import Runnable, RunnablePassthrough

from steelyard.online import Monitor
from steelyard_langchain import CallbackHandler

TEXT = "Paris is the capital of France. " * 30


class Shelf(BaseRetriever):
    """Five documents."""

    def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
        return [Document(page_content=f"{n} {TEXT}") for n in range(5)]


class Slow(FakeListChatModel):
    """Never replies."""

    async def _agenerate(self, *args: Any, **kwargs: Any) -> Any:
        await asyncio.sleep(60)


def chain(model: FakeListChatModel) -> Runnable[Any, str]:
    """A RAG chain."""
    context = Shelf() | (lambda documents: "\n".join(document.page_content for document in documents))
    prompt = ChatPromptTemplate.from_template("{context}\n{question}")
    return {"context": context, "question": RunnablePassthrough()} | prompt | model | StrOutputParser()


def normal(runs: int, config: Any) -> None:
    """Runs that end."""
    rag = chain(FakeListChatModel(responses=["Paris."]))
    for _ in range(runs):
        rag.invoke("capital?", config)


def cancelled(runs: int, config: Any) -> None:
    """Runs that are cancelled while the model is at it."""
    rag = chain(Slow(responses=["Paris."]))

    async def one() -> None:
        task = asyncio.create_task(rag.ainvoke("capital?", config))
        await asyncio.sleep(0.03)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    async def everybody() -> None:
        for _ in range(runs // 10):
            await asyncio.gather(*(one() for _ in range(10)))

    asyncio.run(everybody())


def broken(runs: int, config: Any) -> None:
    """Streams of which one piece is read."""
    rag = chain(FakeListChatModel(responses=["Paris."]))
    for _ in range(runs):
        stream = rag.stream("capital?", config)
        next(stream)
        stream.close()  # type: ignore[attr-defined]


def kept(handler: CallbackHandler) -> int:
    """Entries in everything that the handler holds, but its counters."""
    held = vars(handler) | vars(handler._turns)
    tables = {name: value for name, value in held.items() if name not in ("_counts", "_runs")}
    return sum(len(value) for value in tables.values() if hasattr(value, "__len__"))


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description="What a LangChain handler keeps.")
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--ttl", type=float, default=1.0)
    options = parser.parse_args()
    monitor = Monitor(metrics=[], sinks=[])
    handler = CallbackHandler(monitor, ttl=options.ttl)
    config = {"callbacks": [handler]}
    tracemalloc.start()
    print(f"{'':24}{'entries':>9}{'heap MB':>9}")
    kinds = {"normal": normal, "cancelled": cancelled, "early-broken": broken}
    for run in kinds.values():
        run(20, config)
    monitor.flush(60)
    for name, run in kinds.items():
        run(options.runs, config)
        monitor.flush(60)
        gc.collect()
        print(f"{options.runs:6} {name:17}{kept(handler):9}{tracemalloc.get_traced_memory()[0] / 1e6:9.2f}")
    time.sleep(options.ttl * 1.1)
    handler.stats()
    gc.collect()
    print(f"{'after the TTL':24}{kept(handler):9}{tracemalloc.get_traced_memory()[0] / 1e6:9.2f}")
    print("handler:", handler.stats())
    print("monitor:", monitor.stats())
    monitor.close()


if __name__ == "__main__":
    main()
