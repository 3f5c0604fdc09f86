"""A chain that is in production already, with two lines added: the import and `attach`.

Everything between them is what it was. Runs offline, with a fake model.
"""

from __future__ import annotations

from typing import Any

from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.language_models.fake_chat_models import FakeListChatModel
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnableParallel, RunnablePassthrough
from langchain_core.vectorstores import InMemoryVectorStore

from steelyard_langchain import attach  # added

handler = attach()  # added


class Assistant:
    """Answers questions about what it has read."""

    def __init__(self, texts: list[str]) -> None:
        store = InMemoryVectorStore(DeterministicFakeEmbedding(size=64))
        store.add_documents([Document(page_content=text) for text in texts])
        prompt = ChatPromptTemplate.from_template("Answer from this: {context}\n\n{question}")
        model = FakeListChatModel(responses=["A steelyard is a balance with unequal arms."])
        found = RunnableParallel(context=store.as_retriever(), question=RunnablePassthrough())
        self._chain = found.assign(answer=prompt | model)

    def ask(self, question: str) -> Any:
        """Answer with sources."""
        return self._chain.invoke(question, {"tags": ["production"], "metadata": {"user": "u42"}})


assistant = Assistant(
    ["A steelyard is a balance with unequal arms.", "It weighs a load while it hangs.", "Rome had many."]
)
reply = assistant.ask("What is a steelyard?")
print(reply["answer"].content, f"({len(reply['context'])} sources)")
print("recorded by:", handler)
