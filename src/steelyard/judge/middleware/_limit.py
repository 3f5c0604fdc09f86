"""How many requests are in flight at once."""

from __future__ import annotations

from steelyard._internal.per_loop import PerLoopSemaphore
from steelyard.judge.middleware._wrapper import Wrapper
from steelyard.questions import Judge, Reply, Request


class Limit(Wrapper):
    """Lets a fixed number of requests through at a time; the others wait their turn."""

    def __init__(self, judge: Judge, *, concurrency: int = 16) -> None:
        super().__init__(judge)
        self._slots = PerLoopSemaphore(concurrency)

    async def answer(self, request: Request) -> Reply:
        """Wait for a place, then ask."""
        async with self._slots.here():
            return await self.judge.answer(request)
