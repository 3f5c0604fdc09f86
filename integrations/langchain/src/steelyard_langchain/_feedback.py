"""A user's verdict on a turn, sent after it by its run id."""

from __future__ import annotations

from contextlib import suppress
from typing import Any, Protocol
from uuid import UUID
from weakref import WeakSet

from steelyard._internal.forks import ForkLock
from steelyard.recording import TurnTarget


class TakesFeedback(Protocol):
    """A handler whose turns may be rated while they are open."""

    @property
    def monitor(self) -> TurnTarget:
        """Where its turns go."""
        ...

    def take_feedback(self, run_id: UUID | str, value: Any) -> bool:
        """Attach feedback to a turn that is still open; returns whether there is one."""
        ...


_handlers: WeakSet[TakesFeedback] = WeakSet()
_monitors: WeakSet[Any] = WeakSet()
_lock = ForkLock()


def remember(handler: TakesFeedback) -> None:
    """Let `feedback` find a handler, and its Monitor, for as long as they live."""
    # A recorder of somebody's own may take no weak reference; then it is found by its handler alone.
    with _lock, suppress(TypeError):
        _handlers.add(handler)
        _monitors.add(handler.monitor)


def feedback(run_id: UUID | str, value: Any) -> bool:
    """Attach what a user thought of an answer to its record.

    It ends up in the record's metadata as `feedback`: at once where the turn is still open, otherwise by way
    of the Monitor, which takes it for turns that are still to be judged and judges disliked ones more often
    if its selection says so.

    Args:
        run_id: The root run's id (pass one as `config={"run_id": ...}`), or the id of a `record` block.
        value: True or a number above 0 for a good answer, False or a number up to 0 for a bad one; other
            plain JSON values are kept and mean nothing to the selection. A later one replaces an earlier one.

    Returns:
        Whether anybody took it: a turn that is still open, or a Monitor that can.
    """
    with _lock:
        handlers, known = list(_handlers), list(_monitors)
    holders = [handler for handler in handlers if handler.take_feedback(run_id, value)]
    told = [handler.monitor for handler in holders or handlers] + ([] if holders else known)
    monitors = {id(monitor): monitor for monitor in told}
    taken = bool(holders)
    for monitor in monitors.values():
        forward = getattr(monitor, "feedback", None)
        if callable(forward):
            taken = forward(str(run_id), value) is not False or taken
    return taken
