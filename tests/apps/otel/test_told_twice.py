"""The same turn told by two instrumentors in traces of their own, beside two users who ask the same."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace

import pytest

from apps.otel.attributes import oi, oi_model, oi_retriever, oi_tool
from apps.otel.feeding import as_otlp, through_processor
from apps.otel.general.conventions import chat, retrieval, said
from apps.otel.shapes import ANSWER, PASSAGES, QUESTION, Trace, compact, joined, prompt
from steelyard_opentelemetry import Extraction, Span, read_spans
from steelyard_opentelemetry._extractor import TurnExtractor
from steelyard_opentelemetry.received import ReceivedSpans


def by_openinference() -> list[Span]:
    trace = Trace("openinference.instrumentation.langchain")
    with trace.span("chain", oi("CHAIN", QUESTION, ANSWER)):
        trace.leaf("retriever", oi_retriever(QUESTION))
        trace.leaf("model", oi_model([("user", prompt())], ANSWER))
    return trace.spans


def by_genai(answer: str = ANSWER) -> list[Span]:
    told = {
        "gen_ai.input.messages": said(("user", QUESTION)),
        "gen_ai.output.messages": said(("assistant", answer)),
    }
    trace = Trace("opentelemetry.util.genai.handler")
    with trace.span("invoke_agent", {"gen_ai.operation.name": "invoke_agent", **told}):
        trace.leaf("retrieval", retrieval())
        trace.leaf("chat", chat(prompt(), answer))
    return trace.spans


def by_runs_without_parents(graph: int, step: int) -> list[Span]:
    """A graph and one of its steps, each in a trace of its own; the numbers are seconds they last."""
    documents = [{"pageContent": text, "metadata": {}} for text in PASSAGES]
    state = {"question": QUESTION, "context": documents}
    spans: list[Span] = []
    for name, given, seconds in (("graph", {"question": QUESTION}, graph), ("step", state, step)):
        told = {
            "traceloop.span.kind": "workflow",
            "traceloop.entity.input": compact(given),
            "traceloop.entity.output": compact({**state, "answer": ANSWER}),
        }
        trace = Trace("@traceloop/instrumentation-langchain")
        trace.leaf(f"workflow {name}", told)
        spans += [replace(span, end=span.start + seconds * 10**9) for span in trace.spans]
    return spans


def read(*turns: list[Span]) -> Extraction:
    return read_spans(span for spans in turns for span in spans)


def test_a_turn_in_two_traces_of_two_instrumentors_is_recorded_once() -> None:
    reading = read(by_openinference(), by_genai())
    assert (len(reading.records), reading.duplicates) == (1, 1)


def test_white_space_around_an_answer_does_not_make_another_turn_of_it() -> None:
    reading = read(by_openinference(), by_genai(ANSWER.replace(", ", ",\n") + "\n"))
    assert (len(reading.records), reading.duplicates) == (1, 1)


def test_two_users_who_ask_the_same_at_the_same_time_are_two_turns() -> None:
    reading = read(by_openinference(), by_openinference())
    assert (len(reading.records), reading.duplicates) == (2, 0)


def test_two_users_under_two_instrumentors_are_two_turns() -> None:
    reading = read(by_openinference(), by_genai(), by_openinference(), by_genai())
    assert (len(reading.records), reading.duplicates) == (2, 2)


def test_a_step_in_a_trace_of_its_own_is_told_with_the_run_it_belongs_to() -> None:
    reading = read(by_runs_without_parents(graph=3, step=2))
    assert [record.metadata["span"] for record in reading.records] == ["workflow graph"]
    assert reading.duplicates == 1


def test_a_step_that_went_on_after_a_run_belongs_to_another_one() -> None:
    reading = read(by_runs_without_parents(graph=1, step=2))
    assert (len(reading.records), reading.duplicates) == (2, 0)


LATER = 3600 * 10**9
_TASK = f"Current Task: Find the answer to this: {QUESTION}"


def by_events_and_client(*, shift: int = 0, answer: str = ANSWER) -> list[Span]:
    """A crew told by events, whose spans are never current, and its client's calls as roots of their own.

    Args:
        shift: Nanoseconds by which it all is later.
        answer: What the crew came to.
    """
    asked, found = ("user", _TASK), ("tool", joined())
    crew, client = (
        "openinference.instrumentation.crewai._event_listener",
        "openinference.instrumentation.openai",
    )
    trace = Trace(crew)
    came = {"raw": answer, "agent": "Mechanic"}
    told = {"crew_tasks": json.dumps([{"description": "Find the answer to this: {question}"}])}
    with trace.span("crew.kickoff", {**oi("CHAIN", {"question": QUESTION}, came), **told}):
        trace.leaf("llm_call", oi_model([asked], ""))
        trace.leaf("search_manual.run", oi_tool("search_manual", joined()))
        trace.leaf("llm_call", oi_model([asked, found], answer))
    seen: list[Span] = []
    for number, span in enumerate(one for one in trace.spans if one.name == "llm_call"):
        inner = Trace(client)
        inner.leaf("ChatCompletion", oi_model([asked, found][: number + 1], answer if number else ""))
        seen += [replace(one, start=span.start + 1, end=span.end - 1) for one in inner.spans]
    # The client's spans end before those around them, and the crew's root last of all.
    spans = sorted([*trace.spans, *seen], key=lambda span: span.end)
    return [replace(span, start=span.start + shift, end=span.end + shift) for span in spans]


def test_a_call_in_a_trace_of_its_own_is_told_with_the_framework_that_reports_by_events() -> None:
    reading = read(by_events_and_client())
    assert [(record.question, record.metadata["span"]) for record in reading.records] == [
        (QUESTION, "crew.kickoff")
    ]


def test_the_same_call_an_hour_later_is_another_turn() -> None:
    crew = by_events_and_client()
    alone = [span for span in by_events_and_client(shift=LATER) if span.name == "ChatCompletion"]
    assert [record.metadata["span"] for record in read(crew, alone).records] == [
        "crew.kickoff",
        "ChatCompletion",
    ]


def test_another_reply_at_the_same_time_is_another_turn() -> None:
    other = [span for span in by_events_and_client(answer="Once a year.") if span.name == "ChatCompletion"]
    assert len(read(by_events_and_client(), other).records) == 2


def test_two_crews_at_the_same_time_with_the_same_words_are_two_turns() -> None:
    reading = read(by_events_and_client(), by_events_and_client())
    assert [record.metadata["span"] for record in reading.records] == ["crew.kickoff", "crew.kickoff"]


def test_a_call_waits_for_the_turn_that_is_still_open() -> None:
    told = through_processor(by_events_and_client())
    assert [record.metadata["span"] for record in told.records] == ["crew.kickoff"]


def test_a_call_that_was_received_waits_for_the_turn_whose_root_is_not_there_yet() -> None:
    spans = by_events_and_client()
    received = ReceivedSpans(quiet=1, ttl=60)

    def take(spans: list[Span], now: float) -> None:
        export = received.read(json.dumps(as_otlp(spans)).encode(), is_json=True)
        for piece in export.pieces.values():
            received.take(piece, now)

    take(spans[:-1], 0.0)
    assert received.ready(5.0) == []
    take(spans[-1:], 6.0)
    assert [record.metadata["span"] for record in received.ready(10.0)] == ["crew.kickoff"]
    assert received.ready(1000.0) == []


def test_users_who_ask_a_client_the_same_at_once_under_two_instrumentors_are_all_recorded() -> None:
    turns: list[list[Span]] = []
    for _ in range(3):
        trace = Trace("opentelemetry.util.genai.handler")
        with trace.span("chat", chat(prompt(), ANSWER)):
            inner = oi_model([("user", prompt())], ANSWER)
            trace.leaf("ChatCompletion", inner, scope="openinference.instrumentation.openai")
        turns.append(trace.spans)
    assert len(read(*turns).records) == 3


def by_gateway(*, replied: str = ANSWER, seconds: float = 0.0) -> list[Span]:
    """A model call as a gateway tells it, which is a service with a trace of its own.

    Args:
        replied: What the model said.
        seconds: By how much it began later than its caller's.
    """
    trace = Trace("litellm")
    with trace.span("POST /v1/chat/completions", scope="fastapi"):
        trace.leaf("litellm_request", chat(prompt(), replied))
    shift = int(seconds * 10**9) + _AFTER_RETRIEVAL
    return [
        replace(span, service="gateway", start=span.start + shift, end=span.end + shift)
        for span in trace.spans
    ]


_AFTER_RETRIEVAL = 125 * 10**6


def by_client() -> list[Span]:
    trace = Trace("openinference.instrumentation.openai")
    trace.leaf("ChatCompletion", oi_model([("user", prompt())], ANSWER))
    return [replace(span, start=span.start, end=span.end + 3 * _AFTER_RETRIEVAL) for span in trace.spans]


@pytest.mark.parametrize("caller", [by_openinference, by_client])
@pytest.mark.parametrize("is_first", [True, False])
def test_a_call_through_a_gateway_is_one_turn_and_the_callers(
    caller: Callable[[], list[Span]], is_first: bool
) -> None:
    told = [by_gateway(), caller()]
    (record,) = read(*(told if is_first else told[::-1])).records
    assert (record.metadata["service"], record.question, record.answer) == ("bicycles", QUESTION, ANSWER)


def test_a_gateways_call_that_comes_after_its_turn_was_recorded_is_not_another_one() -> None:
    extractor = TurnExtractor()
    assert len(extractor.read(by_openinference()).records) == 1
    assert extractor.read(by_gateway()).records == []
    assert extractor.close().records == []


@pytest.mark.parametrize(
    "other", [by_gateway(seconds=3600), by_gateway(replied="Once a year, or so I am told.")]
)
def test_a_gateways_call_at_another_time_or_with_another_reply_is_another_turn(other: list[Span]) -> None:
    records = read(by_openinference(), other).records
    assert sorted(record.metadata["service"] for record in records) == ["bicycles", "gateway"]


def test_two_services_that_retrieve_the_same_at_once_are_two_turns() -> None:
    mirrored = [replace(span, service="canary") for span in by_openinference()]
    assert len(read(by_openinference(), mirrored).records) == 2


def test_a_call_of_the_same_service_beside_a_turn_is_not_joined_with_it_for_its_words() -> None:
    told = [replace(span, service="bicycles") for span in by_gateway()]
    (record,) = read(by_openinference(), told).records
    assert not any("joined" in note for note in record.notes)
