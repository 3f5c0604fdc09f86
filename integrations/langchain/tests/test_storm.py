"""Many at once on one handler: every record intact, none mixed, nothing left."""

from __future__ import annotations

import asyncio
import random
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from langchain_core.documents import Document
from langchain_core.messages import AIMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompt_values import PromptValue
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import Runnable, RunnableLambda
from langchain_parts import Receiver, lcel

from steelyard.record import Record
from steelyard_langchain import CallbackHandler


class Echoing(BaseRetriever):
    """Finds two documents that name the question, after a while."""

    def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
        return [Document(page_content=f"{part} about {query}") for part in ("First", "Second")]

    async def _aget_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
        await asyncio.sleep(random.Random(query).random() / 50)
        return self._get_relevant_documents(query, run_manager=run_manager)


def reply(prompt: PromptValue) -> AIMessage:
    asked = prompt.to_string().rsplit("Question: ", 1)[1]
    return AIMessage(f"Answer to {asked}")


async def areply(prompt: PromptValue) -> AIMessage:
    await asyncio.sleep(random.Random(prompt.to_string()).random() / 50)
    return reply(prompt)


def chain() -> Runnable[Any, str]:
    return lcel(RunnableLambda(reply, afunc=areply) | StrOutputParser(), Echoing())


def check(records: list[Record], count: int) -> None:
    assert len(records) == count
    assert len({record.question for record in records}) == count
    for record in records:
        asked = record.question
        if record.status == "cancelled":
            assert record.answer == ""
            continue
        assert record.status == "ok"
        assert record.answer == f"Answer to {asked}"
        assert [context.text for context in record.contexts] == [
            f"First about {asked}",
            f"Second about {asked}",
        ]
        assert record.metadata["number"] == asked


def test_64_threads(receiver: Receiver, handler: CallbackHandler) -> None:
    rag = chain()

    def one(n: int) -> None:
        asked = f"question {n}"
        config: Any = {"callbacks": [handler], "metadata": {"number": asked}}
        if n % 3:
            rag.invoke(asked, config)
        else:
            list(rag.stream(asked, config))

    with ThreadPoolExecutor(64) as pool:
        list(pool.map(one, range(192)))
    check(receiver.records, 192)


async def test_256_tasks_a_quarter_of_them_cancelled(receiver: Receiver, handler: CallbackHandler) -> None:
    rag = chain()
    chance = random.Random(7)

    async def one(n: int) -> None:
        asked = f"question {n}"
        task = asyncio.create_task(
            rag.ainvoke(asked, {"callbacks": [handler], "metadata": {"number": asked}})
        )
        if n % 4 == 0:
            await asyncio.sleep(chance.random() / 50)
            task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    await asyncio.gather(*(one(n) for n in range(256)))
    # A task that was cancelled before it retrieved anything is no turn yet.
    drafts = len(receiver.drafts)
    assert drafts + handler.stats()["not_a_turn"] <= 256
    assert sum(record.status == "ok" for record in receiver.records) >= 192
    check(receiver.records, drafts)


async def test_nothing_is_left_after_ends_of_every_kind(handler: CallbackHandler, config: Any) -> None:
    rag = chain()
    for n in range(50):
        rag.invoke(f"question {n}", config)
        broken = rag.stream(f"broken {n}", config)
        next(broken)
        broken.close()  # type: ignore[attr-defined]

    for n in range(50):
        task = asyncio.create_task(rag.ainvoke(f"cancelled {n}", config))
        await asyncio.sleep(0.002)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    await asyncio.sleep(0.02)
    stats = handler.stats()
    assert (stats["open"], stats["runs"], stats["expired"], stats["unreadable_event"]) == (0, 0, 0, 0)
