"""Which span the scores of a turn go on: its own, as a tracer or the application opened it, or none.

`tests/tracers` has the same for every tracer, in every arrangement.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from contextvars import copy_context
from typing import Any
from uuid import UUID

import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.runnables import Runnable
from langchain_parts import QUESTION, Receiver, Scripted, Shelf, lcel
from opentelemetry import context as otel_context
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF
from opentelemetry.trace import (
    INVALID_SPAN,
    NonRecordingSpan,
    Span,
    SpanContext,
    SpanKind,
    TraceFlags,
    set_span_in_context,
)

from steelyard._internal.logs import SafeLogger, WarnOnce
from steelyard.recording import _trace
from steelyard_langchain import CallbackHandler, record

PROVIDER = TracerProvider()
TRACER = PROVIDER.get_tracer("shop.langchain")  # an application may be called so
Config = Any


class Holder:
    """What a tracer keeps beside a span."""

    def __init__(self, span: Span) -> None:
        self.span = span


class Tracing(BaseCallbackHandler):
    """A tracer: a span for each run by its id, in something of its own, current or not."""

    run_inline = True

    def __init__(self, *, held: bool = False, by_text: bool = False, provider: Any = PROVIDER) -> None:
        self._by_run: dict[Any, Any] = {}
        self._held, self._by_text = held, by_text
        self.tracer = provider.get_tracer("tracing")
        self.roots: list[Span] = []

    def _start(self, run_id: UUID, parent_run_id: UUID | None) -> None:
        span = self.tracer.start_span("run")
        self._by_run[str(run_id) if self._by_text else run_id] = Holder(span) if self._held else span
        if parent_run_id is None:
            self.roots.append(span)

    def _end(self, run_id: UUID) -> None:
        kept = self._by_run.pop(str(run_id) if self._by_text else run_id)
        (kept.span if self._held else kept).end()

    def on_chain_start(self, *_: Any, run_id: UUID, parent_run_id: UUID | None = None, **__: Any) -> None:
        self._start(run_id, parent_run_id)

    on_chat_model_start = on_retriever_start = on_chain_start

    def on_chain_end(self, *_: Any, run_id: UUID, **__: Any) -> None:
        self._end(run_id)

    on_llm_end = on_retriever_end = on_chain_end


class Models(Tracing):
    """A tracer that has spans for model calls alone."""

    def on_chain_start(self, *_: Any, **__: Any) -> None: ...
    def on_chain_end(self, *_: Any, **__: Any) -> None: ...
    def on_retriever_start(self, *_: Any, **__: Any) -> None: ...
    def on_retriever_end(self, *_: Any, **__: Any) -> None: ...

    def _start(self, run_id: UUID, parent_run_id: UUID | None) -> None:
        super()._start(run_id, None)  # there is no span above it


class Unreadable(Tracing):
    """A tracer whose insides raise."""

    def __getattribute__(self, name: str) -> Any:
        if name == "__dict__":
            raise RuntimeError("no")
        return super().__getattribute__(name)


def place(span: Span) -> tuple[str, str]:
    context = span.get_span_context()
    return f"{context.trace_id:032x}", f"{context.span_id:016x}"


def placed(receiver: Receiver, at: int = -1) -> tuple[str | None, str | None]:
    trace = receiver.records[at].trace
    assert trace is not None
    return trace.trace_id, trace.span_id


def invoke(chain: Runnable[Any, Any], config: Config) -> None:
    chain.invoke(QUESTION, config)


def ainvoke(chain: Runnable[Any, Any], config: Config) -> None:
    asyncio.run(chain.ainvoke(QUESTION, config))


def stream(chain: Runnable[Any, Any], config: Config) -> None:
    list(chain.stream(QUESTION, config))


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What one test leaves current or has logged is none of the next one's."""
    monkeypatch.setattr(_trace, "_warn_once", WarnOnce(SafeLogger("steelyard.recording")))
    token = otel_context.attach(otel_context.Context())
    yield
    otel_context.detach(token)


