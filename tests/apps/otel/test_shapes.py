"""Every shape, fed as spans, as OTLP/JSON and through a real TracerProvider, against the truth about it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Sequence

import pytest

from apps.otel.feeding import Told, as_otlp, through_processor
from apps.otel.general import besides, conventions, several, vendors
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
from apps.otel.shapes import Gap, Shape, Turn
from steelyard_opentelemetry import Span, read_otlp, read_spans
from steelyard_opentelemetry.dialects import DIALECTS

FAMILIES = (
    *(haystack, pydantic_ai, openinference, openinference_agents, openllmetry, genai, crewai),
    *(langchain4j, spring, vercel, frameworks, conventions, several, vendors, besides),
)
SHAPES = [found for family in FAMILIES for found in family.SHAPES]


def read_as_spans(spans: Sequence[Span]) -> Told:
    reading = read_spans(spans)
    return Told(reading.records, reading.diagnoses)


def read_as_otlp(spans: Sequence[Span]) -> Told:
    otlp = read_otlp([json.dumps(as_otlp(spans))])
    assert otlp.problems == []
    return read_as_spans(otlp.spans)


WAYS: dict[str, Callable[[Sequence[Span]], Told]] = {
    "spans": read_as_spans,
    "otlp": read_as_otlp,
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


def test_a_process_that_read_every_shape_before_reads_each_as_well() -> None:
    for found in (*SHAPES, *reversed(SHAPES)):
        test_a_shape_gives_its_turns_or_names_the_switch(found, "spans")


def test_a_dialect_is_asked_about_every_span_that_it_can_read() -> None:
    read: Counter[str] = Counter()
    for found in SHAPES:
        for span in found.spans():
            signs = frozenset(span.attributes)
            for dialect in DIALECTS:
                if dialect.parse(span) is not None:
                    read[dialect.name] += 1
                    assert dialect.may_speak(span.scope, signs), (found.name, dialect.name, span.name)
    assert len(read) >= 8


def test_no_dialect_but_those_without_signs_is_asked_about_a_span_of_an_http_client() -> None:
    asked = [one for one in DIALECTS if one.may_speak("opentelemetry.instrumentation.httpx", frozenset())]
    assert {one.name for one in asked} <= {"haystack", "openllmetry"}


def test_every_shape_names_its_pattern_once() -> None:
    assert [found.name for found in SHAPES if not found.pattern] == []
    assert [name for name, count in Counter(found.name for found in SHAPES).items() if count > 1] == []
