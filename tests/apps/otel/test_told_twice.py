"""The same turn told by two instrumentors in traces of their own, beside two users who ask the same."""

from __future__ import annotations

from apps.otel.attributes import oi, oi_model, oi_retriever
from apps.otel.general.conventions import chat, retrieval, said
from apps.otel.shapes import ANSWER, QUESTION, Trace, prompt
from steelyard_opentelemetry import Extraction, Span, read_spans


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
