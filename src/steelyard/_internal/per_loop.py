"""Objects that belong to one event loop, such as semaphores and network clients."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Generic, TypeVar
from weakref import WeakKeyDictionary

from steelyard.errors import ConfigurationError

Value = TypeVar("Value")


class PerLoop(Generic[Value]):
    """One object for each event loop, made when it is first asked for; it goes when its loop goes.

    Args:
        make: Makes the object; called inside the running loop.
    """

    def __init__(self, make: Callable[[], Value]) -> None:
        self._make = make
        # Weak keys: a closed loop takes its client along, and ids of loops are used again.
        self._values: WeakKeyDictionary[asyncio.AbstractEventLoop, Value] = WeakKeyDictionary()

    def here(self) -> Value:
        """The running loop's object.

        Raises:
            RuntimeError: If no loop is running.
        """
        loop = asyncio.get_running_loop()
        if loop not in self._values:
            self._values[loop] = self._make()
        return self._values[loop]

    def pop(self) -> Value | None:
        """Forget the running loop's object; returns it, so that it can be closed."""
        return self._values.pop(asyncio.get_running_loop(), None)


class PerLoopSemaphore(PerLoop[asyncio.Semaphore]):
    """A number of places in whatever event loop is running: semaphores do not survive a change of loop."""

    def __init__(self, places: int) -> None:
        if places < 1:
            raise ConfigurationError(f"concurrency must be at least 1, not {places!r}")
        super().__init__(lambda: asyncio.Semaphore(places))
