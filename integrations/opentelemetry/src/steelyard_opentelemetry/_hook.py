"""Content that does not stand on spans, held in this process until they are read; it goes nowhere else.

Instrumentors may send it as log records, for which there is a processor. The official GenAI ones leave it off
unless told otherwise, and pass it all the same to the completion hook of `opentelemetry-util-genai` that
`OTEL_INSTRUMENTATION_GENAI_COMPLETION_HOOK=steelyard` names.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import asdict, is_dataclass
from typing import TYPE_CHECKING, Any

from opentelemetry.sdk._logs import LogRecordProcessor
from opentelemetry.trace import get_current_span

from steelyard.recording import check_positive, is_unrecorded
from steelyard_opentelemetry._otlp import add_content, content_of_log, is_content

if TYPE_CHECKING:
    from opentelemetry.sdk._logs import ReadWriteLogRecord

_MOST = 2000
_held: dict[int, list[Callable[[], Mapping[str, Any]]]] = {}
_order: deque[int] = deque()


def _hold(span_id: int, content: Callable[[], Mapping[str, Any]], *, most: int) -> None:
    """Keep content of a span, as long as it is among the latest that came."""
    _held.setdefault(span_id, []).append(content)
    _order.append(span_id)
    while len(_order) > most:
        # Most of these have been read long ago; the others belong to spans that never came.
        _held.pop(_order.popleft(), None)


def content_of(span_id: int) -> dict[str, Any]:
    """What was kept for a span, as attributes of the span; it is kept no longer."""
    known: dict[str, Any] = {}
    for content in _held.pop(span_id, ()):
        add_content(known, content())
    return known


class SteelyardCompletionHook:
    """What the `opentelemetry_genai_completion_hook` entry point names."""

    def on_completion(
        self,
        *,
        inputs: list[Any],
        outputs: list[Any],
        system_instruction: list[Any],
        tool_definitions: list[Any] | None = None,
        span: Any = None,
        log_record: Any = None,
    ) -> None:
        """Keep references to what a model or an agent was sent and gave back, until its span is read."""
        if span is None or is_unrecorded() or not span.is_recording():
            return
        span_id = span.get_span_context().span_id
        parts = {
            "gen_ai.input.messages": inputs,
            "gen_ai.output.messages": outputs,
            "gen_ai.system_instructions": system_instruction,
        }
        _hold(
            span_id,
            lambda: {name: [_plain(item) for item in items] for name, items in parts.items() if items},
            most=_MOST,
        )


def _plain(item: Any) -> Any:
    return asdict(item) if is_dataclass(item) and not isinstance(item, type) else item


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
            body = record.body
            _hold(record.span_id, lambda: content_of_log(name, attributes, body), most=self._most)

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """Nothing is buffered here."""
        return True

    def shutdown(self) -> None:
        """Nothing is to be done: what waits is taken by the span processor."""
