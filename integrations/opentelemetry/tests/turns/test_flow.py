"""Retrievals and model calls in traces of their own: those of one task or thread are one turn."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.sampling import ALWAYS_ON
from opentelemetry.trace import Tracer
from otel_parts import Receiver, documents, messages, oi, prompt

from steelyard_opentelemetry import EvaluationSpanProcessor

TENANTS = 20


@pytest.fixture
def receiver() -> Receiver:
    return Receiver()


@pytest.fixture
def provider(receiver: Receiver) -> Iterator[TracerProvider]:
    provider = TracerProvider(sampler=ALWAYS_ON, shutdown_on_exit=False)
    provider.add_span_processor(EvaluationSpanProcessor(receiver, quiet=60))
    yield provider
    provider.shutdown()


@pytest.fixture
def tracer(provider: TracerProvider) -> Tracer:
    return provider.get_tracer("app")


def text(tenant: int) -> str:
    return f"The valve of plant {tenant} must be replaced after {tenant + 40} hours of operation."


def look_up(tracer: Tracer, question: str, *texts: str) -> None:
    attributes = oi("RETRIEVER", input__value=question, **documents(texts))
    with tracer.start_as_current_span("find", attributes=attributes):
        pass


def answer(tracer: Tracer, question: str, reply: str, *texts: str) -> None:
    attributes = {
        "gen_ai.operation.name": "chat",
        "gen_ai.input.messages": messages(("user", prompt(question, texts))),
        "gen_ai.output.messages": messages(("assistant", reply)),
    }
    with tracer.start_as_current_span("chat", attributes=attributes):
        pass


def test_what_one_thread_looks_up_and_answers_is_one_turn(
    provider: TracerProvider, tracer: Tracer, receiver: Receiver
) -> None:
    for number in range(3):
        look_up(tracer, f"When is plant {number} due?", text(number))
        answer(tracer, f"When is plant {number} due?", f"After {number + 40} hours.", text(number))
    provider.shutdown()
    assert [
        (one.question, one.contexts_source, [c.id for c in one.contexts]) for one in receiver.records
    ] == [(f"When is plant {number} due?", "in_prompt", ["d1"]) for number in range(3)]


async def test_tenants_who_ask_the_same_at_once_keep_their_own(
    provider: TracerProvider, tracer: Tracer, receiver: Receiver
) -> None:
    async def ask(tenant: int) -> None:
        look_up(tracer, "When is it due?", text(tenant), text(99))
        await asyncio.sleep(0)
        answer(tracer, "When is it due?", f"Plant {tenant}: soon.", text(tenant), text(99))

    await asyncio.gather(*map(ask, range(TENANTS)))
    provider.shutdown()
    assert sorted((one.answer, one.contexts[0].text) for one in receiver.records) == sorted(
        (f"Plant {tenant}: soon.", text(tenant)) for tenant in range(TENANTS)
    )
    assert all(len(one.contexts) == 2 for one in receiver.records)


def test_what_another_thread_looked_up_is_not_joined(
    provider: TracerProvider, tracer: Tracer, receiver: Receiver
) -> None:
    with ThreadPoolExecutor(1) as pool:
        pool.submit(look_up, tracer, "When is plant 1 due?", text(1)).result()
    answer(tracer, "When is plant 1 due?", "After 41 hours.", text(1))
    provider.shutdown()
    assert [one.contexts_source for one in receiver.records] == ["guessed"]


def test_a_look_up_that_no_answer_used_is_not_the_next_ones(
    provider: TracerProvider, tracer: Tracer, receiver: Receiver
) -> None:
    look_up(tracer, "What did Ada order?", text(1), text(2))
    look_up(tracer, "When is plant 2 due?", text(2))
    answer(tracer, "When is plant 2 due?", "After 42 hours.", text(2))
    provider.shutdown()
    (record,) = receiver.records
    assert [(one.text, one.query) for one in record.contexts] == [(text(2), None)]
    assert not record.retrieved


def test_a_turn_that_was_given_its_passages_is_joined_with_their_look_up(
    provider: TracerProvider, tracer: Tracer, receiver: Receiver
) -> None:
    look_up(tracer, "When is plant 3 due?", text(3))
    given = oi("CHAIN", input__value=f'{{"question": "When is plant 3 due?", "context": "{text(3)}"}}')
    with tracer.start_as_current_span("answer", attributes=given) as chain:
        answer(tracer, "When is plant 3 due?", "After 43 hours.", text(3))
        chain.set_attribute("output.value", "After 43 hours.")
    provider.shutdown()
    (record,) = receiver.records
    assert (record.question, record.answer) == ("When is plant 3 due?", "After 43 hours.")
    assert [one.id for one in record.contexts] == ["d1"]


def test_a_look_up_for_somebody_else_is_not_joined_because_its_passage_is_like_the_prompt(
    provider: TracerProvider, tracer: Tracer, receiver: Receiver
) -> None:
    """Two customers' passages may be the same but for a name; the first one's search used up nothing."""
    anders, berger = (f"The invoice of {who} over 300 euros is due in June." for who in ("A12", "B34"))
    look_up(tracer, "What does A12 owe?", anders)
    answer(tracer, "What does B34 owe?", "It owes 300 euros.", berger)
    provider.shutdown()
    (record,) = receiver.records
    assert record.answer == "It owes 300 euros."
    assert not any("A12" in one.text for one in (*record.contexts, *record.retrieved))
