"""The chains that faults are put into: LangChain's retriever over a retriever, LlamaIndex's query engine."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from langchain_core.callbacks import CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableLambda, RunnablePassthrough
from llama_index.core import PromptTemplate, QueryBundle
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.response_synthesizers import ResponseMode, get_response_synthesizer
from llama_index.core.retrievers import BaseRetriever as LlamaRetriever
from llama_index.core.schema import NodeWithScore, TextNode

from fakes.langchain_models import SpeakingModel
from fakes.llamaindex_models import CompletionModel
from fakes.receiver import Receiver
from faults.faults import Setting
from steelyard.record import Record
from steelyard_langchain import CallbackHandler
from steelyard_llamaindex import instrument, uninstrument

# LangChain: an index, a retriever that reranks what it brings, a prompt, a chat model.


class Index(BaseRetriever):
    """Returns what the setting's index returns."""

    setting: Any

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun
    ) -> list[Document]:
        return [Document(page_content=one.text, id=one.title) for one in self.setting.search(query)]


class Reranker(BaseRetriever):
    """Asks another retriever, and keeps some of what it returns."""

    inner: BaseRetriever
    setting: Any

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun
    ) -> list[Document]:
        found = self.inner.invoke(query, config={"callbacks": run_manager.get_child()})
        return list(self.setting.rerank(found))


class Model(SpeakingModel):
    """Says what a function of its prompt says."""

    reply: Callable[[str], str]

    def reply_to(self, messages: list[BaseMessage], manager: Any) -> AIMessage:
        return AIMessage(self.reply("\n\n".join(message.text for message in messages)))


_PROMPT = ChatPromptTemplate.from_messages(
    [
        ("system", "Answer in one sentence, from the documents alone."),
        ("human", "Documents:\n{documents}\n\nQuestion: {question}"),
    ]
)


def langchain(setting: Setting) -> Record:
    """One turn of a chain of LangChain, as its callback handler records it."""
    kept = Receiver()
    retriever = Reranker(inner=Index(setting=setting), setting=setting)

    def joined(found: list[Document]) -> str:
        return setting.shown([one.page_content for one in found])

    chain = (
        {"documents": retriever | RunnableLambda(joined), "question": RunnablePassthrough()}
        | _PROMPT
        | Model(reply=setting.reply)
        | StrOutputParser()
    )
    chain.invoke(setting.case.question, config={"callbacks": [CallbackHandler(kept)]})
    return kept.record


# LlamaIndex: a query engine with a postprocessor.


class Nodes(LlamaRetriever):
    """Returns what the setting's index returns."""

    def __init__(self, setting: Setting) -> None:
        super().__init__()
        self.setting = setting

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        found = self.setting.search(query_bundle.query_str)
        return [
            NodeWithScore(node=TextNode(text=one.text, id_=one.title), score=1 / (rank + 1))
            for rank, one in enumerate(found)
        ]


class Keeps(BaseNodePostprocessor):
    """Reranks, and leaves some of what it is given."""

    setting: Any

    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        return list(self.setting.rerank(nodes))


class Completes(CompletionModel):
    """Says what a function of its prompt says."""

    setting: Any

    def says(self, prompt: str) -> str:
        return str(self.setting.reply(prompt))


def llamaindex(setting: Setting) -> Record:
    """One turn of a query engine of LlamaIndex, as the instrumentation records it."""
    kept = Receiver()

    def fitted(**given: Any) -> str:
        return setting.shown(_texts(setting, given["context_str"]))

    template = PromptTemplate(
        "Documents:\n{context_str}\n\nAnswer in one sentence.\nQuestion: {query_str}\nAnswer: ",
        function_mappings={"context_str": fitted},
    )
    engine = RetrieverQueryEngine.from_args(
        Nodes(setting),
        llm=Completes(setting=setting),
        node_postprocessors=[Keeps(setting=setting)],
        response_synthesizer=get_response_synthesizer(
            llm=Completes(setting=setting), response_mode=ResponseMode.COMPACT, text_qa_template=template
        ),
    )
    instrument(kept)
    try:
        engine.query(setting.case.question)
    finally:
        uninstrument()
    return kept.record


def _texts(setting: Setting, joined: str) -> Sequence[str]:
    """The passages in a context string of LlamaIndex."""
    held = [passage.text for passage in setting.index if passage.text in joined]
    return sorted(held, key=joined.index)
