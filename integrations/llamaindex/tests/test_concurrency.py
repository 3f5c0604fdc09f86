from __future__ import annotations

import asyncio
import re
from concurrent.futures import ThreadPoolExecutor
from typing import Any, cast

from llama_index.core.base.response.schema import StreamingResponse
from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode
from llamaindex_parts import Receiver, Scripted, engine

from steelyard.record import Record


class Echo(BaseRetriever):
    """Finds one document that names the question."""

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return [NodeWithScore(node=TextNode(text=f"Document of {query_bundle.query_str}."), score=1.0)]


def say(prompt: str) -> str:
    found = re.search(r"Document of (question \d+)", prompt)
    assert found is not None
    return f"answer to {found[1]}"


def intact(record: Record) -> bool:
    return (
        record.status == "ok"
        and record.answer == f"answer to {record.question}"
        and [context.text for context in record.contexts] == [f"Document of {record.question}."]
        and record.contexts_source == "in_prompt"
    )


def ask(asked: Any, number: int) -> None:
    response = asked.query(f"question {number}")
    if isinstance(response, StreamingResponse):
        for _ in response.response_gen:
            pass


def test_sixty_four_threads(receiver: Receiver) -> None:
    plain = engine(retriever=Echo(), say=say)
    streaming = engine(retriever=Echo(), say=say, streaming=True)
    with ThreadPoolExecutor(64) as pool:
        jobs = [pool.submit(ask, streaming if number % 2 else plain, number) for number in range(512)]
        for job in jobs:
            job.result()
    records = receiver.records
    assert sorted(record.question for record in records) == sorted(f"question {n}" for n in range(512))
    assert all(map(intact, records))


def test_gathered_queries(receiver: Receiver) -> None:
    async def main() -> None:
        asked = engine(retriever=Echo(), llm=Scripted(say=say, slow=0.01))
        await asyncio.gather(*(asked.aquery(f"question {number}") for number in range(200)))

    asyncio.run(main())
    records = receiver.records
    assert len({record.question for record in records}) == len(records) == 200
    assert all(map(intact, records))


def test_streams_handed_to_other_threads(receiver: Receiver) -> None:
    asked = engine(retriever=Echo(), say=say, streaming=True)
    responses = [cast(StreamingResponse, asked.query(f"question {number}")) for number in range(64)]
    with ThreadPoolExecutor(64) as pool:
        answers = list(pool.map(lambda response: "".join(response.response_gen), responses))
    assert answers == [f"answer to question {number}" for number in range(64)]
    assert len(receiver.records) == 64
    assert all(map(intact, receiver.records))
