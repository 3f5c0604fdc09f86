"""Which span the scores of a turn go on: its own, as a tracer or the application opened it, or none.

`tests/tracers` has the same for every tracer, in every arrangement.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.instrumentation.span import BaseSpan
from llama_index.core.instrumentation.span_handlers import BaseSpanHandler
from llama_index.core.tools import QueryEngineTool
from llama_index_instrumentation import root_dispatcher
from llama_index_instrumentation.dispatcher import instrument_tags
from llamaindex_parts import ANSWER, PARIS, QUESTION, Caller, Receiver, Scripted, engine
from opentelemetry import context as otel_context
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.trace import Span, set_span_in_context
from pydantic import PrivateAttr

from steelyard_llamaindex import record

TRACER = TracerProvider().get_tracer("tracing")


class Kept(BaseSpan):
    """What a tracer keeps of a span."""

    _otel: Any = PrivateAttr()


class Tracing(BaseSpanHandler[Kept]):
    """A tracer, as the framework's base class makes them."""

    _roots: list[Span] = PrivateAttr(default_factory=list)

    def new_span(
        self,
        id_: str,
        bound_args: Any,
        instance: Any = None,
        parent_span_id: str | None = None,
        tags: Any = None,
        **_: Any,
    ) -> Kept:
        kept = Kept(id_=id_, parent_id=parent_span_id)
        kept._otel = TRACER.start_span("run")
        if parent_span_id is None:
            self._roots.append(kept._otel)
        return kept

    def prepare_to_exit_span(self, id_: str, *_: Any, **__: Any) -> Kept | None:
        return self.open_spans.get(id_)

    prepare_to_drop_span = prepare_to_exit_span


@pytest.fixture(params=["before", "after"])
def theirs(request: pytest.FixtureRequest, receiver: Receiver) -> Iterator[Tracing]:
    tracing, handlers = Tracing(), root_dispatcher.span_handlers
    root_dispatcher.span_handlers = (
        [tracing, *handlers] if request.param == "before" else [*handlers, tracing]
    )
    yield tracing
    root_dispatcher.span_handlers = [each for each in root_dispatcher.span_handlers if each is not tracing]


def place(span: Span) -> tuple[str, str]:
    context = span.get_span_context()
    return f"{context.trace_id:032x}", f"{context.span_id:016x}"


def placed(receiver: Receiver) -> list[tuple[str | None, str | None]]:
    return [(one.trace.trace_id, one.trace.span_id) for one in receiver.records if one.trace is not None]


def query() -> None:
    engine().query(QUESTION)


def aquery() -> None:
    asyncio.run(engine().aquery(QUESTION))


def stream() -> None:
    response: Any = engine(streaming=True).query(QUESTION)
    list(response.response_gen)


@pytest.mark.parametrize("run", [query, aquery, stream])
def test_a_tracer_s_own_map_tells_the_span(
    run: Callable[[], None], theirs: Tracing, receiver: Receiver
) -> None:
    run()
    assert placed(receiver) == [place(theirs._roots[0])]


def test_a_block_takes_the_span_of_the_model_that_ran_last_in_it(theirs: Tracing, receiver: Receiver) -> None:
    with record(QUESTION) as turn:
        turn.answer = Scripted().complete(f"Context: Paris.\n\nQuestion: {QUESTION}").text
    assert placed(receiver) == [place(theirs._roots[-1])]


@pytest.mark.parametrize("run", [query, aquery, stream])
def test_a_span_that_has_ended_is_never_taken(run: Callable[[], None], receiver: Receiver) -> None:
    span = TRACER.start_span("turn before")
    span.end()
    token = otel_context.attach(set_span_in_context(span))
    run()
    otel_context.detach(token)
    assert placed(receiver) == [(None, None)]


def test_tags_reach_the_record(receiver: Receiver) -> None:
    given = {
        "reference": ANSWER,
        "reference_contexts": [PARIS],
        "tags": ["beta", "eu"],
        "user": "u1",
        "llamaindex.internal": "x",
    }
    with instrument_tags(given):
        engine().query(QUESTION)
    engine().query("without?")
    record, plain = receiver.records
    assert record.reference == ANSWER
    assert [context.text for context in record.reference_contexts] == [PARIS]
    assert record.tags == ("beta", "eu")
    assert record.metadata == {"user": "u1"}
    assert (plain.reference, plain.tags, plain.metadata) == (None, (), {})


async def test_tags_reach_an_agent_s_record(receiver: Receiver) -> None:
    tool = QueryEngineTool.from_defaults(engine(), name="docs", description="docs")
    agent = FunctionAgent(tools=[tool], llm=Caller(script=[("docs", {"input": "capital"}), ANSWER]))
    with instrument_tags({"user": "u1", "reference": ANSWER}):
        await agent.run(user_msg=QUESTION)
    assert receiver.record.reference == ANSWER
    assert receiver.record.metadata == {"user": "u1"}


def test_the_current_span_is_the_turn_s_trace(receiver: Receiver) -> None:
    assert "opentelemetry.trace" in sys.modules
    tracer = TracerProvider().get_tracer("test")
    with tracer.start_as_current_span("request") as span:
        engine().query(QUESTION)
    asyncio.run(engine().aquery("no span?"))
    record, other = receiver.records
    assert record.trace is not None
    assert record.trace.trace_id == f"{span.get_span_context().trace_id:032x}"
    assert record.trace.span_id == f"{span.get_span_context().span_id:016x}"
    assert record.trace.run_id == record.id
    assert receiver.drafts[0].trace == record.trace
    assert receiver.drafts[0].id == record.id
    assert other.trace is not None
    assert other.trace.trace_id is None
