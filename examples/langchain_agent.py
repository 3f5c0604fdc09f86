"""A LangGraph agent that searches twice: one record per turn, with the passages of both searches.

Runs offline: the model follows a script.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from langchain.agents import create_agent
from langchain_core.documents import Document
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import Runnable
from langchain_core.tools import create_retriever_tool

from steelyard import Monitor
from steelyard.record import Record
from steelyard_langchain import CallbackHandler


class Shelf(BaseRetriever):
    """Stands for your vector store's retriever."""

    def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
        if "river" in query:
            return [Document(page_content="The Seine flows through Paris.")]
        return [Document(page_content="Paris is the capital of France.")]


class Scripted(GenericFakeChatModel):
    """Stands for a model that calls tools."""

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> Runnable[Any, AIMessage]:
        """Take any tools."""
        return self


def search(number: int, query: str) -> AIMessage:
    """The model's wish to search."""
    return AIMessage("", tool_calls=[{"name": "search", "args": {"query": query}, "id": f"call-{number}"}])


model = Scripted(
    messages=iter(
        [
            search(1, "capital of France"),
            search(2, "river in Paris"),
            AIMessage("Paris, and the Seine flows through it."),
        ]
    )
)


def show(record: Record) -> None:
    """Print what was recorded."""
    print("question:", record.question)
    for context in record.contexts:
        print(f"  hop {context.hop}, {context.query!r}: {context.text}")
    print("answer:", record.answer)


monitor = Monitor()
agent = create_agent(model, [create_retriever_tool(Shelf(), "search", "Searches the library.")])
agent.invoke(
    {"messages": [{"role": "user", "content": "What is the capital of France, and its river?"}]},
    {"callbacks": [CallbackHandler(monitor, on_record=show)]},
)
print("still pending:", monitor.flush(timeout=10))
monitor.close()
