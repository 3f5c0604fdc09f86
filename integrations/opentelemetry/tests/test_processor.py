"""The processor on a real SDK: cheap and harmless on the application's thread, complete on its own."""

from __future__ import annotations

import logging
import multiprocessing
import os
import threading
import time
import tracemalloc
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.sampling import ALWAYS_ON
from otel_parts import ANSWER, QUESTION, TEXTS, Receiver, documents, is_right, oi

import programs
from steelyard.errors import ConfigurationError
from steelyard.online import Monitor, SpoolSettings
from steelyard.record import Record
from steelyard.recording import Draft, unrecorded
from steelyard_opentelemetry import EvaluationSpanProcessor
from waiting import until

QUIET = 0.05


@pytest.fixture
def receiver() -> Receiver:
    return Receiver()


@pytest.fixture
def processor(receiver: Receiver) -> Iterator[EvaluationSpanProcessor]:
    processor = EvaluationSpanProcessor(receiver, quiet=QUIET)
    yield processor
    processor.shutdown()


@pytest.fixture
def provider(processor: EvaluationSpanProcessor) -> TracerProvider:
    provider = TracerProvider(sampler=ALWAYS_ON, shutdown_on_exit=False)
    provider.add_span_processor(processor)
    return provider


def run_turn(provider: TracerProvider, *, question: str = QUESTION, scope: str = "app") -> None:
    tracer = provider.get_tracer(scope)
    with tracer.start_as_current_span("chain", attributes=oi("CHAIN", input__value=question)) as root:
        found = oi("RETRIEVER", input__value=question, **documents())
        with tracer.start_as_current_span("find", attributes=found):
            pass
        root.set_attribute("output.value", ANSWER)


def test_a_turn_arrives_by_itself(provider: TracerProvider, receiver: Receiver) -> None:
    run_turn(provider)
    until(lambda: len(receiver.records) >= 1)
    assert [is_right(record) for record in receiver.records] == [True]


def test_a_turn_keeps_the_identity_of_its_root(provider: TracerProvider, receiver: Receiver) -> None:
    tracer = provider.get_tracer("app")
    with tracer.start_as_current_span("turn") as root:
        root.set_attributes(
            {"steelyard.question": QUESTION, "steelyard.contexts": TEXTS, "steelyard.answer": ANSWER}
        )
    provider.force_flush()
    context = root.get_span_context()
    (record,) = receiver.records
    assert record.trace is not None
    assert (record.trace.trace_id, record.trace.span_id, record.trace.sampled) == (
        f"{context.trace_id:032x}",
        f"{context.span_id:016x}",
        True,
    )


def test_flush_hands_over_at_once(receiver: Receiver) -> None:
    processor = EvaluationSpanProcessor(receiver, quiet=60)
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(processor)
    run_turn(provider)
    assert provider.force_flush()
    assert len(receiver.records) == 1
    run_turn(provider)
    provider.shutdown()
    assert len(receiver.records) == 2
    run_turn(provider)
    assert (len(receiver.records), processor.counts.open_traces) == (2, 0)


def test_shutdown_hands_over_half_a_turn_too(receiver: Receiver) -> None:
    provider = TracerProvider(shutdown_on_exit=False)
    processor = EvaluationSpanProcessor(receiver, quiet=60)
    provider.add_span_processor(processor)
    tracer = provider.get_tracer("openinference.instrumentation.langchain")
    root = tracer.start_span("http")
    run_turn(provider)
    provider.shutdown()
    root.end()
    assert len(receiver.records) == 1


def test_own_spans_and_judges_are_not_recorded(
    provider: TracerProvider, processor: EvaluationSpanProcessor, receiver: Receiver
) -> None:
    run_turn(provider, scope="steelyard")
    # A sampler that ignores the unsampled parent still lets the judge's spans through to processors.
    with unrecorded():
        run_turn(provider)
    provider.force_flush()
    assert receiver.records == []
    assert processor.counts.spans == 0
    assert processor.counts.own == 2


def test_what_a_processor_counts(provider: TracerProvider, processor: EvaluationSpanProcessor) -> None:
    run_turn(provider)
    provider.get_tracer("http").start_span("GET /").end()
    provider.force_flush()
    counts = processor.counts
    assert (counts.spans, counts.records, counts.skipped, counts.open_traces) == (
        3,
        1,
        {"no_llm_spans": 1},
        0,
    )
    assert [diagnosis.span for diagnosis in processor.diagnoses] == ["GET /"]


