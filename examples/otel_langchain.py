"""An application that OpenInference instruments already: one processor records it, nothing in it changes."""

from __future__ import annotations

from typing import Any

from langchain_core.documents import Document
from langchain_core.language_models.fake_chat_models import FakeListChatModel
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnablePassthrough
from openinference.instrumentation.langchain import LangChainInstrumentor
from opentelemetry.sdk.trace import TracerProvider

from steelyard import Monitor
from steelyard_opentelemetry import EvaluationSpanProcessor


class Shelf(BaseRetriever):
    """Two documents, always."""

    def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
        return [
            Document(id="d1", page_content="Paris is the capital of France."),
            Document(id="d2", page_content="France is a country in Europe."),
        ]


def application() -> Any:
    """The application, as it always was."""
    joined = Shelf() | (lambda found: "\n\n".join(document.page_content for document in found))
    prompt = ChatPromptTemplate.from_template("Context: {context}\nQuestion: {question}")
    model = FakeListChatModel(responses=["Paris is the capital of France."])
    return {"context": joined, "question": RunnablePassthrough()} | prompt | model | StrOutputParser()


def main() -> None:
    provider = TracerProvider()
    LangChainInstrumentor().instrument(tracer_provider=provider)

    monitor = Monitor()
    monitor.on_evaluation(lambda found: print(*(f"{s.metric}={s.value}" for s in found.scores), sep="  "))
    provider.add_span_processor(EvaluationSpanProcessor(monitor))

    print(application().invoke("What is the capital of France?"))

    provider.force_flush()
    monitor.flush(timeout=30)


if __name__ == "__main__":
    main()
