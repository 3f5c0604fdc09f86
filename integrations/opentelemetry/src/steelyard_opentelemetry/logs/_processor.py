"""The log record processor: it takes references on the application's thread, and that is all it does."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opentelemetry.sdk._logs import LogRecordProcessor
from opentelemetry.trace import get_current_span

from steelyard.recording import check_positive, is_unrecorded
from steelyard_opentelemetry.logs._held import hold
from steelyard_opentelemetry.spans._logs import is_content

if TYPE_CHECKING:
    from opentelemetry.sdk._logs import ReadWriteLogRecord


class ContentLogRecordProcessor(LogRecordProcessor):
    """Lets `EvaluationSpanProcessor` read prompts and answers that are sent as log records.

    Some instrumentors put content into events of the logs signal instead of onto spans:
    `gen_ai.client.inference.operation.details`, or `gen_ai.user.message`, `gen_ai.choice` and their like. Add
    this processor to the `LoggerProvider` they use. What it is given waits in this process for its span, and
    goes nowhere else; other log records are not looked at.

        >>> from opentelemetry.sdk._logs import LoggerProvider
        >>> from steelyard_opentelemetry import ContentLogRecordProcessor
        >>> LoggerProvider().add_log_record_processor(ContentLogRecordProcessor())

    Args:
        max_events: Of how many events, the latest, content is kept for spans that have not ended yet.

    Raises:
        ConfigurationError: If `max_events` is not positive.
    """

    def __init__(self, *, max_events: int = 10_000) -> None:
        check_positive("max_events", max_events)
        self._most = max_events

    def on_emit(self, log_record: ReadWriteLogRecord) -> None:
        """Keep a reference to an event that has content and belongs to a span."""
        record = log_record.log_record
        attributes = record.attributes or {}
        name = record.event_name or attributes.get("event.name")
        if not (isinstance(name, str) and is_content(name) and record.span_id) or is_unrecorded():
            return
        span = get_current_span(record.context)
        is_its_span = span.get_span_context().span_id == record.span_id
        # A span that is not sampled never comes to be read, and its content would be held for nothing.
        if span.is_recording() or not is_its_span:
            hold(record.span_id, (name, attributes, record.body), most=self._most)

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """Nothing is buffered here."""
        return True

    def shutdown(self) -> None:
        """Nothing is to be done: what waits is taken by the span processor."""