def test_a_reason_is_logged_once(provider: TracerProvider, caplog: pytest.LogCaptureFixture) -> None:
    bare = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m"}
    with caplog.at_level(logging.WARNING, logger="steelyard"):
        for _ in range(3):
            provider.get_tracer("app").start_span("chat", attributes=bare).end()
        provider.force_flush()
    # What earlier tests left behind may be collected, and logged, at any moment.
    assert len([record for record in caplog.records if record.name.startswith("steelyard")]) == 1
    assert "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT" in caplog.text
    assert QUESTION not in caplog.text


def test_a_monitor_that_raises_harms_nobody(caplog: pytest.LogCaptureFixture) -> None:
    class Broken:
        def submit(self, turn: Record | Draft, /) -> None:
            raise RuntimeError("private words")

    processor = EvaluationSpanProcessor(Broken(), quiet=60)
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(processor)
    run_turn(provider)
    run_turn(provider)
    provider.force_flush()
    assert (processor.counts.errors, processor.counts.records) == (2, 0)
    assert len([record for record in caplog.records if record.name.startswith("steelyard")]) == 1
    assert "RuntimeError" in caplog.text and "private" not in caplog.text
    provider.shutdown()


def test_something_odd_instead_of_a_span_harms_nobody(
    processor: EvaluationSpanProcessor, provider: TracerProvider, receiver: Receiver
) -> None:
    processor._put(object(), False)  # type: ignore[arg-type]
    run_turn(provider)
    provider.force_flush()
    assert (processor.counts.errors, len(receiver.records)) == (1, 1)


