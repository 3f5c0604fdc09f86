"""The span processor and a framework's recorder on the same turns."""

from __future__ import annotations

import pytest
from openinference.instrumentation.langchain import LangChainInstrumentor
from opentelemetry.sdk.trace import TracerProvider
from otel_apps import chain
from otel_parts import QUESTION

from steelyard import Monitor
from steelyard_langchain import CallbackHandler
from steelyard_opentelemetry import EvaluationSpanProcessor


def test_turns_that_two_recorders_tell_are_said_once(caplog: pytest.LogCaptureFixture) -> None:
    monitor, provider = Monitor(metrics=[], sinks=[]), TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(EvaluationSpanProcessor(monitor))
    instrumentor = LangChainInstrumentor()
    instrumentor.instrument(tracer_provider=provider, skip_dep_check=True)
    handler = CallbackHandler(monitor)
    try:
        for _ in range(2):
            chain(lambda _: "Paris.").invoke(QUESTION, {"callbacks": [handler]})
    finally:
        instrumentor.uninstrument()
    provider.shutdown()
    assert monitor.close(10) == 0
    assert monitor.stats().evaluated == 4
    assert caplog.text.count("the recorder for langchain") == 1


def test_the_same_turn_again_by_the_same_recorder_is_nothing_odd(caplog: pytest.LogCaptureFixture) -> None:
    monitor = Monitor(metrics=[], sinks=[])
    handler = CallbackHandler(monitor)
    for _ in range(2):
        chain(lambda _: "Paris.").invoke(QUESTION, {"callbacks": [handler]})
    assert monitor.close(10) == 0
    assert monitor.stats().evaluated == 2
    assert not caplog.text
