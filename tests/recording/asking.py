"""Small applications of LangChain whose Records are built at once, with what they were really given."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from langchain_core.documents import Document
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableLambda, RunnablePassthrough

from fakes.receiver import Receiver
from steelyard_langchain import CallbackHandler


class Shelf(BaseRetriever):
    """Finds the same passages whatever it is asked."""

    texts: list[str]

    def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
        return [Document(page_content=text) for text in self.texts]


def model(reply: str) -> GenericFakeChatModel:
    """A model that says this."""
    return GenericFakeChatModel(messages=iter([AIMessage(reply)]))


def from_shelf(question: str, passages: Sequence[str], template: str, reply: str) -> Any:
    """The draft of a turn whose passages a retriever brings; the prompt is filled in by `str.format`."""
    received = Receiver()

    def prompt(found: dict[str, Any]) -> str:
        context = "\n\n".join(one.page_content for one in found["context"])
        return template.replace("{question}", found["question"]).replace("{context}", context)

    chain = (
        {"context": Shelf(texts=list(passages)), "question": RunnablePassthrough()}
        | RunnableLambda(prompt)
        | model(reply)
        | StrOutputParser()
    )
    chain.invoke(question, config={"callbacks": [CallbackHandler(received)]})
    return received.drafts[0]


def from_nowhere(question: str, prompt: str, reply: str, *, build: bool = True) -> Any:
    """The record (or the draft) of a turn whose prompt a function puts together out of what nobody sees."""
    received = Receiver()
    chain: Any = RunnableLambda(lambda _: model(reply).invoke(prompt).content)
    chain.invoke(question, config={"callbacks": [CallbackHandler(received)]})
    return received.record if build else received.drafts[0]
