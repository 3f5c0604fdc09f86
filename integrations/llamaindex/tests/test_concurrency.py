from __future__ import annotations

import asyncio
import re
from concurrent.futures import ThreadPoolExecutor
from typing import Any, cast

import pytest
from llama_index.core import SummaryIndex
from llama_index.core.base.response.schema import StreamingResponse
from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode
from llama_index.core.workflow import StartEvent, StopEvent, Workflow, step
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


async def test_gathered_queries(receiver: Receiver) -> None:
    asked = engine(retriever=Echo(), llm=Scripted(say=say, slow=0.01))
    await asyncio.gather(*(asked.aquery(f"question {number}") for number in range(200)))
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


TOWER, FERRY = "The tower was built of grey stone in 1811.", "The ferry leaves the north pier at seven."
ABOUT = {TOWER: "The first note is about a tower.", FERRY: "The second note is about a ferry."}


def sum_up(prompt: str) -> str:
    return next((reply for text, reply in ABOUT.items() if text in prompt), "Of a tower and a ferry.")


@pytest.mark.parametrize("shown", ["passages", "replies", "engines"])
def test_what_a_pool_runs_for_a_workflow_belongs_to_it_as_far_as_its_prompts_tell(
    receiver: Receiver, shown: str
) -> None:
    """Threads of a pool know nothing of the run that fills them."""
    index = SummaryIndex([TextNode(text=text) for text in ABOUT])
    model = Scripted(say=sum_up)
    engines = [SummaryIndex([TextNode(text=text)]).as_query_engine(llm=model) for text in ABOUT]

    def look(number: int) -> str:
        return index.as_retriever().retrieve(f"somebody's words {number}")[number].text

    class Notes(Workflow):
        @step
        async def answer(self, event: StartEvent) -> StopEvent:
            with ThreadPoolExecutor(2) as pool:
                texts = list(pool.map(look, range(2)))
                if shown == "replies":
                    texts = list(pool.map(lambda text: model.complete(f"Sum up: {text}").text, texts))
                elif shown == "engines":
                    texts = list(pool.map(lambda engine: str(engine.query("What is it?")), engines))
            told = "\n".join(texts)
            return StopEvent(result=str(await model.acomplete(f"{told.upper()}\n{event.question}")))

    async def main() -> Any:
        return await Notes().run(question="What are the notes about?")

    assert asyncio.run(main()) == "Of a tower and a ferry."
    found = [one for one in receiver.records if one.question == "What are the notes about?"]
    (record,) = found
    if shown != "passages":  # no passage of them was seen here
        assert record.contexts == () and any("runs in other threads" in note for note in record.notes)
        return
    assert (sorted(one.text for one in record.contexts), record.evidence) == (sorted(ABOUT), "known")
