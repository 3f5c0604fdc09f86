from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.trace import ReadableSpan, Span, SpanLimits, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import (
    BatchSpanProcessor,
    SimpleSpanProcessor,
    SpanExporter,
    SpanExportResult,
)
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from steelyard import Monitor
from steelyard.errors import ConfigurationError
from steelyard.record import Record, TraceRef
from steelyard.scores import Evaluation, Provenance, Score
from steelyard.testing import MemorySink
from steelyard_opentelemetry import EvaluationSpanProcessor, HoldingSpanProcessor


class Rig:
    """A real tracer provider whose exporter's processor is wrapped."""

    def __init__(self, *, limits: SpanLimits | None = None, **options: Any) -> None:
        self.exported = InMemorySpanExporter()
        self.holding = HoldingSpanProcessor(SimpleSpanProcessor(self.exported), **options)
        self.provider = TracerProvider(span_limits=limits)
        self.provider.add_span_processor(self.holding)
        self.tracer = self.provider.get_tracer("app")

    def turn(self, **attributes: Any) -> TraceRef:
        """A RAG turn: a root and a retriever below it."""
        kind = {"openinference.span.kind": "RETRIEVER"}
        with (
            self.tracer.start_as_current_span("rag", attributes=attributes) as root,
            self.tracer.start_as_current_span("docs", attributes=kind),
        ):
            pass
        return ref_of(root)

    @property
    def names(self) -> list[str]:
        return [span.name for span in self.exported.get_finished_spans()]

    def root(self) -> ReadableSpan:
        (found,) = (span for span in self.exported.get_finished_spans() if span.name == "rag")
        return found


@pytest.fixture
def rig() -> Iterator[Rig]:
    made = Rig()
    yield made
    made.provider.shutdown()


def ref_of(span: Any) -> TraceRef:
    context = span.get_span_context()
    return TraceRef(trace_id=f"{context.trace_id:032x}", span_id=f"{context.span_id:016x}")


def scores(ref: TraceRef | None, *values: float) -> Evaluation:
    made = tuple(
        Score(
            metric=f"metric_{index}",
            status="scored",
            value=value,
            label="pass",
            explanation="fine",
            provenance=Provenance(judge="chat:m"),
            id=f"id{index}",
        )
        for index, value in enumerate(values or (0.5,))
    )
    return Evaluation(record_id="r", scores=made, trace=ref)


def test_children_go_at_once_and_the_root_with_its_scores(rig: Rig) -> None:
    ref = rig.turn(mine=1)
    assert rig.names == ["docs"]
    assert rig.holding.attach(scores(ref, 0.5, 0.25))
    assert rig.names == ["docs", "rag"]
    assert dict(rig.root().attributes or {}) == {
        "mine": 1,
        "evaluations.0.evaluation.name": "metric_0",
        "evaluations.0.evaluation.score": 0.5,
        "evaluations.0.evaluation.label": "pass",
        "evaluations.0.evaluation.explanation": "fine",
        "evaluations.0.evaluation.annotator_kind": "LLM",
        "evaluations.0.evaluation.identifier": "id0",
        "evaluations.0.evaluation.metadata": (
            '{"steelyard.judge.name": "chat:m", "steelyard.judge.calibrated": false, '
            '"steelyard.evaluation.inclusion_probability": 1.0}'
        ),
        "steelyard.metric_0.score": 0.5,
        "evaluations.1.evaluation.name": "metric_1",
        "evaluations.1.evaluation.score": 0.25,
        "evaluations.1.evaluation.label": "pass",
        "evaluations.1.evaluation.explanation": "fine",
        "evaluations.1.evaluation.annotator_kind": "LLM",
        "evaluations.1.evaluation.identifier": "id1",
        "evaluations.1.evaluation.metadata": (
            '{"steelyard.judge.name": "chat:m", "steelyard.judge.calibrated": false, '
            '"steelyard.evaluation.inclusion_probability": 1.0}'
        ),
        "steelyard.metric_1.score": 0.25,
    }
    assert rig.holding.counts.released == {"scored": 1}


def test_evaluations_the_user_put_there_are_kept(rig: Rig) -> None:
    ref = rig.turn(**{"evaluations.4.evaluation.name": "mine"})
    rig.holding.attach(scores(ref))
    attributes = rig.root().attributes or {}
    assert attributes["evaluations.4.evaluation.name"] == "mine"
    assert attributes["evaluations.5.evaluation.name"] == "metric_0"


