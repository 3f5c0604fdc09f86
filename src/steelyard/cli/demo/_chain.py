"""The demo's chain: a retriever over the text, a prompt, a chat model. LangChain is needed from here on."""

from __future__ import annotations

import re
from typing import Any

from langchain_core.callbacks import CallbackManagerForLLMRun, CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import Runnable, RunnableLambda, RunnableParallel, RunnablePassthrough
from pydantic import PrivateAttr

from steelyard.cli.demo._alter import alter
from steelyard.cli.demo._extract import DONT_KNOW, best_sentences
from steelyard.cli.demo._search import Index
from steelyard.cli.demo._text import passages

_PROMPT = ChatPromptTemplate.from_messages(
    [
        (
            "system",
            "Answer from the passages alone, in one or two sentences. "
            f"If they do not hold the answer, say only: {DONT_KNOW}",
        ),
        ("human", "{passages}\n\nQuestion: {question}"),
    ]
)
_QUOTED = re.compile(r"^\[\d+\] ", re.MULTILINE)


class PassageRetriever(BaseRetriever):
    """Searches the text by words."""

    k: int = 4
    """How many passages to return."""
    _index: Index = PrivateAttr(default_factory=lambda: Index(passages()))

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun
    ) -> list[Document]:
        return [
            Document(
                id=passage.id,
                page_content=f"{passage.title}\n{passage.text}",
                metadata={"title": passage.title, "score": round(score, 3)},
            )
            for score, passage in self._index.search(query, most=self.k)
        ]


class ExtractiveChatModel(BaseChatModel):
    """A chat model that quotes the passages in its prompt, or says that it does not know."""

    @property
    def _llm_type(self) -> str:
        return "extractive"

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        material, _, question = messages[-1].text.rpartition("\n\nQuestion: ")
        given = [piece.strip() for piece in _QUOTED.split(material) if piece.strip()]
        message = AIMessage(content=best_sentences(question, given))
        return ChatResult(generations=[ChatGeneration(message=message)])


def build_chain(model: BaseChatModel) -> Runnable[str, str]:
    """Question in, answer out."""
    material: Runnable[str, dict[str, Any]] = RunnableParallel(
        passages=PassageRetriever() | _quote, question=RunnablePassthrough()
    )
    return material | _PROMPT | model | StrOutputParser()


def _quote(documents: list[Document]) -> str:
    return "\n\n".join(
        f"[{number}] {document.page_content}" for number, document in enumerate(documents, start=1)
    )


def inventing(chain: Runnable[str, str]) -> Runnable[str, str]:
    """The same chain with a last step that alters numbers, names and negations of every answer given."""
    return chain | RunnableLambda(lambda answer: answer if answer == DONT_KNOW else alter(answer))