def test_a_trace_that_cannot_be_read_costs_no_other(
    provider: TracerProvider,
    processor: EvaluationSpanProcessor,
    receiver: Receiver,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    from steelyard_opentelemetry._build import record_of as real

    def record_of(turn: Any, found: Any) -> Record:
        if turn.question == "odd?":
            raise RuntimeError("private words")
        return real(turn, found)

    monkeypatch.setattr("steelyard_opentelemetry._extractor.record_of", record_of)
    for question in ("odd?", QUESTION, "odd?"):
        run_turn(provider, question=question)
    provider.force_flush()
    assert ([is_right(record) for record in receiver.records], processor.counts.errors) == ([True], 2)
    assert len(caplog.records) == 1
    assert "RuntimeError" in caplog.text and "private" not in caplog.text


def test_evictions_are_counted(receiver: Receiver) -> None:
    processor = EvaluationSpanProcessor(receiver, quiet=60, max_traces=5)
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(processor)
    for _ in range(20):
        run_turn(provider)
    provider.force_flush()
    assert processor.counts.evicted_traces + processor.counts.records == 20
    assert processor.counts.records == 5
    provider.shutdown()


def test_many_threads(provider: TracerProvider, receiver: Receiver) -> None:
    asked = [f"Question number {number}?" for number in range(40)]
    threads = [
        threading.Thread(target=run_turn, args=(provider,), kwargs={"question": text}) for text in asked
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    provider.force_flush()
    until(lambda: len(receiver.records) >= 40)
    assert sorted(record.question for record in receiver.records) == sorted(asked)


@pytest.mark.timeout(240)
def test_memory_stays_flat(provider: TracerProvider, processor: EvaluationSpanProcessor) -> None:
    """The same again ten times over leaves nothing behind; the benchmark does it with 100,000 spans."""
    kept: list[int] = []
    received = Receiver()
    processor._monitor = received
    tracemalloc.start()
    for _ in range(6):
        for number in range(100):
            run_turn(provider, question=f"Question number {number}?")
        provider.force_flush()
        received.records.clear()
        kept.append(tracemalloc.get_traced_memory()[0])
    tracemalloc.stop()
    assert processor.counts.records == 600
    assert kept[-1] < kept[2] + 800_000


def test_spans_beyond_the_bound_are_counted(receiver: Receiver) -> None:
    processor = EvaluationSpanProcessor(receiver, max_spans=10)
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(processor)
    with processor._lock:
        for _ in range(10):
            run_turn(provider)
    processor.force_flush()
    counts = processor.counts
    assert counts.dropped_spans == 30
    provider.shutdown()


def _child(provider: TracerProvider, receiver: Receiver, queue: multiprocessing.Queue[list[str]]) -> None:
    run_turn(provider, question="Asked by the child?")
    provider.force_flush()
    queue.put([record.question for record in receiver.records])


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_child_begins_anew(receiver: Receiver) -> None:
    processor = EvaluationSpanProcessor(receiver, quiet=60)
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(processor)
    run_turn(provider)
    context = multiprocessing.get_context("fork")
    queue: multiprocessing.Queue[list[str]] = context.Queue()
    child = context.Process(target=_child, args=(provider, receiver, queue))
    child.start()
    assert queue.get(timeout=120) == ["Asked by the child?"]
    child.join(60)
    provider.force_flush()
    assert [record.question for record in receiver.records] == [QUESTION]
    provider.shutdown()


def test_a_flush_keeps_its_time_and_tells_the_truth() -> None:
    taken, go_on = threading.Event(), threading.Event()

    class Slow(Receiver):
        def submit(self, turn: Record | Draft, /) -> None:
            taken.set()
            if not self.records:
                go_on.wait(150)
            super().submit(turn)

    processor = EvaluationSpanProcessor(receiver := Slow(), quiet=60)
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(processor)
    for _ in range(3):
        run_turn(provider)
    started = time.monotonic()
    assert not processor.force_flush(50)
    assert time.monotonic() - started < 60
    assert taken.wait(60)
    # The first flush is still at it.
    assert not processor.force_flush(50)
    go_on.set()
    assert processor.force_flush(60_000)
    assert len(receiver.records) == 3
    provider.shutdown()


def test_a_flush_that_could_not_hand_over_a_turn_says_so() -> None:
    class Fails(Receiver):
        def submit(self, turn: Record | Draft, /) -> None:
            raise OSError

    processor = EvaluationSpanProcessor(Fails(), quiet=60)
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(processor)
    run_turn(provider)
    assert not processor.force_flush()
    assert processor.force_flush()
    provider.shutdown()


@pytest.mark.parametrize("limits", [{"quiet": 0}, {"ttl": -1}, {"max_traces": 0}, {"max_spans": 0}])
def test_limits_must_be_positive(limits: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError, match=next(iter(limits))):
        EvaluationSpanProcessor(Receiver(), **limits)


def test_a_monitor_takes_records() -> None:
    with pytest.raises(ConfigurationError, match="submit"):
        EvaluationSpanProcessor(object())  # type: ignore[arg-type]


def test_the_first_span_begins_on_what_a_spool_holds(tmp_path: Path) -> None:
    settings = SpoolSettings(path=tmp_path / "turns.db", evaluate=False)
    earlier = Monitor(metrics=[], sinks=[], spool=settings)
    earlier.submit(Record(question="Why?", answer="So."))
    assert earlier.flush(20) == 0
    earlier.close()
    monitor = Monitor(metrics=[], sinks=[], spool=settings.path)
    judged = threading.Event()
    monitor.on_evaluation(lambda evaluation: judged.set())
    processor = EvaluationSpanProcessor(monitor)
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(processor)
    provider.get_tracer("app").start_span("GET /health").end()
    assert judged.wait(30)
    processor.shutdown()
    monitor.close()


_SCRIPT = """
import sys
from opentelemetry.sdk.trace import TracerProvider
from steelyard import Monitor
from steelyard.sinks import JSONLSink
from steelyard_opentelemetry import EvaluationSpanProcessor
provider = TracerProvider()
provider.add_span_processor(EvaluationSpanProcessor(Monitor(metrics=[], sinks=[JSONLSink(sys.argv[1])])))
turn = {"steelyard.question": "Why?", "steelyard.contexts": ["So."], "steelyard.answer": "So."}
with provider.get_tracer("app").start_as_current_span("turn", attributes=turn):
    pass
"""


def test_a_program_that_ends_right_after_its_only_turn(tmp_path: Path) -> None:
    done = programs.run(["-c", _SCRIPT, tmp_path / "out.jsonl"], ours=True, timeout=150)
    assert (done.returncode, done.stderr) == (0, "")
    assert len((tmp_path / "out.jsonl").read_text().splitlines()) == 1


def test_a_user_sees_every_record_and_may_change_it(caplog: pytest.LogCaptureFixture) -> None:
    receiver, seen = Receiver(), list[str]()

    def change(record: Record) -> Record | None:
        seen.append(record.question)
        if len(seen) == 2:
            raise ValueError("odd")
        return replace(record, tags=("changed",)) if len(seen) == 1 else None

    processor = EvaluationSpanProcessor(receiver, on_record=change)
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(processor)
    tracer = provider.get_tracer("app")
    for number in range(3):
        marks = {"steelyard.question": f"{number}?", "steelyard.contexts": ["p"], "steelyard.answer": "a"}
        tracer.start_span("turn", attributes=marks).end()
    provider.shutdown()
    assert sorted(seen) == ["0?", "1?", "2?"]
    assert [record.tags for record in receiver.records].count(("changed",)) == 1
    assert len(receiver.records) == 3
    with pytest.raises(ConfigurationError, match="on_record"):
        EvaluationSpanProcessor(receiver, on_record="print")  # type: ignore[arg-type]
