"""Keys and texts are planted everywhere they may stand, and looked for everywhere they may not."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import InMemoryLogRecordExporter, SimpleLogRecordProcessor
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

import programs
from judge_server import Fault, JudgeServer, Received, filled
from online.helpers import FAITHFUL, traced
from reprs import reprs_that_show
from sinks.vendor_server import Answer, VendorServer
from sinks.vendor_server import Request as Sent
from steelyard.engine import evaluate
from steelyard.errors import ConfigurationError
from steelyard.judge import ChatJudge
from steelyard.online import Monitor, SpoolSettings
from steelyard.record import Context, Record, Stage
from steelyard.report import report
from steelyard.sinks import (
    DatadogSink,
    JSONLSink,
    LangfuseSink,
    LangSmithSink,
    MLflowSink,
    OpenTelemetrySink,
    PhoenixSink,
    SQLiteSink,
)

pytestmark = pytest.mark.faults
KEY = "sk-planted0key1never2shown"
PASSWORD = "planted-password-77"
TEXTS = {
    "question": "zanzibarquestion",
    "answer": "quixoticanswer",
    "context": "labyrinthcontext",
    "reference": "harlequinreference",
    "standalone": "nocturnestandalone",
    "retrieved": "cinnamonretrieved",
    "expected": "marigoldexpected",
    "query": "saffronquery",
    "stage": "periwinklestage",
    "error": "vermilionerror",
    "metadata": "obsidianmetadata",
    "tag": "tangerinetag",
    "judge": "velvetjudge",
    "server": "gossamerserver",
}


class World:
    """A Monitor with every kind of sink, a judge and vendors that echo whatever they are sent."""

    def __init__(self, folder: Path, *, store_content: bool) -> None:
        self.folder = folder
        self.judge = JudgeServer(self._reply).__enter__()
        self.vendors = VendorServer(self._echo).__enter__()
        self.spans = InMemorySpanExporter()
        self.events = InMemoryLogRecordExporter()  # type: ignore[no-untyped-call]
        self.metrics = InMemoryMetricReader()
        tracing, logs = TracerProvider(), LoggerProvider()
        tracing.add_span_processor(SimpleSpanProcessor(self.spans))
        logs.add_log_record_processor(SimpleLogRecordProcessor(self.events))
        url = self.vendors.url.replace("//", f"//user:{PASSWORD}@")
        self.sinks: list[Any] = [
            SQLiteSink(folder / "results.db"),
            JSONLSink(folder / "results.jsonl"),
            OpenTelemetrySink(
                tracer_provider=tracing,
                logger_provider=logs,
                meter_provider=MeterProvider(metric_readers=[self.metrics]),
            ),
            PhoenixSink(url, api_key=KEY),
            LangfuseSink(url, public_key="pk", secret_key=KEY),
            MLflowSink(url, token=KEY, patience=0.1),
            LangSmithSink(url, api_key=KEY, patience=0.1),
            DatadogSink("app", api_key=KEY, url=url),
        ]
        self.monitor = Monitor(
            metrics=FAITHFUL,
            judge=ChatJudge(
                "stub", base_url=self.judge.url.replace("//", f"//user:{PASSWORD}@"), api_key=KEY
            ),
            sinks=self.sinks,
            store_content=store_content,
            spool=SpoolSettings(path=folder / "spool.db"),
        )

    def _reply(self, received: Received) -> Any:
        assert received.schema is not None
        return _with_words(filled(received.schema))

    def _echo(self, sent: Sent) -> Answer:
        words = {"you sent": sent.headers, "and": sent.body, "we say": TEXTS["server"], "key": KEY}
        return (200 if len(self.vendors.requests) % 3 else 418), words

    def close(self) -> None:
        self.monitor.close(0)
        self.judge.__exit__(None, None, None)
        self.vendors.__exit__(None, None, None)

    def run(self) -> None:
        echo = f"your key {KEY} and your text {TEXTS['answer']} and {TEXTS['server']}"
        self.judge.faults.extend([Fault(status=400, message=echo), Fault(status=500, message=echo)])
        self.judge_all()

    def judge_all(self) -> None:
        for number in range(6):
            self.monitor.submit(self.record(number))
        assert self.monitor.flush(50) == 0

    def record(self, number: int) -> Record:
        return traced(
            number,
            question=f"What of {TEXTS['question']}?",
            answer=f"It is {TEXTS['answer']}.",
            standalone_question=f"What of {TEXTS['standalone']}?",
            contexts=(Context(text=f"There is {TEXTS['context']} here.", id="d1", query=TEXTS["query"]),),
            retrieved=(Context(text=TEXTS["retrieved"], query=TEXTS["query"]),),
            stages=(Stage(name="search", query=TEXTS["query"], contexts=(Context(text=TEXTS["stage"]),)),),
            reference=TEXTS["reference"],
            reference_contexts=(Context(text=TEXTS["expected"]),),
            error=TEXTS["error"],
            metadata={"note": TEXTS["metadata"]},
            tags=(TEXTS["tag"],),
        )

    def outputs(self) -> Iterator[tuple[str, str]]:
        """All that has left the process or stays on the disk, but the judge's own requests."""
        for file in self.folder.iterdir():
            if file.is_file():
                yield file.name, file.read_bytes().decode("utf-8", "replace")
        for request in self.vendors.requests:
            yield f"a request to {request.path}", str(request.body)
        yield "spans", "".join(span.to_json() for span in self.spans.get_finished_spans())
        for log in self.events.get_finished_logs():
            yield "an event", f"{log.log_record.body!r} {log.log_record.attributes}"
        yield "metrics", str(self.metrics.get_metrics_data())
        page = self.folder / "page.html"
        report(self.folder / "results.db").write_html(page)
        yield "HTML", page.read_text()
        for command in ("report --db results.db", "config", "doctor --live"):
            done = programs.run([*programs.STEELYARD, *command.split()], ours=True, cwd=self.folder)
            assert done.returncode == 0, done.stderr
            yield f"steelyard {command}", done.stdout + done.stderr


