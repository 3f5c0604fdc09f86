"""Content that comes as log records, beside spans without any."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from opentelemetry._logs import LogRecord
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF
from opentelemetry.trace import get_current_span, set_span_in_context, use_span
from otel_parts import ANSWER, QUESTION, TEXTS, Receiver, messages

from steelyard.errors import ConfigurationError
from steelyard.recording import unrecorded
from steelyard_opentelemetry import ContentLogRecordProcessor, EvaluationSpanProcessor, _hook

PROMPT = "Answer from the context.\n\nContext:\n" + "\n\n".join(TEXTS) + f"\n\nQuestion: {QUESTION}"
DETAILS = "gen_ai.client.inference.operation.details"


class Application:
    """Calls a model with spans that have no content, and log records that have it."""

    def __init__(self, *, max_events: int = 10_000) -> None:
        self.receiver = Receiver()
        self.processor = EvaluationSpanProcessor(self.receiver, quiet=60)
        self.provider = TracerProvider(shutdown_on_exit=False)
        self.provider.add_span_processor(self.processor)
        self.logs = LoggerProvider(shutdown_on_exit=False)
        self.logs.add_log_record_processor(ContentLogRecordProcessor(max_events=max_events))

    def call(self, events: list[LogRecord]) -> None:
        tracer = self.provider.get_tracer("client")
        with tracer.start_as_current_span("chat", attributes={"gen_ai.operation.name": "chat"}):
            self.emit(events)

    def emit(self, events: list[LogRecord]) -> None:
        context = set_span_in_context(get_current_span())
        for event in events:
            event.context = context
            identity = get_current_span().get_span_context()
            event.trace_id, event.span_id = identity.trace_id, identity.span_id
            self.logs.get_logger("client").emit(event)

    def close(self) -> list[str]:
        self.provider.shutdown()
        return [diagnosis.cause for diagnosis in self.processor.diagnoses]


@pytest.fixture
def application() -> Iterator[Application]:
    made = Application()
    yield made
    made.close()


def one_event() -> list[LogRecord]:
    told = {
        "gen_ai.input.messages": messages(("user", PROMPT)),
        "gen_ai.output.messages": messages(("assistant", ANSWER)),
    }
    return [LogRecord(event_name=DETAILS, attributes=told)]


def one_for_each_message(prompt: str = PROMPT, answer: str = ANSWER) -> list[LogRecord]:
    choice: Any = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": answer}}
    return [
        LogRecord(event_name="gen_ai.system.message", body={"content": "Be brief."}),
        LogRecord(attributes={"event.name": "gen_ai.user.message"}, body={"content": prompt}),
        LogRecord(event_name="gen_ai.choice", body=choice),
    ]


@pytest.mark.parametrize("events", [one_event, one_for_each_message])
def test_content_in_log_records_is_read_with_its_span(
    application: Application, events: Callable[[], list[LogRecord]]
) -> None:
    application.call(events())
    application.close()
    (record,) = application.receiver.records
    assert (record.question, record.answer) == (QUESTION, ANSWER)
    assert all(text in record.contexts[0].text for text in TEXTS)


def test_content_that_comes_through_logging_is_json_in_a_text(application: Application) -> None:
    events = one_for_each_message()
    for event in events:
        event.body = json.dumps(event.body)
    application.call(events)
    application.close()
    assert [record.answer for record in application.receiver.records] == [ANSWER]


def test_two_calls_at_once_keep_their_own_content(application: Application) -> None:
    tracer = application.provider.get_tracer("client")
    calls = [tracer.start_span("chat", attributes={"gen_ai.operation.name": "chat"}) for _ in range(2)]
    said = [one_for_each_message(), one_for_each_message(PROMPT.replace(QUESTION, "And Berlin?"), "Germany.")]
    for parts in zip(*said, strict=True):
        for call, part in zip(calls, parts, strict=True):
            with use_span(call):
                application.emit([part])
    for call in calls:
        call.end()
    application.close()
    told = {(record.question, record.answer) for record in application.receiver.records}
    assert told == {(QUESTION, ANSWER), ("And Berlin?", "Germany.")}


def test_other_log_records_and_those_of_a_judge_are_not_kept(application: Application) -> None:
    with unrecorded():
        application.call(one_event())
    application.call([LogRecord(event_name="app.order", body={"content": PROMPT}), LogRecord(body=PROMPT)])
    assert application.close() == ["content_off"]
    assert application.receiver.records == []


def test_events_beyond_the_bound_go_oldest_first() -> None:
    application = Application(max_events=2)
    tracer = application.provider.get_tracer("client")
    calls = [tracer.start_span(f"chat {n}", attributes={"gen_ai.operation.name": "chat"}) for n in range(3)]
    for n, call in enumerate(calls):
        with use_span(call):
            (event,) = one_event()
            event.attributes = {
                **(event.attributes or {}),
                "gen_ai.output.messages": messages(("assistant", f"{n}")),
            }
            application.emit([event])
    for call in calls:
        call.end()
    assert application.close() == ["content_off"]
    assert [record.answer for record in application.receiver.records] == ["1", "2"]


def test_a_bound_must_be_positive() -> None:
    with pytest.raises(ConfigurationError, match="max_events"):
        ContentLogRecordProcessor(max_events=0)


def test_content_of_spans_that_are_not_sampled_is_not_held() -> None:
    application = Application()
    application.provider = TracerProvider(sampler=ALWAYS_OFF, shutdown_on_exit=False)
    before = len(_hook._held)
    application.call(one_for_each_message())
    assert len(_hook._held) == before
    application.close()
