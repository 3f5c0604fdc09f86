"""Whatever an application puts onto spans, nothing is raised into it, and the next turn is recorded."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.sampling import ALWAYS_ON
from otel_parts import ANSWER, QUESTION, Receiver, documents, is_right, messages, oi

from steelyard_opentelemetry import EvaluationSpanProcessor
from waiting import until

texts = st.text(max_size=20) | st.sampled_from(
    ["\ud800", "\x00", "[" * 3000, "{}", "x" * 50_000, "null", "NaN", '[{"role": "user"}]', "Document(", "-1"]
)
single = texts | st.integers() | st.floats() | st.booleans() | st.none() | st.binary(max_size=9)
values = (
    single | st.lists(single, max_size=3) | st.just(object()) | st.dictionaries(texts, single, max_size=2)
)
names = st.sampled_from(
    [*oi("CHAIN", input__value=""), *documents(), "output.value", "gen_ai.input.messages"]
    + ["gen_ai.output.messages", "gen_ai.operation.name", "gen_ai.retrieval.documents", "session.id"]
    + ["traceloop.span.kind", "traceloop.entity.output", "gen_ai.conversation.id", "llm.input_messages"]
)
times = st.none() | st.integers(-(10**18), 10**19)
spans = st.fixed_dictionaries(
    {
        "attributes": st.dictionaries(names | texts, values, max_size=5),
        "events": st.lists(st.tuples(texts, st.dictionaries(names, values, max_size=2), times), max_size=2),
        "start": times,
        "end": times,
        "ends": st.integers(0, 2),
    }
)


@pytest.fixture(scope="module")
def recorded() -> Iterator[tuple[TracerProvider, EvaluationSpanProcessor, Receiver]]:
    receiver = Receiver()
    processor = EvaluationSpanProcessor(receiver, quiet=0.01)
    provider = TracerProvider(sampler=ALWAYS_ON, shutdown_on_exit=False)
    provider.add_span_processor(processor)
    yield provider, processor, receiver
    processor.shutdown()


@pytest.mark.faults
@settings(max_examples=60, suppress_health_check=list(HealthCheck), deadline=None)
@given(made=st.lists(spans, max_size=4))
def test_any_span_of_the_sdk_gets_a_named_outcome(
    recorded: tuple[TracerProvider, EvaluationSpanProcessor, Receiver], made: list[dict[str, Any]]
) -> None:
    provider, processor, receiver = recorded
    tracer = provider.get_tracer("app")
    with tracer.start_as_current_span("outer"):
        for one in made:
            _play(tracer, one)
    receiver.records.clear()
    with tracer.start_as_current_span("chain", attributes=oi("CHAIN", input__value=QUESTION)) as root:
        with tracer.start_as_current_span(
            "find", attributes=oi("RETRIEVER", input__value=QUESTION, **documents())
        ):
            pass
        root.set_attribute("output.value", ANSWER)
    assert processor.force_flush(30_000)
    until(lambda: any(is_right(record) for record in receiver.records))


def _play(tracer: Any, made: dict[str, Any]) -> None:
    """A span as given; the SDK itself may refuse what it is made of, which is then no span."""
    try:
        span = tracer.start_span("x", attributes=made["attributes"], start_time=made["start"])
        for name, attributes, at in made["events"]:
            span.add_event(name, attributes, at)
        span.set_attribute("gen_ai.input.messages", messages(("user", QUESTION)))
    except (TypeError, ValueError):
        return
    for _ in range(made["ends"]):
        span.end(made["end"])