@pytest.mark.parametrize("run", [invoke, ainvoke, stream])
@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("form", [{}, {"held": True}, {"by_text": True}])
def test_a_tracer_s_own_map_tells_the_span(
    run: Any, first: bool, form: dict[str, bool], receiver: Receiver
) -> None:
    theirs = Tracing(**form)
    callbacks = [theirs, CallbackHandler(receiver)]
    run(lcel(), {"callbacks": callbacks if first else callbacks[::-1]})
    assert placed(receiver) == place(theirs.roots[0])
    assert receiver.record.trace is not None and receiver.record.trace.run_id == receiver.record.id


@pytest.mark.parametrize("first", [True, False])
async def test_a_model_that_is_called_by_itself_has_its_own_span(first: bool, receiver: Receiver) -> None:
    theirs = Tracing()
    callbacks = [theirs, CallbackHandler(receiver)]
    config: Config = {"callbacks": callbacks if first else callbacks[::-1]}

    found = Shelf().invoke(QUESTION, config)
    await Scripted(replies=["Paris."]).ainvoke(
        f"Context: {found[0].page_content}\n\nQuestion: {QUESTION}", config
    )
    assert placed(receiver) == place(theirs.roots[-1])


@pytest.mark.parametrize("run", [invoke, ainvoke, stream])
@pytest.mark.parametrize("first", [True, False])
def test_if_only_the_model_has_a_span_it_is_that(run: Any, first: bool, receiver: Receiver) -> None:
    theirs = Models()
    callbacks = [theirs, CallbackHandler(receiver)]
    run(lcel(), {"callbacks": callbacks if first else callbacks[::-1]})
    assert placed(receiver) == place(theirs.roots[0])


def test_a_block_takes_the_span_of_the_model_that_ran_last_in_it(receiver: Receiver) -> None:
    theirs = Models()
    handler = CallbackHandler(receiver)
    with record(handler, question=QUESTION) as turn:
        lcel().invoke(QUESTION, {"callbacks": [theirs]})
        turn.answer = "Paris."
    assert placed(receiver) == place(theirs.roots[-1])


class Odd(Tracing):
    """A tracer that has more than one span for a run, or only that of what the run was called from."""

    def __init__(self, *names: str) -> None:
        super().__init__()
        self.names = names

    def _start(self, run_id: UUID, parent_run_id: UUID | None) -> None:
        super()._start(run_id, parent_run_id)
        held = self._by_run[run_id] = Holder(self._by_run[run_id])
        for name in self.names:
            setattr(held, name, self.tracer.start_span("other"))

    def _end(self, run_id: UUID) -> None:
        self._by_run.pop(run_id)


def test_the_span_of_what_a_run_was_called_from_is_not_its_own(receiver: Receiver) -> None:
    theirs = Odd("parent", "_parent_span")
    invoke(lcel(), {"callbacks": [theirs, CallbackHandler(receiver)]})
    assert placed(receiver) == place(theirs.roots[0])


def test_of_two_spans_for_a_run_none_is_taken(receiver: Receiver) -> None:
    invoke(lcel(), {"callbacks": [Odd("agent"), CallbackHandler(receiver)]})
    assert placed(receiver) == (None, None)


def test_a_span_that_never_began_has_no_ids(receiver: Receiver) -> None:
    class Lost(Tracing):
        def _start(self, run_id: UUID, parent_run_id: UUID | None) -> None:
            self._by_run[run_id] = INVALID_SPAN

    invoke(lcel(), {"callbacks": [Lost(), CallbackHandler(receiver)]})
    assert placed(receiver) == (None, None)


def test_an_unsampled_span_is_told_as_such(receiver: Receiver) -> None:
    theirs = Tracing(provider=TracerProvider(sampler=ALWAYS_OFF))
    invoke(lcel(), {"callbacks": [theirs, CallbackHandler(receiver)]})
    assert receiver.record.trace is not None and not receiver.record.trace.sampled


