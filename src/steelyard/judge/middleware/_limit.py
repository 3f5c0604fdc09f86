"""How many requests are in flight at once."""

from __future__ import annotations

import asyncio
from weakref import WeakKeyDictionary

from steelyard.errors import ConfigurationError
from steelyard.judge.middleware._wrapper import Wrapper
from steelyard.questions import Judge, Reply, Request


class PerLoopSemaphore:
    """A number of places in whatever event loop is running: semaphores do not survive a change of loop."""

    def __init__(self, places: int) -> None:
        if places < 1:
            raise ConfigurationError(f"concurrency must be at least 1, not {places!r}")
        self._places = places
        self._semaphores: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore] = (
            WeakKeyDictionary()
        )

    def here(self) -> asyncio.Semaphore:
        """The running loop's semaphore."""
        loop = asyncio.get_running_loop()
        semaphore = self._semaphores.get(loop)
        if semaphore is None:
            semaphore = self._semaphores[loop] = asyncio.Semaphore(self._places)
        return semaphore


class Limit(Wrapper):
    """Lets a fixed number of requests through at a time; the others wait their turn."""

    def __init__(self, judge: Judge, *, concurrency: int = 16) -> None:
        super().__init__(judge)
        self._slots = PerLoopSemaphore(concurrency)

    async def answer(self, request: Request) -> Reply:
        """Wait for a place, then ask."""
        async with self._slots.here():
            return await self.judge.answer(request)
