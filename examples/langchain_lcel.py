"""An LCEL chain with a callback handler: every turn is scored in the background.

Runs offline: the model is a fake one that invents a river. Put a real one in its place and nothing else
changes.
"""

from __future__ import annotations

from typing import Any

from langchain_core.documents import Document
from langchain_core.language_models.fake_chat_models import FakeListChatModel
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnablePassthrough

from steelyard import Monitor
from steelyard_langchain import CallbackHandler


class Shelf(BaseRetriever):
    """Stands for your vector store's retriever."""

    def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
        return [
            Document(id="d1", page_content="Paris is the capital of France."),
            Document(id="d2", page_content="The Seine flows through Paris."),
        ]


def joined(documents: list[Document]) -> str:
    """The documents as the prompt shows them."""
    return "\n".join(document.page_content for document in documents)


chain = (
    {"context": Shelf() | joined, "question": RunnablePassthrough()}
    | ChatPromptTemplate.from_template("Context: {context}\nQuestion: {question}")
    | FakeListChatModel(responses=["The Seine flows through Paris.", "The Danube flows through Paris."])
    | StrOutputParser()
)

monitor = Monitor()
monitor.on_evaluation(
    lambda evaluation: print(
        *(f"{score.metric}={score.value}" for score in evaluation.scores if score.value is not None)
    )
)
handler = CallbackHandler(monitor)

for _ in range(2):
    answer = chain.invoke("Which river flows through Paris?", {"callbacks": [handler]})
    print(answer)
print("still pending:", monitor.flush(timeout=10))
monitor.close()
