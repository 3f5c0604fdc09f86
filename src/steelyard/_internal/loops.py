"""Event loops: objects that belong to one, and work in slices, so that what else runs gets its turn."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Generator
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


_SLICE = 0.0005
"""Seconds of work after which other tasks of the loop get a turn."""
_CAPPED_SLICE = 0.0002
"""Seconds of work after which a capped judge sleeps: far below the interpreter's switch interval of 5 ms."""
_LARGE = 0.05
"""Seconds of work from which a piece of it is large, and stands back for those that are not."""
_BACK = 3
"""How many times as long as it works a large one pauses while there are small ones."""


class CpuThrottle:
    """Drives work that is cut into steps, and pauses between them.

    Small work goes before large: one enormous turn must not make a hundred others wait.

    A waiting thread gets the interpreter only when the running one lets go of it. Between slices the work
    sleeps for real, long enough to keep its share of one core.
    """

    def __init__(self, max_share: float | None) -> None:
        if max_share is not None and not 0 < max_share <= 1:
            raise ConfigurationError(
                f"max_share must be above 0 and at most 1, not {max_share!r}; leave it out for no limit"
            )
        self._idle = 0.0 if max_share is None else 1 / max_share - 1
        self._slice = _SLICE if max_share is None else _CAPPED_SLICE
        self._worked: dict[object, float] = {}

    async def drive(self, steps: Generator[None, None, Value]) -> Value:
        """Run the steps to their end and return their result."""
        this = object()
        self._worked[this] = 0.0
        begun, spent = time.perf_counter(), time.thread_time()
        try:
            while True:
                try:
                    next(steps)
                except StopIteration as stop:
                    result: Value = stop.value
                    return result
                worked = time.perf_counter() - begun
                if worked >= self._slice:
                    # Of the processor, for on a busy machine everything takes long.
                    self._worked[this] += time.thread_time() - spent
                    await asyncio.sleep(worked * self._pause(this))
                    begun, spent = time.perf_counter(), time.thread_time()
        finally:
            del self._worked[this]

    def _pause(self, this: object) -> float:
        """How long some work pauses, in parts of the time it worked."""
        if self._worked[this] < _LARGE:
            return self._idle
        # A copy: another thread may begin or end work of its own.
        small = any(spent < _LARGE for spent in list(self._worked.values()))
        return max(self._idle, _BACK) if small else self._idle