def test_what_was_dropped_from_the_span_stays_counted() -> None:
    rig = Rig(limits=SpanLimits(max_span_attributes=2, max_events=1, max_links=1))
    with rig.tracer.start_as_current_span("rag", attributes={"a": 1, "b": 2, "retrieval.query": "q"}) as root:
        root.add_event("one")
        root.add_event("two")
    rig.holding.attach(scores(ref_of(root)))
    span = rig.root()
    assert (span.dropped_attributes, span.dropped_events) == (1, 1)
    assert (span.attributes or {})["steelyard.metric_0.score"] == 0.5
    assert span.resource is root.resource  # type: ignore[attr-defined]
    rig.provider.shutdown()


def test_a_trace_without_retrieval_is_not_held(rig: Rig) -> None:
    with rig.tracer.start_as_current_span("GET /health"), rig.tracer.start_as_current_span("select"):
        pass
    assert rig.names == ["select", "GET /health"]
    assert rig.holding.counts.holding == 0


def test_the_user_may_select_the_roots() -> None:
    rig = Rig(select=lambda span: span.name == "answer")
    rig.turn()
    with rig.tracer.start_as_current_span("answer"):
        pass
    assert rig.names == ["docs", "rag"]
    rig.provider.shutdown()
    assert rig.names == ["docs", "rag", "answer"]


def test_a_select_that_raises_loses_nothing() -> None:
    rig = Rig(select=lambda span: 1 / 0 > 1)
    rig.turn()
    assert rig.names == ["docs", "rag"]
    assert rig.holding.counts.errors == 1
    rig.provider.shutdown()


def test_scores_that_come_before_the_end_are_on_the_span(rig: Rig) -> None:
    with rig.tracer.start_as_current_span("rag") as root:
        assert rig.holding.attach(scores(ref_of(root)))
    assert (rig.root().attributes or {})["steelyard.metric_0.score"] == 0.5
    assert rig.holding.counts.holding == 0


def test_a_scored_span_below_the_root_puts_its_scores_on_the_root(rig: Rig) -> None:
    with rig.tracer.start_as_current_span("rag"), rig.tracer.start_as_current_span("retrieve") as inner:
        pass
    assert rig.holding.attach(scores(ref_of(inner)))
    assert (rig.root().attributes or {})["steelyard.metric_0.score"] == 0.5


def test_a_root_leaves_when_its_time_is_up() -> None:
    rig = Rig(max_hold=0.15)
    started = time.monotonic()
    ref = rig.turn()
    assert rig.names == ["docs"]
    while "rag" not in rig.names:
        assert time.monotonic() - started < 5
        time.sleep(0.005)
    assert time.monotonic() - started >= 0.15
    assert not rig.holding.attach(scores(ref))
    assert rig.names == ["docs", "rag"]
    counts = rig.holding.counts
    assert (counts.released, counts.late) == ({"timeout": 1}, 1)
    rig.provider.shutdown()


def test_flush_and_shutdown_release(rig: Rig) -> None:
    rig.turn()
    assert rig.provider.force_flush()
    assert rig.names == ["docs", "rag"]
    rig.turn()
    rig.provider.shutdown()
    assert rig.holding.counts.released == {"flush": 1, "shutdown": 1}
    assert rig.holding.counts.holding == 0


def test_after_shutdown_nothing_is_held(rig: Rig) -> None:
    seen: list[str] = []

    class Sees(SpanProcessor):
        def on_end(self, span: ReadableSpan) -> None:
            seen.append(span.name)

    holding = HoldingSpanProcessor(Sees())
    holding.shutdown()
    provider = TracerProvider()
    provider.add_span_processor(holding)
    with provider.get_tracer("app").start_as_current_span("retrieve"):
        pass
    assert seen == ["retrieve"]
    provider.shutdown()


@pytest.mark.parametrize(
    "ref",
    [None, TraceRef(), TraceRef(trace_id="zz", span_id="zz"), TraceRef(trace_id="1" * 32, span_id="1" * 16)],
)
def test_scores_of_unknown_spans_are_counted(rig: Rig, ref: TraceRef | None) -> None:
    assert not rig.holding.attach(scores(ref))
    assert (rig.holding.counts.late, rig.holding.counts.errors) == (1, 0)


def test_ten_thousand_roots_are_held_and_no_more() -> None:
    rig = Rig(max_held=10_000, max_hold=300)
    refs = []
    for _ in range(10_050):
        with rig.tracer.start_as_current_span("retrieve") as root:
            pass
        refs.append(ref_of(root))
    assert rig.holding.counts.holding == 10_000
    assert rig.holding.counts.released == {"full": 50}
    for ref in refs[50:60]:
        assert rig.holding.attach(scores(ref))
    rig.provider.shutdown()
    spans = rig.exported.get_finished_spans()
    assert len(spans) == 10_050
    assert len({span.context.span_id for span in spans if span.context}) == 10_050


