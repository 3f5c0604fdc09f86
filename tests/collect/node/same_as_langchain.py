"""`examples/node/langchain.mjs`, in Python."""

from __future__ import annotations

from langchain_core.callbacks import CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnablePassthrough

from collect.node.chat_model import ChatModel
from collect.node.telemetry import DOCUMENTS, begin


class Store(BaseRetriever):
    """Three documents, in the order of their ranking."""

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun
    ) -> list[Document]:
        return [Document(id=name, page_content=text) for name, text in DOCUMENTS.items()]


def joined(documents: list[Document]) -> str:
    return "\n\n".join(one.page_content for one in documents)


def main() -> None:
    provider = begin()
    template = "Answer from the context.\nContext: {context}\nQuestion: {question}"
    chain = (
        {"context": Store() | joined, "question": RunnablePassthrough()}
        | ChatPromptTemplate.from_template(template)
        | ChatModel()
        | StrOutputParser()
    )
    print(chain.invoke("What is the capital of France?"))
    provider.shutdown()


if __name__ == "__main__":
    main()
