"""Who hears of turns that will not be judged: whoever holds something back until a turn is through."""

from __future__ import annotations

import threading
from collections.abc import Callable

from steelyard._internal.logs import SafeLogger
from steelyard._internal.warn_once import WarnOnce
from steelyard.record import Record, TraceRef
from steelyard.recording import Draft

DecisionCallback = Callable[[TraceRef | None, str], object]
"""Takes the trace of a turn that will not be judged, and why: a reason or cause of `Stats`."""

_log = SafeLogger("steelyard.online")


class Decisions:
    """Tells callbacks at once, in the thread that decided."""

    def __init__(self) -> None:
        self._callbacks: tuple[DecisionCallback, ...] = ()
        self._warn = WarnOnce(_log)

    def subscribe(self, callback: DecisionCallback) -> Callable[[], None]:
        """Add a callback; returns the function that removes it."""
        self._callbacks = (*self._callbacks, callback)

        def unsubscribe() -> None:
            self._callbacks = tuple(known for known in self._callbacks if known is not callback)

        return unsubscribe

    def tell(self, turn: Record | Draft, reason: str) -> None:
        """A turn will not be judged."""
        for callback in self._callbacks:
            try:
                callback(turn.trace, reason)
            except BaseException as error:
                # In the main thread it may come out of a signal handler, and is the application's.
                if not isinstance(error, Exception) and threading.current_thread() is threading.main_thread():
                    raise
                self._warn(
                    "raised",
                    "an on_decision callback raised %s; correct it; nothing else happens",
                    type(error).__name__,
                )
