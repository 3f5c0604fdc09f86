"""A user's verdict on a turn, sent after it by its run id."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from uuid import UUID
from weakref import WeakSet

if TYPE_CHECKING:
    from steelyard_langchain._handler import CallbackHandler

__all__ = ["feedback", "remember"]

_handlers: WeakSet[CallbackHandler] = WeakSet()


def remember(handler: CallbackHandler) -> None:
    """Let `feedback` find a handler for as long as it lives."""
    _handlers.add(handler)


def feedback(run_id: UUID | str, value: Any) -> bool:
    """Attach what a user thought of an answer to its record.

    Args:
        run_id: The root run's id (pass one as `config={"run_id": ...}`), or the id of a `record` block.
        value: Thumbs up or down, stars, a text: any plain JSON value. A later one replaces an earlier one.

    Returns:
        Whether anybody took it: a turn that is still open, or a Monitor that takes feedback for its turns.
    """
    taken = False
    asked: set[int] = set()
    for handler in list(_handlers):
        if handler.take_feedback(run_id, value):
            return True
        monitor = handler.monitor
        forward = getattr(monitor, "feedback", None)
        if callable(forward) and id(monitor) not in asked:
            asked.add(id(monitor))
            taken = bool(forward(str(run_id), value)) or taken
    return taken
