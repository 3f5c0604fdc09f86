"""Every shape, fed as spans, as OTLP/JSON and through a real TracerProvider, against the truth about it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from apps.otel.attributes import oi, oi_model, oi_retriever
from apps.otel.feeding import Told, as_jaeger, as_otlp, as_printed, through_processor
from apps.otel.general import besides, conventions, forms, own, several, vendors
from apps.otel.general.conventions import chat, retrieval
from apps.otel.general.several import planned_parts_with_a_span_each
from apps.otel.java import langchain4j, spring
from apps.otel.javascript import frameworks, vercel
from apps.otel.python import (
    crewai,
    genai,
    haystack,
    openinference,
    openinference_agents,
    openllmetry,
    pydantic_ai,
)
from apps.otel.shapes import ANSWER, PASSAGES, QUESTION, Gap, Shape, Trace, Turn, joined, prompt
from steelyard_opentelemetry import Extraction, Span, read_otlp, read_spans
from steelyard_opentelemetry.dialects import DIALECTS
from steelyard_opentelemetry.received import ReceivedSpans

FAMILIES = (
    *(haystack, pydantic_ai, openinference, openinference_agents, openllmetry, genai, crewai),
    *(langchain4j, spring, vercel, frameworks, conventions, several, vendors, own, besides, forms),
)
SHAPES = [found for family in FAMILIES for found in family.SHAPES]


def read_as_spans(spans: Sequence[Span]) -> Told:
    reading = read_spans(spans)
    return Told(reading.records, reading.diagnoses)


def read_as_otlp(spans: Sequence[Span]) -> Told:
    otlp = read_otlp([json.dumps(as_otlp(spans))])
    assert otlp.problems == []
    return read_as_spans(otlp.spans)


def read_as_jaeger(spans: Sequence[Span]) -> Told:
    found = read_otlp(json.dumps(as_jaeger(spans), indent=2).splitlines())
    assert found.problems == []
    return read_as_spans(found.spans)


WAYS: dict[str, Callable[[Sequence[Span]], Told]] = {
    "spans": read_as_spans,
    "otlp": read_as_otlp,
    "jaeger": read_as_jaeger,
    "processor": through_processor,
}


def assert_one_text(contexts: Sequence[str], passages: Sequence[str]) -> None:
    """The contexts hold the passages in their order, with no more than headings and labels between them."""
    text = " ".join(" ".join(context.split()) for context in contexts)
    places = [text.index(" ".join(passage.split())) for passage in passages]
    assert places == sorted(places)
    assert len(text) - sum(map(len, passages)) < 200


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("found", SHAPES, ids=lambda found: found.name)
def test_a_shape_gives_its_turns_or_names_the_switch(found: Shape, way: str) -> None:
    told = WAYS[way](found.spans())
    if isinstance(found.truth, Gap):
        assert told.records == []
        assert [diagnosis.cause for diagnosis in told.diagnoses] == [found.truth.cause]
        assert found.truth.switch in told.diagnoses[0].advice
        return
    assert len(told.records) == len(found.truth), [str(diagnosis) for diagnosis in told.diagnoses]
    for record, turn in zip(told.records, found.truth, strict=True):
        contexts = tuple(context.text.strip() for context in record.contexts)
        if turn.one_text:
            assert_one_text(contexts, turn.contexts)
            contexts = turn.contexts
        assert Turn(question=record.question, contexts=contexts, answer=record.answer) == turn
    for record, turn in zip(told.records, found.truth, strict=True):
        assert turn.note in " ".join(record.notes)
        assert not turn.without or turn.without not in " ".join(record.notes)
    assert all(record.standalone_question in (None, record.question) for record in told.records)


@pytest.mark.parametrize("indent", [4, None])
@pytest.mark.parametrize("found", SHAPES, ids=lambda found: found.name)
def test_what_the_sdk_prints_tells_all_but_the_scope(found: Shape, indent: int | None) -> None:
    spans = found.spans()
    printed = read_otlp(as_printed(spans, indent=indent).splitlines())
    assert printed.problems == []
    told, same = (read_spans(each) for each in (printed.spans, [replace(span, scope="") for span in spans]))
    parts = [
        [(one.question, [context.text for context in one.contexts], one.answer, one.notes) for one in records]
        for records in (told.records, same.records)
    ]
    assert parts[0] == parts[1]
    assert [one.cause for one in told.diagnoses] == [one.cause for one in same.diagnoses]


def test_a_process_that_read_every_shape_before_reads_each_as_well() -> None:
    for found in (*SHAPES, *reversed(SHAPES)):
        test_a_shape_gives_its_turns_or_names_the_switch(found, "spans")


def test_the_shapes_speak_the_dialects() -> None:
    spans = [span for found in SHAPES for span in found.spans()]
    read = {one.name for one in DIALECTS if any(one.parse(span) is not None for span in spans)}
    assert len(read) >= 8


def test_every_shape_names_its_pattern_once() -> None:
    assert [found.name for found in SHAPES if not found.pattern] == []
    assert [name for name, count in Counter(found.name for found in SHAPES).items() if count > 1] == []


def test_a_part_that_is_read_later_is_noted_as_one() -> None:
    spans = planned_parts_with_a_span_each.spans()
    plan, first, second = spans[:1], spans[1:4], spans[4:7]
    reader = ReceivedSpans(quiet=1.0, ttl=60.0)
    notes: list[str] = []
    for moment, part in enumerate((plan, first, second)):
        request = json.dumps(as_otlp(part)).encode()
        for piece in reader.read(request, is_json=True).pieces.values():
            reader.take(piece, 200.0 * moment)
        notes += [" ".join(record.notes) for record in reader.ready(200.0 * moment + 100)]
    assert ["question_rewritten_only" in note for note in notes] == [True, True]


ORDINARY: dict[str, dict[str, Any]] = {
    "database": {"db.system": "postgresql", "db.statement": "select 1", "query": "select 1", "result": "1"},
    "web server": {"http.request.method": "GET", "url.query": "q=oil", "input": "q=oil", "output": "<html>"},
    "only a query": {"query": QUESTION},
    "only an input": {"app.input": QUESTION, "app.kind": "cron"},
    "numbers": {"input": 3, "output": 4, "documents": 12, "question": 7},
    "GraphQL": {"graphql.query": "{ bicycles { chain } }", "graphql.response": '{"bicycles": []}'},
    "flags": {"documents": True, "sources": (), "context": "", "prompt": "", "response": ""},
}


@pytest.mark.parametrize("kind", ORDINARY)
def test_ordinary_work_is_not_a_turn(kind: str) -> None:
    trace = Trace("my.service")
    with trace.span("job"):
        trace.leaf("retrieve", ORDINARY[kind])
        trace.leaf("generate report", ORDINARY[kind])
    told = read_spans(trace.spans)
    assert told.records == []
    assert {diagnosis.cause for diagnosis in told.diagnoses} <= {"no_llm_spans", "no_retrieval"}


@pytest.mark.parametrize("kind", ORDINARY)
def test_ordinary_work_around_a_turn_changes_nothing_in_it(kind: str) -> None:
    trace = Trace("my.service")
    with trace.span("handle request", ORDINARY[kind]):
        trace.leaf("load", ORDINARY[kind])
        trace.leaf("retrieval manuals", retrieval())
        trace.leaf("chat small-model", chat(prompt(), ANSWER))
        trace.leaf("save", ORDINARY[kind])
    (record,) = read_spans(trace.spans).records
    assert (record.question, record.answer) == (QUESTION, ANSWER)
    assert [context.text for context in record.contexts] == list(PASSAGES)
    assert record.notes == ()


_SUPPORTED = "Please tell if a given piece of information is supported by the context. Answer YES or NO."
_IN_LINE = "Your task is to evaluate if the response for the query is in line with the context. YES or NO?"
_RELEVANT = "Evaluate if the retrieved context from the sources are relevant to the query. End with [RESULT]."
_MAKES = "You are a teacher. Your task is to setup 2 questions for a quiz on the context."


def engine(asked: str, said: str, *, told: str = "", retriever: str = "SummaryIndexRetriever") -> Extraction:
    """An engine over an index of given passages, under OpenInference."""
    trace = Trace("openinference.instrumentation.llama_index")
    with trace.span("RetrieverQueryEngine.query", oi("CHAIN", asked, said)):
        trace.leaf(f"{retriever}.retrieve", oi_retriever(asked))
        prompt = f"{told}\n\nContext:\n{joined()}\n\nQuery: {asked}"
        trace.leaf("OpenAI.chat", oi_model([("user", prompt)], said))
    return read_spans(trace.spans)


@pytest.mark.parametrize(
    ("asked", "said", "told"),
    [
        (ANSWER, "YES", _SUPPORTED),
        (f"Question: {QUESTION}\nResponse: {ANSWER}", "NO", _IN_LINE),
        (f"{QUESTION}\nResponse: {ANSWER}", "The response follows from the context.", _IN_LINE),
        (QUESTION, "It fits well.\n\n[RESULT] 3.5", _RELEVANT),
        (_MAKES, "1. How often is a chain oiled?\n2. What follows a ride in the rain?", ""),
    ],
)
def test_what_is_asked_about_given_passages_is_not_a_turn(asked: str, said: str, told: str) -> None:
    reading = engine(asked, said, told=told)
    assert reading.records == []
    assert [diagnosis.cause for diagnosis in reading.diagnoses] == ["helper_call"]


@pytest.mark.parametrize(
    ("asked", "said", "told"),
    [
        ("Does the chain need oil every 200 km?", "Yes.", "Answer from the context."),
        ("Is the saddle too high when the heel reaches the pedal?", "No", ""),
        ("Which questions does the manual ask?", "None.", "Answer from the context."),
        ("Generate questions on chains for my class.", "I can do so. Which class is it?\nThey are for.", ""),
    ],
)
def test_a_users_short_question_about_everything_stays_a_turn(asked: str, said: str, told: str) -> None:
    (record,) = engine(asked, said, told=told).records
    assert (record.question, record.answer) == (asked, said)


def test_an_application_that_checks_claims_against_a_search_is_recorded() -> None:
    (record,) = engine(ANSWER, "YES", told=_SUPPORTED, retriever="VectorIndexRetriever").records
    assert (record.question, record.answer) == (ANSWER, "YES")
