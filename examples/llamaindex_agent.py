"""An agent that looks something up twice: one record for the turn, with the passages of both look-ups.

Runs offline: the model follows a script.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.base.llms.types import ChatMessage, MessageRole, ToolCallBlock
from llama_index.core.llms.mock import MockFunctionCallingLLM
from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode
from llama_index.core.tools import RetrieverTool

from steelyard import Monitor
from steelyard.record import Record
from steelyard_llamaindex import instrument


class Shelf(BaseRetriever):
    """Stands for your retriever."""

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        river = "river" in query_bundle.query_str
        text = "The Seine flows through Paris." if river else "Paris is the capital of France."
        return [NodeWithScore(node=TextNode(text=text), score=0.9)]


def script(messages: Sequence[ChatMessage], **kwargs: Any) -> ChatMessage:
    """Look up the capital, then its river, then answer."""
    looked_up = sum(message.role == MessageRole.TOOL for message in messages)
    if looked_up == 2:
        return ChatMessage(role="assistant", content="Paris, and the Seine flows through it.")
    asked = ["capital of France", "river in Paris"][looked_up]
    call = ToolCallBlock(tool_call_id=str(looked_up), tool_name="search", tool_kwargs={"input": asked})
    return ChatMessage(role="assistant", blocks=[call])


def show(record: Record) -> None:
    """Print what was recorded."""
    print("question:", record.question)
    for context in record.contexts:
        print(f"look-up {context.hop}: {context.text}")
    print("answer:", record.answer)


tool = RetrieverTool.from_defaults(Shelf(), name="search", description="Finds facts.")
agent = FunctionAgent(tools=[tool], llm=MockFunctionCallingLLM(response_generator=script))

monitor = Monitor()
instrument(monitor, on_record=show)


async def main() -> None:
    """One turn."""
    await agent.run(user_msg="What is the capital of France, and which river flows through it?")


asyncio.run(main())
monitor.flush(timeout=10)