def test_a_tracer_that_raises_is_passed_over(receiver: Receiver) -> None:
    theirs = Tracing()
    invoke(lcel(), {"callbacks": [Unreadable(), CallbackHandler(receiver), theirs]})
    assert placed(receiver) == place(theirs.roots[0])


@pytest.mark.parametrize("run", [invoke, ainvoke, stream])
def test_the_application_s_own_span_is_taken(run: Any, receiver: Receiver) -> None:
    with TRACER.start_as_current_span("POST /ask") as span:
        for _ in range(2):  # one request may ask twice
            run(lcel(), {"callbacks": [CallbackHandler(receiver)]})
            assert placed(receiver) == place(span)


def test_the_application_s_own_spans_around_and_after_a_turn_are_taken(receiver: Receiver) -> None:
    handler = CallbackHandler(receiver)
    with TRACER.start_as_current_span("POST /ask") as request:
        for callbacks in ([Tracing(), handler], [handler]):
            invoke(lcel(), {"callbacks": callbacks})
        with TRACER.start_as_current_span("a second question") as inner:
            invoke(lcel(), {"callbacks": [handler]})
    assert [placed(receiver, at) for at in (1, 2)] == [place(request), place(inner)]


def test_the_span_of_another_process_is_taken(receiver: Receiver) -> None:
    context = SpanContext(trace_id=1, span_id=2, is_remote=True, trace_flags=TraceFlags(1))
    otel_context.attach(set_span_in_context(NonRecordingSpan(context)))
    invoke(lcel(), {"callbacks": [CallbackHandler(receiver)]})
    assert placed(receiver) == (f"{1:032x}", f"{2:016x}")


def ended() -> Span:
    span = TRACER.start_span("turn before")
    span.end()
    return span


def call() -> Span:
    return TRACER.start_span("chat", kind=SpanKind.CLIENT)


def instrumentor_s() -> Span:
    pytest.importorskip("openinference.instrumentation.langchain")
    return PROVIDER.get_tracer("openinference.instrumentation.langchain").start_span("run before")


@pytest.mark.parametrize("left", [ended, call, instrumentor_s])
@pytest.mark.parametrize("run", [invoke, ainvoke, stream])
def test_a_span_that_was_opened_for_something_else_is_never_taken(
    left: Any, run: Any, receiver: Receiver, caplog: pytest.LogCaptureFixture
) -> None:
    otel_context.attach(set_span_in_context(left()))
    handler = CallbackHandler(receiver)
    with caplog.at_level(logging.WARNING):
        for _ in range(2):
            run(lcel(), {"callbacks": [handler]})
    assert [placed(receiver, at) for at in (0, 1)] == [(None, None)] * 2
    assert handler.stats()["span_of_another_run"] == 2
    (line,) = [
        record.getMessage() for record in caplog.records if "opened for something else" in record.message
    ]
    assert "span of your own" in line and QUESTION not in line


@pytest.mark.parametrize("known", [True, False])
def test_what_a_tracer_leaves_current_of_a_turn_is_not_the_next_one_s(
    known: bool, receiver: Receiver
) -> None:
    """Every tenant's task begins in the context that an earlier turn has left its span in."""

    class Leaving(Tracing):
        def _start(self, run_id: UUID, parent_run_id: UUID | None) -> None:
            super()._start(run_id, parent_run_id)
            child = self.tracer.start_span("part", context=set_span_in_context(self._by_run[run_id]))
            otel_context.attach(set_span_in_context(child))

    theirs = Leaving()
    handler = CallbackHandler(receiver)
    invoke(lcel(), {"callbacks": [handler, theirs]})
    assert placed(receiver) == place(theirs.roots[0])
    for _ in range(5):
        copy_context().run(invoke, lcel(), {"callbacks": [handler, theirs] if known else [handler]})
        assert placed(receiver) == (place(theirs.roots[-1]) if known else (None, None))
