"""Small real applications, LangChain and LlamaIndex, with models that need no network."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from langchain_core.callbacks import CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, ToolCall
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import Runnable, RunnableLambda, RunnablePassthrough
from langchain_core.tools import create_retriever_tool
from llama_index.core.base.response.schema import RESPONSE_TYPE
from llama_index.core.llms import (
    ChatMessage,
    ChatResponse,
    ChatResponseGen,
    CompletionResponse,
    CompletionResponseGen,
    CustomLLM,
    LLMMetadata,
)
from llama_index.core.llms.callbacks import llm_chat_callback, llm_completion_callback
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.response_synthesizers import get_response_synthesizer
from llama_index.core.retrievers import BaseRetriever as LlamaRetriever
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode
from otel_parts import ANSWER, QUESTION, SCORES, TEXTS


class Retriever(BaseRetriever):
    """Always finds the same three documents."""

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun
    ) -> list[Document]:
        return [
            Document(id=f"d{number}", page_content=text, metadata={"source": f"d{number}.md", "score": score})
            for number, (text, score) in enumerate(zip(TEXTS, SCORES, strict=True), start=1)
        ]


class ToolModel(GenericFakeChatModel):
    """A model that can be given tools."""

    def bind_tools(self, tools: Any, **options: Any) -> Runnable[Any, AIMessage]:
        return self


def _joined(found: list[Document]) -> str:
    return "\n\n".join(document.page_content for document in found)


def chain(call: Callable[[Any], str] | None = None) -> Runnable[Any, str]:
    """Retrieve, prompt, and call a model: LangChain's own, or a function."""
    template = ChatPromptTemplate.from_template(
        "Answer from context.\nContext: {context}\nQuestion: {question}"
    )
    fake = GenericFakeChatModel(messages=iter([AIMessage(ANSWER)] * 20))
    model: Runnable[Any, Any] = fake if call is None else RunnableLambda(call)
    steps = {"context": Retriever() | _joined, "question": RunnablePassthrough()}
    return steps | template | model | StrOutputParser()


def agent() -> Any:
    """A LangGraph agent that searches once."""
    from langchain.agents import create_agent

    call = ToolCall(name="search_docs", args={"query": "capital of France"}, id="call_1")
    model = ToolModel(messages=iter([AIMessage("", tool_calls=[call]), AIMessage(ANSWER)]))
    tool = create_retriever_tool(Retriever(), "search_docs", "Search the docs")
    return create_agent(model, [tool])


class LlamaModel(CustomLLM):
    """Always answers the same."""

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(model_name="fake", is_chat_model=True)

    @llm_chat_callback()
    def chat(self, messages: Any, **options: Any) -> ChatResponse:
        return ChatResponse(message=ChatMessage(role="assistant", content=ANSWER))

    @llm_chat_callback()
    def stream_chat(self, messages: Any, **options: Any) -> ChatResponseGen:
        def words() -> ChatResponseGen:
            said = ""
            for word in ANSWER.split(" "):
                said = f"{said} {word}".strip()
                yield ChatResponse(message=ChatMessage(role="assistant", content=said), delta=word + " ")

        return words()

    @llm_completion_callback()
    def complete(self, prompt: str, formatted: bool = False, **options: Any) -> CompletionResponse:
        return CompletionResponse(text=ANSWER)

    @llm_completion_callback()
    def stream_complete(self, prompt: str, formatted: bool = False, **options: Any) -> CompletionResponseGen:
        raise NotImplementedError


class Nodes(LlamaRetriever):
    """Always finds the same three nodes."""

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return [
            NodeWithScore(node=TextNode(id_=f"d{n}", text=text, metadata={"source": f"d{n}.md"}), score=score)
            for n, (text, score) in enumerate(zip(TEXTS, SCORES, strict=True), start=1)
        ]


def query_engine(*, streaming: bool = False) -> RetrieverQueryEngine:
    synthesizer = get_response_synthesizer(llm=LlamaModel(), streaming=streaming)
    return RetrieverQueryEngine(Nodes(), response_synthesizer=synthesizer)


def ask(engine: RetrieverQueryEngine, question: str = QUESTION) -> str:
    """Query, and read a streamed answer to its end."""
    found: RESPONSE_TYPE = engine.query(question)
    return str(found)
