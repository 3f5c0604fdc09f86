"""The recorder with a real Monitor: on the trace, in the ledger, under auto-instrumentation."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from importlib.metadata import entry_points
from typing import Any

import pytest
from langchain_core.language_models.fake_chat_models import FakeListChatModel
from langchain_parts import QUESTION, Broken, Receiver, lcel, says
from opentelemetry.sdk.trace import TracerProvider

import programs
from steelyard.online import Monitor
from steelyard.testing import MemorySink
from steelyard_langchain import CallbackHandler


def test_the_span_that_was_current_is_the_turns(receiver: Receiver, config: Any) -> None:
    tracer = TracerProvider().get_tracer("test")
    with tracer.start_as_current_span("request") as span:
        lcel().invoke(QUESTION, config)
        list(lcel().stream(QUESTION, config))
        asyncio.run(lcel().ainvoke(QUESTION, config))
    here = span.get_span_context()
    for record in receiver.records:
        assert record.trace is not None
        assert record.trace.trace_id == f"{here.trace_id:032x}"
        assert record.trace.span_id == f"{here.span_id:016x}"
        assert record.trace.sampled
    assert len(receiver.records) == 3


def test_a_turn_is_scored_and_every_other_accounted_for() -> None:
    sink = MemorySink()
    monitor = Monitor(sinks=[sink])
    config: Any = {"callbacks": [CallbackHandler(monitor)]}
    lcel(says("Paris is the capital of France.")).invoke(QUESTION, config)
    with pytest.raises(ConnectionError):
        lcel(retriever=Broken()).invoke(QUESTION, config)
    with pytest.raises(ValueError, match="overloaded"):
        lcel(says(ValueError("overloaded"))).invoke(QUESTION, config)
    assert monitor.flush(60) == 0
    monitor.close()
    stats = monitor.stats()
    assert (stats.seen, stats.evaluated, dict(stats.skipped)) == (3, 1, {"status_error": 2})
    (evaluation,) = sink.evaluations
    scores = {score.metric: score.value for score in evaluation.scores}
    assert scores["faithfulness"] == 1.0


def test_a_handler_of_its_own_accord_uses_the_default_monitor(tmp_path: Any) -> None:
    script = (
        "from steelyard.online import default_monitor\n"
        "from steelyard_langchain import CallbackHandler\n"
        "assert CallbackHandler().monitor is default_monitor()\n"
        "assert CallbackHandler().monitor is default_monitor()\n"
    )
    done = programs.run(["-c", script], source="import langchain_core.runnables", ours=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr


def test_importing_the_package_does_not_import_the_framework() -> None:
    script = "import sys, steelyard_langchain; sys.exit('langchain_core' in sys.modules)"
    subprocess.run([sys.executable, "-c", script], check=True)


def test_without_the_framework_the_extra_is_named() -> None:
    script = (
        "import sys; sys.modules['langchain_core'] = None\n"
        "from steelyard.errors import MissingDependency\n"
        "try:\n    from steelyard_langchain import CallbackHandler\n"
        'except MissingDependency as error:\n    sys.exit("steelyard[langchain]" not in str(error))\n'
    )
    subprocess.run([sys.executable, "-c", script], check=True)


@pytest.mark.parametrize(("switch", "recorded"), [("", 0), ("all", 0), ("langchain", 1), ("x, LangChain", 1)])
def test_auto_instrumentation_only_when_asked(
    monkeypatch: pytest.MonkeyPatch, receiver: Receiver, switch: str, recorded: int
) -> None:
    monkeypatch.setenv("STEELYARD_INSTRUMENT", switch)
    (point,) = entry_points(group="opentelemetry_instrumentor", name="steelyard_langchain")
    instrumentor = point.load()()
    instrumentor.instrument(monitor=receiver, tracer_provider=None)
    lcel().invoke(QUESTION)
    instrumentor.uninstrument()
    lcel().invoke(QUESTION)
    assert len(receiver.records) == recorded


def test_recorders_are_found_by_entry_point(receiver: Receiver) -> None:
    (point,) = entry_points(group="steelyard.recorders", name="langchain")
    recorder = point.load()
    recorder.attach(receiver)
    lcel().invoke(QUESTION)
    recorder.detach()
    lcel().invoke(QUESTION)
    assert receiver.record.question == QUESTION


def test_a_forked_child_records_too(tmp_path: Any) -> None:
    if not hasattr(os, "fork"):
        pytest.skip("no fork here")
    script = """
import os, sys
from langchain_core.language_models.fake_chat_models import FakeListChatModel
from langchain_core.prompts import ChatPromptTemplate
from steelyard import Monitor
from steelyard_langchain import attach

chain = ChatPromptTemplate.from_template("{question}") | FakeListChatModel(responses=["Yes."])
monitor = Monitor(metrics=[], sinks=[])
attach(monitor)
chain.invoke({"question": "parent?"})
assert monitor.flush(60) == 0
child = os.fork()
if child == 0:
    chain.invoke({"question": "child?"})
    os._exit(0 if monitor.flush(60) == 0 and monitor.stats().evaluated == 1 else 1)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    done = programs.run(["-c", script], source=script, ours=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr


def test_two_models_at_once_in_one_turn(receiver: Receiver, config: Any) -> None:
    from langchain_core.runnables import RunnableParallel

    both = RunnableParallel(a=FakeListChatModel(responses=["One."]), b=FakeListChatModel(responses=["Two."]))
    (both | (lambda found: f"{found['a'].content} {found['b'].content}")).invoke(QUESTION, config)
    assert (receiver.record.answer, receiver.record.status) == ("One. Two.", "ok")
