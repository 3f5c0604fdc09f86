"""Recording under auto-instrumentation: nothing unless asked for, and then without a line of code."""

from __future__ import annotations

import logging
import subprocess
import sys
from importlib.metadata import entry_points

import pytest
from opentelemetry._logs import LogRecord
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk.trace import TracerProvider
from otel_parts import ANSWER, QUESTION, TEXTS, Receiver, is_right, messages, prompt

from steelyard.recording import KNOWN_WORDS, SWITCH, BaseInstrumentor, is_switched_on
from steelyard_opentelemetry._instrumentor import WORDS, SteelyardInstrumentor


def ask(provider: TracerProvider) -> None:
    marks = {"steelyard.question": QUESTION, "steelyard.contexts": TEXTS, "steelyard.answer": ANSWER}
    provider.get_tracer("app").start_span("ask", attributes=marks).end()


def test_the_entry_point_is_there() -> None:
    (found,) = entry_points(group="opentelemetry_instrumentor", name="steelyard")
    assert found.load() is SteelyardInstrumentor


def test_nothing_happens_unless_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("STEELYARD_INSTRUMENT", raising=False)
    receiver, provider = Receiver(), TracerProvider(shutdown_on_exit=False)
    instrumentor = SteelyardInstrumentor()
    instrumentor.instrument(tracer_provider=provider, monitor=receiver, skip_dep_check=True)
    ask(provider)
    provider.force_flush()
    instrumentor.uninstrument()
    assert receiver.records == []


def test_the_switch_adds_the_processor_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STEELYARD_INSTRUMENT", "langchain, opentelemetry")
    receiver, provider = Receiver(), TracerProvider(shutdown_on_exit=False)
    instrumentor = SteelyardInstrumentor()
    for _ in range(2):
        instrumentor.instrument(tracer_provider=provider, monitor=receiver)
    ask(provider)
    instrumentor.uninstrument()
    assert [is_right(record) for record in receiver.records] == [True]


def test_the_switch_reads_content_in_log_records_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STEELYARD_INSTRUMENT", "opentelemetry")
    receiver, provider = Receiver(), TracerProvider(shutdown_on_exit=False)
    logs = LoggerProvider(shutdown_on_exit=False)
    instrumentor = SteelyardInstrumentor()
    instrumentor.instrument(tracer_provider=provider, logger_provider=logs, monitor=receiver)
    told = {
        "gen_ai.input.messages": messages(("user", prompt())),
        "gen_ai.output.messages": messages(("assistant", ANSWER)),
    }
    event = LogRecord(event_name="gen_ai.client.inference.operation.details", attributes=told)
    with provider.get_tracer("app").start_as_current_span("chat") as span:
        span.set_attribute("gen_ai.operation.name", "chat")
        event.trace_id, event.span_id = span.get_span_context().trace_id, span.get_span_context().span_id
        logs.get_logger("app").emit(event)
    instrumentor.uninstrument()
    assert [is_right(record) for record in receiver.records] == [True]


@pytest.mark.parametrize(
    ("value", "on"),
    [("", False), ("0", False), ("langchain", False), ("ALL", True), ("1", True), ("opentelemetry", True)],
)
def test_what_the_switch_may_say(value: str, on: bool) -> None:
    assert is_switched_on(WORDS, {"STEELYARD_INSTRUMENT": value}) is on


def test_without_an_sdk_it_says_so_and_goes_on(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("STEELYARD_INSTRUMENT", "all")
    SteelyardInstrumentor().instrument(tracer_provider=object(), monitor=Receiver())
    assert "no OpenTelemetry SDK" in caplog.text


SCRIPT = """
import sys
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.instrumentation.auto_instrumentation._load import _load_instrumentors
from opentelemetry.instrumentation.distro import DefaultDistro
trace.set_tracer_provider(TracerProvider())
_load_instrumentors(DefaultDistro())
frameworks = {"langchain_core", "llama_index", "openai"} & set(sys.modules)
from steelyard.online import default_monitor
seen = []
with trace.get_tracer("app").start_as_current_span("ask") as span:
    marks = {"question": "Where?", "contexts": ["Here."], "answer": "Here."}
    span.set_attributes({f"steelyard.{name}": value for name, value in marks.items()})
trace.get_tracer_provider().force_flush()
print(sorted(frameworks), default_monitor().stats().seen)
default_monitor().close(0)
"""


@pytest.mark.parametrize(("value", "seen"), [("opentelemetry", 1), ("", 0)])
def test_under_the_loader_of_opentelemetry_instrument(value: str, seen: int, tmp_path: object) -> None:
    """The loader itself, with every other instrumentor left out."""
    others = ",".join(
        e.name for e in entry_points(group="opentelemetry_instrumentor") if e.name != "steelyard"
    )
    env = {
        "STEELYARD_INSTRUMENT": value,
        "OTEL_PYTHON_DISABLED_INSTRUMENTATIONS": others,
        "PATH": "/usr/bin:/bin",
    }
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", SCRIPT],
        env=env,
        cwd=str(tmp_path),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split("\n")[0] == f"[] {seen}", done.stderr


def test_reading_files_needs_no_sdk() -> None:
    """Nor any framework: the commands work where nothing but Steelyard is installed."""
    script = (
        "import sys; sys.modules['opentelemetry'] = None\n"
        "import steelyard_opentelemetry as it\n"
        "assert it.read_spans(it.read_otlp([]).spans).records == []\n"
        "from steelyard.errors import MissingDependency\n"
        "try:\n    it.EvaluationSpanProcessor\nexcept MissingDependency as error:\n    print(error)\n"
        "assert not {'openai', 'langchain_core', 'llama_index'} & set(sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "steelyard[opentelemetry]" in done.stdout


@pytest.mark.parametrize(
    ("value", "is_on"),
    [("langchain", True), (" 1 , LangChain", True), ("1", False), ("0", False), ("", False)],
)
def test_a_word_asks_for_its_recorder(value: str, is_on: bool, caplog: pytest.LogCaptureFixture) -> None:
    assert is_switched_on({"langchain"}, {SWITCH: value}) is is_on
    assert caplog.messages == []


def test_a_word_that_means_nothing_is_reported_once(caplog: pytest.LogCaptureFixture) -> None:
    for _ in range(3):
        assert not is_switched_on({"langchain"}, {SWITCH: "langchian"})
    (line,) = [entry for entry in caplog.records if "langchian" in entry.getMessage()]
    assert line.levelno == logging.ERROR
    assert all(word in line.getMessage() for word in (SWITCH, "1", "opentelemetry", "langchain"))


def test_a_list_may_hold_a_word_that_means_nothing(caplog: pytest.LogCaptureFixture) -> None:
    assert is_switched_on({"langchain"}, {SWITCH: "langchain,everythink"})
    assert ["'everythink'" in line for line in caplog.messages] == [True]


def test_every_instrumentor_is_asked_for_by_known_words() -> None:
    made = [
        each.load()
        for each in entry_points(group="opentelemetry_instrumentor")
        if each.name.startswith("steelyard")
    ]
    assert len(made) >= 2
    for instrumentor in made:
        assert issubclass(instrumentor, BaseInstrumentor)
        assert set(instrumentor.words) <= KNOWN_WORDS
