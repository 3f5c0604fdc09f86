"""Real applications under OpenInference's instrumentors, run in a process of their own: they patch libraries.

Prints for each application the turns that the span processor handed over.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable, Iterable
from typing import Any, TypedDict

from langchain.agents import create_agent
from langchain_core.callbacks import CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, ToolCall
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import Runnable
from langchain_core.tools import BaseTool, StructuredTool
from langgraph.graph import END, START, StateGraph
from llama_index.core import Document as LlamaDocument
from llama_index.core import VectorStoreIndex
from llama_index.core.embeddings import MockEmbedding
from llama_index.core.llms import CompletionResponse, CustomLLM, LLMMetadata
from llama_index.core.llms.callbacks import llm_completion_callback
from llama_index.core.schema import NodeWithScore
from llama_index.core.workflow import Event, StartEvent, StopEvent, Workflow, step
from opentelemetry.sdk.trace import TracerProvider
from otel_parts import instrumented

from apps.otel.shapes import ANSWER, PASSAGES, QUERY, QUESTION, prompt
from steelyard_opentelemetry import EvaluationSpanProcessor


class _Model(GenericFakeChatModel):
    """A model that can be given tools."""

    def bind_tools(self, tools: Any, **options: Any) -> Runnable[Any, AIMessage]:
        return self


def _agent(result: object) -> None:
    """A LangGraph agent whose tool returns what it is told to."""

    def look_up(query: str) -> Any:
        return result

    tool: BaseTool = StructuredTool.from_function(look_up, name="manual", description="The manual.")
    call = ToolCall(name="manual", args={"query": QUERY}, id="call-1")
    replies = [AIMessage("", tool_calls=[call]), AIMessage(ANSWER)]
    agent: Any = create_agent(_Model(messages=iter(replies)), [tool])
    agent.invoke({"messages": [("user", QUESTION)]})


class _Retriever(BaseRetriever):
    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun
    ) -> list[Document]:
        return [Document(page_content=text) for text in PASSAGES]


class _State(TypedDict, total=False):
    question: str
    documents: list[Document]
    generation: str


def _grading_graph() -> None:
    """A graph that grades each document and keeps one."""
    verdicts = [AIMessage(json.dumps({"binary_score": verdict})) for verdict in ("yes", "no", "no")]
    model = GenericFakeChatModel(messages=iter([*verdicts, AIMessage(ANSWER)]))

    def retrieve(state: _State) -> _State:
        return {"documents": _Retriever().invoke(state["question"])}

    def grade(state: _State) -> _State:
        asked = ((d, f"Relevant?\n\n{d.page_content}\n\nQuestion: {QUESTION}") for d in state["documents"])
        return {"documents": [d for d, text in asked if '"yes"' in str(model.invoke(text).content)]}

    def generate(state: _State) -> _State:
        texts = [document.page_content for document in state["documents"]]
        return {"generation": str(model.invoke(prompt(passages=texts)).content)}

    graph = StateGraph(_State)
    steps: Iterable[tuple[str, Any]] = (("retrieve", retrieve), ("grade", grade), ("generate", generate))
    before = START
    for name, node in steps:
        graph.add_node(name, node)
        graph.add_edge(before, name)
        before = name
    graph.add_edge(before, END)
    graph.compile().invoke({"question": QUESTION})


class _LlamaModel(CustomLLM):
    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(model_name="small")

    @llm_completion_callback()
    def complete(self, prompt: str, formatted: bool = False, **options: Any) -> CompletionResponse:
        return CompletionResponse(text=ANSWER)

    @llm_completion_callback()
    def stream_complete(self, prompt: str, formatted: bool = False, **options: Any) -> Any:
        raise NotImplementedError


class _Found(Event):
    nodes: list[NodeWithScore]
    question: str


class _Embedding(MockEmbedding):
    """Passages are nearer to any question the earlier they stand in the list."""

    def _get_text_embedding(self, text: str) -> list[float]:
        return [1.0, PASSAGES.index(text) / 10]

    def _get_query_embedding(self, query: str) -> list[float]:
        return [1.0, 0.0]

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return self._get_query_embedding(query)


class _Flow(Workflow):
    """Search the index it is given, then answer."""

    @step
    async def search(self, ev: StartEvent) -> _Found:
        retriever = ev.get("index").as_retriever(similarity_top_k=3)
        return _Found(nodes=await retriever.aretrieve(ev.get("query")), question=ev.get("query"))

    @step
    async def answer(self, ev: _Found) -> StopEvent:
        texts = [node.text for node in ev.nodes]
        reply = await _LlamaModel().acomplete(prompt(ev.question, texts))
        return StopEvent(result=str(reply))


def _workflow() -> None:
    """A workflow that is run with its question and its index."""
    documents = [LlamaDocument(text=text) for text in PASSAGES]
    index = VectorStoreIndex.from_documents(documents, embed_model=_Embedding(embed_dim=2))

    async def run() -> None:
        await _Flow().run(query=QUESTION, index=index)

    asyncio.run(run())


APPLICATIONS: dict[str, Callable[[], None]] = {
    "langgraph_tool_with_texts": lambda: _agent(list(PASSAGES)),
    "langgraph_tool_with_objects": lambda: _agent([{"id": n, "text": t} for n, t in enumerate(PASSAGES)]),
    "langgraph_that_grades": _grading_graph,
    "llamaindex_workflow_with_its_index": _workflow,
}


class _Receiver:
    """Stands where a Monitor would."""

    def __init__(self) -> None:
        self.turns: list[dict[str, object]] = []

    def submit(self, record: Any) -> None:
        texts = [context.text for context in record.contexts]
        self.turns.append({"question": record.question, "contexts": texts, "answer": record.answer})


def main() -> None:
    """Run each application and print its turns as one JSON line."""
    receiver = _Receiver()
    processor = EvaluationSpanProcessor(receiver, quiet=60)
    provider = TracerProvider()
    provider.add_span_processor(processor)
    for _ in instrumented("openinference", provider):
        for name, application in APPLICATIONS.items():
            application()
            provider.force_flush()
            sys.stdout.write(json.dumps({"name": name, "turns": receiver.turns}) + "\n")
            receiver.turns = []


if __name__ == "__main__":
    main()