def _with_words(reply: Any) -> Any:
    match reply:
        case dict():
            return {key: _with_words(value) for key, value in reply.items()}
        case str():
            return f"{TEXTS['judge']} {KEY}"
    return reply


@pytest.fixture(params=[False, True], ids=["content left out", "content stored"])
def world(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[World, bool]]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("STEELYARD_BASE_URL", f"http://user:{PASSWORD}@127.0.0.1:9/v1?api_key={KEY}")
    made = World(tmp_path, store_content=request.param)
    yield made, request.param
    made.close()


def test_no_object_shows_what_it_holds_while_turns_are_judged(tmp_path: Path) -> None:
    words = list(TEXTS.values())
    with reprs_that_show(words) as found:
        made = World(tmp_path, store_content=True)
        made.judge_all()
        [evaluation] = evaluate([made.record(0)])
        made.close()
    assert not found
    # For people there is another form.
    assert TEXTS["answer"] in str(evaluation) and TEXTS["context"] in str(evaluation.record)


def test_what_is_planted_is_found_only_where_it_belongs(
    world: tuple[World, bool], caplog: pytest.LogCaptureFixture
) -> None:
    made, stored = world
    with caplog.at_level(logging.DEBUG):
        made.run()
    monitor = made.monitor
    said = "".join(
        logging.Formatter().format(one) for one in caplog.records if one.name.startswith("steelyard")
    )
    shown = [said, repr(monitor), repr(monitor.options.judge), repr(monitor.stats()), *map(repr, made.sinks)]
    monitor.close(0)
    for text in shown:
        for planted in (KEY, PASSWORD, *TEXTS.values()):
            assert planted not in text
    outputs = list(made.outputs())
    found = {name for name, text in outputs for planted in TEXTS.values() if planted in text}
    for name, text in outputs:
        assert PASSWORD not in text, name
        if not stored:
            # Where content is left out, not even a judge's words that quote the key get through.
            for planted in (KEY, *TEXTS.values()):
                assert planted not in text, name
        assert TEXTS["server"] not in text, name
    # What was planted did go in, and the test can see it: stored content is found where it is stored.
    assert ("results.jsonl" in found) == ("results.db" in found) == stored
    assert len(made.vendors.requests) > 10 and made.judge.received


@pytest.mark.parametrize(
    "make",
    [
        lambda: ChatJudge("m", base_url=f"ftp://user:{PASSWORD}@host/?api_key={KEY}", api_key=KEY),
        lambda: PhoenixSink(f"http://user:{PASSWORD}@host/?api_key={KEY}", api_key=KEY),
        lambda: LangSmithSink("http://host", api_key=f"{KEY}\n"),
        lambda: Monitor(metrics=[], sinks=[], judge=f"openai:{KEY}:x:{PASSWORD}/"),
    ],
)
def test_no_refusal_quotes_a_key(make: Any) -> None:
    try:
        made = make()
    except ConfigurationError as error:
        assert KEY not in str(error).replace(f"openai:{KEY}", "") and PASSWORD not in str(error)
    else:
        assert PASSWORD not in repr(made)
