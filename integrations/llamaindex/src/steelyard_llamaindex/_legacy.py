"""A handler for `CallbackManager`, for applications that pass one instead of instrumenting the process.

The manager tells less than the dispatcher does: no agents, no workflows, and of a chat engine only what its
model was asked in the end. While `instrument` is in force this handler stays quiet, so nothing is recorded
twice.
"""

from __future__ import annotations

from typing import Any

from llama_index.core.callbacks.base_handler import BaseCallbackHandler
from llama_index.core.callbacks.schema import CBEventType, EventPayload

from steelyard.recording import TurnTarget
from steelyard_llamaindex import _attach
from steelyard_llamaindex._build import Options
from steelyard_llamaindex._kinds import Kind

_KINDS: dict[CBEventType, Kind] = {
    CBEventType.QUERY: "query",
    CBEventType.RETRIEVE: "retrieve",
    CBEventType.LLM: "llm",
}
_RESULTS = (EventPayload.RESPONSE, EventPayload.COMPLETION, EventPayload.NODES)


class CallbackHandler(BaseCallbackHandler):
    """Records the queries of every component that carries it.

    Prefer `instrument`, which sees more.

    Args:
        monitor: Where turns go; the process-wide default Monitor where none is given.
        options: As for `instrument`.

    Raises:
        ConfigurationError: If an option cannot mean what was given.

    Example:
        ```python
        Settings.callback_manager = CallbackManager([CallbackHandler(monitor)])
        ```
    """

    def __init__(self, monitor: TurnTarget | None = None, **options: Any) -> None:
        super().__init__(event_starts_to_ignore=[], event_ends_to_ignore=[])
        self._turns = _attach.open_turns_for(monitor, Options(**options))

    def on_event_start(
        self,
        event_type: CBEventType,
        payload: dict[str, Any] | None = None,
        event_id: str = "",
        parent_id: str = "",
        **kwargs: Any,
    ) -> str:
        """An event began."""
        try:
            if _attach.active() is None:
                self._start(event_type, payload or {}, event_id, parent_id)
        except Exception as error:  # noqa: BLE001 - a handler must not disturb the application
            self._turns.complain("on_event_start", error)
        return event_id

    def _start(self, event_type: CBEventType, payload: dict[str, Any], id_: str, parent_id: str) -> None:
        if event_type == CBEventType.EXCEPTION:
            self._turns.drop(parent_id, payload.get(EventPayload.EXCEPTION))
            return
        kind = _KINDS.get(event_type)
        if event_type == CBEventType.SYNTHESIZE and self._turns.place(parent_id) is None:
            kind = "query"
        if kind is None:
            self._turns.follow(id_, parent_id)
            return
        self._turns.enter(id_, parent_id, kind, payload.get(EventPayload.QUERY_STR), event_type.value, None)
        place = self._turns.place(id_) if kind == "llm" else None
        prompt = payload.get(EventPayload.MESSAGES) or payload.get(EventPayload.PROMPT)
        if place is not None and prompt is not None:
            self._turns.ask(place, prompt)

    def on_event_end(
        self,
        event_type: CBEventType,
        payload: dict[str, Any] | None = None,
        event_id: str = "",
        **kwargs: Any,
    ) -> None:
        """An event ended."""
        try:
            given = payload or {}
            error = given.get(EventPayload.EXCEPTION)
            if error is not None or payload is None:
                self._turns.drop(event_id, error)
                return
            results = (given.get(name) for name in _RESULTS)
            self._turns.leave(event_id, next((one for one in results if one is not None), None))
        except Exception as error:  # noqa: BLE001 - a handler must not disturb the application
            self._turns.complain("on_event_end", error)

    def start_trace(self, trace_id: str | None = None) -> None:
        """Not needed: turns begin and end with their events."""

    def end_trace(self, trace_id: str | None = None, trace_map: dict[str, list[str]] | None = None) -> None:
        """Not needed: turns begin and end with their events."""
