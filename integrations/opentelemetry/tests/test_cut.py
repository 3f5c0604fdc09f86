"""Texts that an SDK or a backend cut at a length limit: said by name, never passed off as whole."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from itertools import product

import pytest
from opentelemetry.sdk.trace import SpanLimits, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import Tracer

from steelyard_opentelemetry import Extraction, read_spans
from steelyard_opentelemetry._span import from_sdk

QUESTION = "How long does the night ferry take from the island to the town?"
PASSAGES = (
    "The night ferry takes seven hours from the island to the town.",
    "In a strong wind from the west the crossing takes two hours more.",
    "Bicycles travel below deck and cost eight crowns each way.",
)
ANSWER = "Seven hours, and up to two hours more when the wind is from the west."
PROMPT = "Context:\n" + "\n\n".join(PASSAGES) + f"\n\nQuestion: {QUESTION}"


def openinference(tracer: Tracer) -> None:
    chain = {"openinference.span.kind": "CHAIN", "input.value": QUESTION, "output.value": ANSWER}
    documents = {f"retrieval.documents.{n}.document.content": text for n, text in enumerate(PASSAGES)}
    model = {
        "llm.input_messages.0.message.role": "user",
        "llm.input_messages.0.message.content": PROMPT,
        "llm.output_messages.0.message.role": "assistant",
        "llm.output_messages.0.message.content": ANSWER,
    }
    retriever = {"openinference.span.kind": "RETRIEVER", "input.value": QUESTION, **documents}
    with tracer.start_as_current_span("chain", attributes=chain):
        tracer.start_span("retrieve", attributes=retriever).end()
        tracer.start_span("chat", attributes={"openinference.span.kind": "LLM", **model}).end()


def genai(tracer: Tracer) -> None:
    def said(role: str, text: str) -> str:
        return json.dumps([{"role": role, "parts": [{"type": "text", "content": text}]}])

    agent = {"gen_ai.operation.name": "invoke_agent", "gen_ai.input.messages": said("user", QUESTION)}
    chat = {"gen_ai.operation.name": "chat", "gen_ai.input.messages": said("user", PROMPT)}
    found = json.dumps([{"id": "d0", "content": PASSAGES[0]}])
    with tracer.start_as_current_span("agent", attributes=agent):
        retrieval = {"gen_ai.operation.name": "retrieval", "gen_ai.retrieval.documents": found}
        tracer.start_span("retrieval", attributes=retrieval).end()
        chat["gen_ai.output.messages"] = said("assistant", ANSWER)
        tracer.start_span("chat", attributes=chat).end()


def read_cut(
    application: Callable[[Tracer], None], limit: int | None, *, exported: bool = False
) -> Extraction:
    kept = InMemorySpanExporter()
    provider = TracerProvider(span_limits=SpanLimits(max_attribute_length=limit), shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(kept))
    application(provider.get_tracer("ferry"))
    provider.shutdown()
    spans = [from_sdk(span) for span in kept.get_finished_spans()]
    # What is exported does not say at which length texts were cut.
    return read_spans([replace(span, limit=None) for span in spans] if exported else spans)


def test_nothing_is_said_where_nothing_was_cut() -> None:
    for application, exported in product((openinference, genai), (True, False)):
        (record,) = read_cut(application, None, exported=exported).records
        assert (record.question, record.answer) == (QUESTION, ANSWER)
        assert record.truncated == ()
        assert "cut at" not in " ".join(record.notes)


@pytest.mark.parametrize("exported", [True, False])
@pytest.mark.parametrize("limit", [96, 120, 133])
def test_passages_count_that_the_cut_end_of_a_prompt_may_have_held(limit: int, exported: bool) -> None:
    (record,) = read_cut(openinference, limit, exported=exported).records
    assert [context.text for context in record.contexts] == list(PASSAGES)
    assert record.contexts_source == "retrieved"
    assert [context.seen for context in record.contexts] == [None] * 3
    assert f"cut at {limit} characters" in " ".join(record.notes)


def test_a_cut_question_answer_or_passage_is_named() -> None:
    (record,) = read_cut(openinference, 50).records
    assert record.truncated == ("question", "contexts", "answer")
    assert "OTEL_SPAN_ATTRIBUTE_VALUE_LENGTH_LIMIT" in " ".join(record.notes)


def test_an_answer_alone_may_be_cut() -> None:
    (record,) = read_cut(openinference, len(ANSWER) - 3).records
    assert record.truncated == ("answer",)
    assert record.question == QUESTION


def test_messages_that_were_cut_give_no_record_but_the_limit_to_raise() -> None:
    told = read_cut(genai, 60)
    assert told.records == []
    assert {diagnosis.cause for diagnosis in told.diagnoses} == {"unreadable"}


@pytest.mark.parametrize("limit", range(17, 420, 31))
def test_at_no_limit_a_record_is_wrong_without_a_word(limit: int) -> None:
    for application in (openinference, genai):
        for record in read_cut(application, limit).records:
            whole = (record.question, record.answer) == (QUESTION, ANSWER)
            every = {context.text for context in record.contexts} <= set(PASSAGES)
            missing = application is openinference and len(record.contexts) < len(PASSAGES)
            if not whole or not every or missing:
                assert "cut at" in " ".join(record.notes)
