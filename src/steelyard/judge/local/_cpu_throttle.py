"""Working in slices, so that the thread that hosts us gets its turn at the interpreter."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Generator
from typing import TypeVar

from steelyard.errors import ConfigurationError

_T = TypeVar("_T")

_SLICE = 0.0005
"""Seconds of work after which other tasks of the loop get a turn."""
_CAPPED_SLICE = 0.0002
"""Seconds of work after which a capped judge sleeps: far below the interpreter's switch interval of 5 ms."""


class CpuThrottle:
    """Drives work that is cut into steps, and pauses between them.

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

    async def drive(self, steps: Generator[None, None, _T]) -> _T:
        """Run the steps to their end and return their result."""
        begun = time.perf_counter()
        while True:
            try:
                next(steps)
            except StopIteration as stop:
                result: _T = stop.value
                return result
            worked = time.perf_counter() - begun
            if worked >= self._slice:
                await asyncio.sleep(worked * self._idle)
                begun = time.perf_counter()