def test_large_roots_are_bounded_by_bytes() -> None:
    rig = Rig(max_bytes=1_000_000)
    for _ in range(40):
        with rig.tracer.start_as_current_span("retrieve", attributes={"input.value": "x" * 100_000}):
            pass
    counts = rig.holding.counts
    assert counts.holding == 9
    assert counts.bytes <= 1_000_000
    assert len(rig.names) == 31
    rig.provider.shutdown()


def test_a_wrapped_processor_that_raises_reaches_nobody() -> None:
    class Raises(SpanProcessor):
        def on_start(self, span: Span, parent_context: Any = None) -> None:
            raise RuntimeError("boom")

        def on_end(self, span: ReadableSpan) -> None:
            raise RuntimeError("boom")

        def shutdown(self) -> None:
            raise RuntimeError("boom")

        def force_flush(self, timeout_millis: int = 30_000) -> bool:
            raise RuntimeError("boom")

    holding = HoldingSpanProcessor(Raises())
    provider = TracerProvider()
    provider.add_span_processor(holding)
    with provider.get_tracer("app").start_as_current_span("x"):
        pass
    assert provider.force_flush() is False
    provider.shutdown()
    assert holding.counts.errors == 4


def test_scores_timeouts_and_flushes_at_once_lose_and_double_nothing() -> None:
    rig = Rig(max_hold=0.02, max_held=50)
    refs: list[TraceRef] = []
    stop = threading.Event()

    def make() -> None:
        refs.extend(rig.turn() for _ in range(150))

    def score() -> None:
        while not stop.is_set():
            for ref in refs[-20:]:
                rig.holding.attach(scores(ref))
            time.sleep(0.001)

    def flush() -> None:
        while not stop.is_set():
            rig.provider.force_flush()
            time.sleep(0.005)

    makers = [threading.Thread(target=make) for _ in range(3)]
    others = [threading.Thread(target=work) for work in (score, flush)]
    for thread in (*makers, *others):
        thread.start()
    for thread in makers:
        thread.join()
    stop.set()
    for thread in others:
        thread.join()
    rig.provider.shutdown()
    ids = Counter(span.context.span_id for span in rig.exported.get_finished_spans() if span.context)
    assert len(ids) == 900
    assert set(ids.values()) == {1}
    assert sum(rig.holding.counts.released.values()) == 450


def test_where_no_thread_can_be_started_roots_go_out_once(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: threading.Thread) -> None:
        raise RuntimeError("can't create new thread at interpreter shutdown")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    rig.turn()
    assert rig.names == ["docs", "rag"]
    rig.provider.force_flush()
    assert rig.names == ["docs", "rag"]


def test_scores_that_cannot_be_written_do_not_cost_the_span(rig: Rig) -> None:
    ref = rig.turn()
    broken = scores(ref).replace(scores=(None,))
    rig.holding.attach(broken)
    assert rig.names == ["docs", "rag"]
    assert rig.holding.counts.errors == 1


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_does_not_export_the_parents_roots(rig: Rig) -> None:
    rig.turn()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            rig.holding.force_flush()
            rig.turn()
            held = rig.holding.counts.holding
            code = 0 if rig.names == ["docs", "docs"] and held == 1 else 2
        finally:
            os._exit(code)
    assert os.waitpid(child, 0)[1] == 0
    assert rig.holding.counts.holding == 1


def test_wrong_limits_are_named() -> None:
    with pytest.raises(ConfigurationError, match="max_hold must be a number above 0, not 0"):
        HoldingSpanProcessor(InMemorySpanExporter(), max_hold=0)


class Endpoint:
    """A real OTLP/HTTP endpoint that decodes protobuf."""

    def __init__(self) -> None:
        received: list[ExportTraceServiceRequest] = []

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                received.append(ExportTraceServiceRequest.FromString(body))
                self.send_response(200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, format: str, *args: Any) -> None: ...

        self.received = received
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.thread = threading.Thread(target=self.server.serve_forever)
        self.thread.start()
        self.url = f"http://127.0.0.1:{self.server.server_port}/v1/traces"

    def spans(self) -> dict[str, Any]:
        return {
            span.name: span
            for request in self.received
            for resource in request.resource_spans
            for scope in resource.scope_spans
            for span in scope.spans
        }

    def close(self) -> None:
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()


