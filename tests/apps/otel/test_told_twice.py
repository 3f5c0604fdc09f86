"""The same turn told by two instrumentors in traces of their own, beside two users who ask the same."""

from __future__ import annotations

from dataclasses import replace

from apps.otel.attributes import oi, oi_model, oi_retriever
from apps.otel.general.conventions import chat, retrieval, said
from apps.otel.shapes import ANSWER, PASSAGES, QUESTION, Trace, compact, prompt
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
