"""How many requests are in flight at once: as many as the server bears.

Additive increase, multiplicative decrease (Chiu & Jain 1989, "Analysis of the Increase and Decrease
Algorithms for Congestion Avoidance in Computer Networks"). A full round of good replies adds one place; a 429
or a timeout halves them, once per round: requests that were on their way when the limit fell do not halve it
again.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

from steelyard._internal.per_loop import PerLoop
from steelyard.errors import ConfigurationError, JudgeUnavailable, RateLimited
from steelyard.judge.middleware._wrapper import Wrapper
from steelyard.questions import Judge, Reply, Request


class AdaptiveConcurrency(Wrapper):
    """Lets a changing number of requests through at a time.

    It goes inside of `Retry`, so that it sees every failure.

    Args:
        judge: The judge.
        most: Places at the most, and at the start.
        least: Places at the least.
    """

    def __init__(self, judge: Judge, *, most: int = 16, least: int = 1) -> None:
        super().__init__(judge)
        if not 1 <= least <= most:
            raise ConfigurationError(f"concurrency must be at least 1: least={least!r}, most={most!r}")
        self._most = most
        self._least = least
        self._gates = PerLoop(_Gate)
        self._places = float(most)
        self._decreases = 0

    @property
    def concurrency(self) -> int:
        """Places at the moment."""
        return int(self._places)

    async def answer(self, request: Request) -> Reply:
        """Wait for a place, ask, and learn from how it went."""
        # The places belong to the server and are counted for all loops; who waits belongs to a loop.
        async with self._gates.here().entered(self):
            seen = self._decreases
            try:
                reply = await self.judge.answer(request)
            except JudgeUnavailable as error:
                if isinstance(error, RateLimited) or error.cause == "timeout":
                    self._decrease(seen)
                raise
            # One more place for each full round: every reply adds its share of one.
            self._places = min(self._most, self._places + 1 / self._places)
            return reply

    def _decrease(self, seen: int) -> None:
        if seen == self._decreases:
            self._decreases += 1
            self._places = max(float(self._least), self._places / 2)


class _Gate:
    """Who is in and who waits, in one event loop."""

    def __init__(self) -> None:
        self._inside = 0
        self._left = asyncio.Condition()

    @contextlib.asynccontextmanager
    async def entered(self, limit: AdaptiveConcurrency) -> AsyncIterator[None]:
        async with self._left:
            await self._left.wait_for(lambda: self._inside < limit.concurrency)
            self._inside += 1
        try:
            yield
        finally:
            self._inside -= 1
            async with self._left:
                self._left.notify_all()