def values(span: Any) -> dict[str, Any]:
    return {item.key: getattr(item.value, item.value.WhichOneof("value")) for item in span.attributes}


def test_what_an_otlp_endpoint_receives_is_what_was_recorded_plus_the_scores() -> None:
    endpoint = Endpoint()
    plain = InMemorySpanExporter()
    provider = TracerProvider()
    holding = HoldingSpanProcessor(BatchSpanProcessor(OTLPSpanExporter(endpoint.url)))
    provider.add_span_processor(SimpleSpanProcessor(plain))
    provider.add_span_processor(holding)
    tracer = provider.get_tracer("app", "1.0")
    with tracer.start_as_current_span("rag", attributes={"input.value": "Why?", "n": 3}) as root:
        root.add_event("noted", {"k": "v"})
        with tracer.start_as_current_span("retrieve", attributes={"retrieval.query": "Why?"}):
            pass
    holding.attach(scores(ref_of(root), 0.5))
    provider.force_flush()
    received, recorded = endpoint.spans(), {span.name: span for span in plain.get_finished_spans()}
    provider.shutdown()
    endpoint.close()
    assert set(received) == set(recorded) == {"rag", "retrieve"}
    for name, span in received.items():
        known = recorded[name]
        assert known.context is not None
        assert span.span_id == known.context.span_id.to_bytes(8)
        assert span.trace_id == known.context.trace_id.to_bytes(16)
        assert (span.start_time_unix_nano, span.end_time_unix_nano) == (known.start_time, known.end_time)
        assert [event.name for event in span.events] == [event.name for event in known.events]
    assert values(received["retrieve"]) == {"retrieval.query": "Why?"}
    added = values(received["rag"])
    assert {key: added.pop(key) for key in ("input.value", "n")} == dict(recorded["rag"].attributes or {})
    assert added["steelyard.metric_0.score"] == 0.5
    assert all(key.startswith(("evaluations.0.evaluation.", "steelyard.metric_0.")) for key in added)


def test_with_the_recorder_and_a_monitor() -> None:
    memory = MemorySink()
    monitor = Monitor(sinks=[memory])
    exported = InMemorySpanExporter()
    recorder = EvaluationSpanProcessor(monitor)
    provider = TracerProvider()
    provider.add_span_processor(recorder)
    provider.add_span_processor(HoldingSpanProcessor(SimpleSpanProcessor(exported), monitor=monitor))
    tracer = provider.get_tracer("app")
    root_attributes = {
        "openinference.span.kind": "CHAIN",
        "input.value": "What is the capital of France?",
        "output.value": "Paris is the capital of France.",
    }
    documents = {
        "openinference.span.kind": "RETRIEVER",
        "input.value": "What is the capital of France?",
        "retrieval.documents.0.document.content": "Paris is the capital of France.",
    }
    with tracer.start_as_current_span("rag", attributes=root_attributes):
        with tracer.start_as_current_span("docs", attributes=documents):
            pass
        with tracer.start_as_current_span(
            "llm",
            attributes={"openinference.span.kind": "LLM", "output.value": "Paris is the capital of France."},
        ):
            pass
    recorder.force_flush()
    assert monitor.flush(20) == 0
    deadline = time.monotonic() + 10
    while "rag" not in {span.name for span in exported.get_finished_spans()}:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    (root,) = (span for span in exported.get_finished_spans() if span.name == "rag")
    assert (root.attributes or {})["steelyard.faithfulness.score"] == memory.evaluations[0][
        "faithfulness"
    ].value
    monitor.close()
    provider.shutdown()


AT_EXIT = """
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import ConsoleSpanExporter
from steelyard import Monitor
from steelyard.sinks import SQLiteSink
from steelyard_opentelemetry import EvaluationSpanProcessor, HoldingSpanProcessor

provider = TracerProvider()
monitor = Monitor(sinks=[SQLiteSink("results.db")])
provider.add_span_processor(EvaluationSpanProcessor(monitor))
formatter = lambda span: f"{span.name} {(span.attributes or {}).get('steelyard.faithfulness.score')};"
exporter = ConsoleSpanExporter(formatter=formatter)
provider.add_span_processor(HoldingSpanProcessor(exporter, monitor=monitor))
marks = {"question": "Where?", "contexts": ["It is here."], "answer": "It is here."}
with provider.get_tracer("app").start_as_current_span("rag") as root:
    root.set_attributes({f"steelyard.{name}": value for name, value in marks.items()})
    kind = {"openinference.span.kind": "RETRIEVER"}
    provider.get_tracer("app").start_span("docs", attributes=kind).end()
"""


