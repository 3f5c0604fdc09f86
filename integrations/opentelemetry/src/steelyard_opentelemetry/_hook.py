"""A completion hook for `opentelemetry-util-genai`: content for us, without content in what is exported.

The official GenAI instrumentors leave content off their spans unless told otherwise. With
`OTEL_INSTRUMENTATION_GENAI_COMPLETION_HOOK=steelyard` they pass it to this hook all the same: it stays in
this process, waits for its span to reach the span processor, and goes nowhere else.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import asdict, is_dataclass
from typing import Any

from steelyard.recording import is_unrecorded

_MOST = 2000
_order: deque[int] = deque()
_held: dict[int, tuple[Sequence[Any], Sequence[Any], Sequence[Any]]] = {}


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
        _held[span_id] = (inputs, outputs, system_instruction)
        _order.append(span_id)
        if len(_order) > _MOST:
            # Most of these have been read long ago; the others belong to spans that never came.
            _held.pop(_order.popleft(), None)


def content_of(span_id: int) -> dict[str, Any]:
    """What was kept for a span, as the attributes that the conventions name; it is kept no longer."""
    found = _held.pop(span_id, None)
    if found is None:
        return {}
    names = ("gen_ai.input.messages", "gen_ai.output.messages", "gen_ai.system_instructions")
    parts = zip(names, found, strict=True)
    return {name: [_plain(item) for item in items] for name, items in parts if items}


def _plain(item: Any) -> Any:
    return asdict(item) if is_dataclass(item) and not isinstance(item, type) else item
