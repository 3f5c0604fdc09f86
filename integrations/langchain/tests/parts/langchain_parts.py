"""What the tests are made of: a receiver for turns, a shelf of documents, models that speak from a script."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from langchain_core.callbacks import CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import Runnable, RunnablePassthrough

from fakes.langchain_models import SpeakingModel
from fakes.receiver import Receiver as Receiver

PARIS = Document(id="d1", page_content="Paris is the capital of France.", metadata={"score": 0.91})
FRANCE = Document(id="d2", page_content="France is a country in Europe.", metadata={"score": 0.55})
BERLIN = Document(id="d3", page_content="Berlin is the capital of Germany.", metadata={"score": 0.31})
SEINE = Document(id="d4", page_content="The Seine flows through Paris.", metadata={"score": 0.77})
QUESTION = "What is the capital of France?"


class Shelf(BaseRetriever):
    """Returns the same documents whatever is asked, unless `by_word` knows a word of the query."""

    documents: list[Document] = [PARIS, FRANCE, BERLIN]
    by_word: dict[str, list[Document]] = {}
    seconds: float = 0.0

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun
    ) -> list[Document]:
        time.sleep(self.seconds)
        for word, documents in self.by_word.items():
            if word in query:
                return list(documents)
        return list(self.documents)


class Broken(BaseRetriever):
    """Fails."""

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun
    ) -> list[Document]:
        raise ConnectionError("no route to the index")


class Scripted(SpeakingModel):
    """Replies from a list, the last one over and over; raises an exception in it."""

    replies: list[Any]
    asked: list[list[BaseMessage]] = []
    seconds: float = 0.0

    def reply_to(self, messages: list[BaseMessage], manager: Any) -> AIMessage:
        self.asked.append(messages)
        time.sleep(self.seconds)
        reply = self.replies[min(len(self.asked), len(self.replies)) - 1]
        if isinstance(reply, BaseException):
            raise reply
        return reply.model_copy() if isinstance(reply, AIMessage) else AIMessage(content=reply)


def says(*replies: Any) -> Scripted:
    """A model that says these things, one after the other."""
    return Scripted(replies=list(replies), asked=[])


def calls(name: str, at: int = 1, **arguments: Any) -> AIMessage:
    """A model's wish to call a tool."""
    call = {"name": name, "args": arguments, "id": f"call-{at}", "type": "tool_call"}
    return AIMessage(content="", tool_calls=[call])


def joined(documents: Sequence[Document]) -> str:
    return "\n".join(document.page_content for document in documents)


PROMPT = ChatPromptTemplate.from_template("Context: {context}\nQuestion: {question}")


def lcel(
    model: Runnable[Any, Any] | None = None, retriever: Runnable[Any, Any] | None = None
) -> Runnable[Any, str]:
    """The chain of the framework's own tutorials."""
    return (
        {"context": (retriever or Shelf()) | joined, "question": RunnablePassthrough()}
        | PROMPT
        | (model or says("Paris is the capital."))
        | StrOutputParser()
    )


def texts(contexts: Sequence[Any]) -> list[str]:
    return [context.text for context in contexts]
