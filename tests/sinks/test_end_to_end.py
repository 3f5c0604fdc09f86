"""A running LangChain chain gets scores on its trace."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.language_models import FakeListChatModel
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import Runnable, RunnableLambda, RunnablePassthrough
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import InMemoryLogRecordExporter, SimpleLogRecordProcessor
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from steelyard import Monitor
from steelyard.sinks import OpenTelemetrySink, SQLiteSink, read_evaluations
from steelyard_langchain import CallbackHandler

QUESTION = "What is the capital of France?"
ANSWER = "Paris is the capital of France."


class Retriever(BaseRetriever):
    def _get_relevant_documents(self, query: str, *, run_manager: object) -> list[Document]:
        return [Document(ANSWER), Document("France is a country in Europe.")]


def joined(documents: list[Document]) -> str:
    return "\n".join(document.page_content for document in documents)


def chain() -> Runnable[str, str]:
    prompt = ChatPromptTemplate.from_template("{context}\n\n{question}")
    given: dict[str, Any] = {
        "context": Retriever() | RunnableLambda(joined),
        "question": RunnablePassthrough(),
    }
    return given | prompt | FakeListChatModel(responses=[ANSWER]) | StrOutputParser()


def invoke(handler: CallbackHandler) -> str:
    return chain().invoke(QUESTION, config={"callbacks": [handler]})


def ainvoke(handler: CallbackHandler) -> str:
    return asyncio.run(chain().ainvoke(QUESTION, config={"callbacks": [handler]}))


def stream(handler: CallbackHandler) -> str:
    return "".join(chain().stream(QUESTION, config={"callbacks": [handler]}))


@pytest.mark.parametrize("run", [invoke, ainvoke, stream])
def test_scores_reach_the_span_the_chain_ran_in(
    tmp_path: Path, run: Callable[[CallbackHandler], str]
) -> None:
    spans, logs = InMemorySpanExporter(), InMemoryLogRecordExporter()  # type: ignore[no-untyped-call]
    tracers, loggers = TracerProvider(), LoggerProvider()
    tracers.add_span_processor(SimpleSpanProcessor(spans))
    loggers.add_log_record_processor(SimpleLogRecordProcessor(logs))
    database = tmp_path / "steelyard.db"
    telemetry = OpenTelemetrySink(tracer_provider=tracers, logger_provider=loggers)
    monitor = Monitor(sinks=[SQLiteSink(database), telemetry])

    with tracers.get_tracer("app").start_as_current_span("POST /ask") as request:
        assert run(CallbackHandler(monitor)) == ANSWER
    assert monitor.flush(60) == 0
    monitor.close()

    where = request.get_span_context()
    (evaluation,) = read_evaluations(database)
    assert evaluation.trace is not None
    assert evaluation.trace.span_id == f"{where.span_id:016x}"
    assert evaluation["faithfulness"].value == 1.0
    events = [log.log_record for log in logs.get_finished_logs()]
    assert {(event.trace_id, event.span_id) for event in events} == {(where.trace_id, where.span_id)}
    told = {(event.attributes or {})["gen_ai.evaluation.name"] for event in events}
    assert told == {score.metric for score in evaluation.scores}
    names = [(span.name, span.parent.span_id if span.parent else None) for span in spans.get_finished_spans()]
    assert names == [("POST /ask", None), ("evaluation", None)]
    tracers.shutdown()
    loggers.shutdown()