def test_a_script_that_just_ends_exports_its_root_once_and_scored(tmp_path: Path) -> None:
    command = [sys.executable, "-c", AT_EXIT]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert sorted(done.stdout.strip(";").split(";")) == ["docs None", "rag 1.0"], done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["results.db"]  # closed, with no log beside it


class _EndsInside:
    """Ends a root in the middle of the processor's own bookkeeping, as a finalizer does."""

    def __init__(self, rig: Rig) -> None:
        self._rig = rig
        self.ended = 0

    def __call__(self, span: Any, *, until: float) -> list[ReadableSpan]:
        self._rig.holding._pending.__class__.hold(self._rig.holding._pending, span, until=until)
        if not self.ended:
            self.ended += 1
            self._rig.turn(inner=True)
        return []


@pytest.mark.timeout(20)
def test_a_span_that_ends_inside_the_bookkeeping_goes_out_at_once(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rig.holding._pending, "hold", _EndsInside(rig))
    ref = rig.turn()
    assert rig.names == ["docs", "docs", "rag"]
    assert rig.holding.attach(scores(ref))
    assert rig.names == ["docs", "docs", "rag", "rag"]
    assert rig.holding.counts.holding == 0


class _Names(SpanExporter):
    """Keeps names without a lock: the SDK's exporter in memory would wait for its own, interrupted thread."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        self.names.extend(span.name for span in spans)
        return SpanExportResult.SUCCESS


@pytest.mark.timeout(50, method="thread")  # the other method needs the timer that this test uses
@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs timers that interrupt")
def test_spans_that_end_in_a_signal_handler_never_hang_the_program() -> None:
    exported, rig, ended = _Names(), Rig(), 0
    rig.holding = HoldingSpanProcessor(SimpleSpanProcessor(exported))
    rig.provider = TracerProvider()
    rig.provider.add_span_processor(rig.holding)
    rig.tracer = rig.provider.get_tracer("app")

    def handler(number: int, frame: object) -> None:
        nonlocal ended
        rig.turn()
        ended += 1

    before = signal.signal(signal.SIGALRM, handler)
    try:
        count = 0
        while ended < 200:
            # One signal at a time: handlers that interrupt each other without end would exhaust the stack.
            signal.setitimer(signal.ITIMER_REAL, 0.00005 * (1 + count % 20))
            rig.turn()
            count += 1
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert rig.holding.force_flush(10_000)
    assert Counter(exported.names) == {"docs": count + ended, "rag": count + ended}
    rig.provider.shutdown()


class _Slow(SpanProcessor):
    """Takes its time over a flush, whatever time it is given."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self.done = threading.Event()

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        self.done.wait(self._seconds)
        return True


def test_a_flush_keeps_its_time_and_tells_the_truth() -> None:
    slow = _Slow(10)
    holding = HoldingSpanProcessor(slow)
    started = time.monotonic()
    assert not holding.force_flush(50)
    assert time.monotonic() - started < 5
    slow.done.set()
    assert holding.force_flush(5_000)
    holding.shutdown()


def test_odd_objects_never_raise_where_they_end(rig: Rig) -> None:
    odd: Any = object()
    rig.holding.on_start(odd)
    rig.holding.on_end(odd)
    assert rig.holding.counts.errors >= 2
    recorder = EvaluationSpanProcessor(Monitor(metrics=[], sinks=[]))
    recorder.on_start(odd)
    recorder.on_end(odd)
    recorder.shutdown()


@pytest.mark.parametrize("rate", [0.0, 0.01])
def test_a_root_whose_turn_is_not_judged_leaves_at_once(rate: float) -> None:
    monitor = Monitor(metrics=[], sinks=[], sample_rate=rate)
    rig = Rig(monitor=monitor, max_hold=60.0)
    refs = [rig.turn() for _ in range(20)]
    for number, ref in enumerate(refs):
        monitor.submit(Record(id=f"r{number}", question="q", answer="a", trace=ref))
    assert monitor.flush(10) == 0
    deadline = time.monotonic() + 10
    while rig.holding.counts.holding and time.monotonic() < deadline:
        time.sleep(0.02)
    released = rig.holding.counts.released
    assert released.get("not_judged", 0) + released.get("scored", 0) == 20
    assert released.get("not_judged", 0) >= 15
    rig.provider.shutdown()
    monitor.close(5)
