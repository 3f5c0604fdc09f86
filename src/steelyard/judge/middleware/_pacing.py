"""How many requests are in flight at once, and how many go in a minute.

Places in flight follow what the server bears: additive increase, multiplicative decrease (Chiu & Jain 1989,
"Analysis of the Increase and Decrease Algorithms for Congestion Avoidance in Computer Networks"). A full
round of good replies adds one place; a 429 or a timeout halves them, once per round: requests that were on
their way when the limit fell do not halve it again.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

from aiolimiter import AsyncLimiter

from steelyard._internal.loops import PerLoop
from steelyard.errors import ConfigurationError, JudgeUnavailable, RateLimited
from steelyard.judge.middleware._failures import Wrapper
from steelyard.questions import Judge, Reply, Request

_CHARACTERS_A_TOKEN = 4  # of English; a server's own count corrects it after each request
_OVERHEAD = 200  # tokens of instructions and reply


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
                if (isinstance(error, RateLimited) or error.cause == "timeout") and seen == self._decreases:
                    self._decreases += 1
                    self._places = max(float(self._least), self._places / 2)
                raise
            # One more place for each full round: every reply adds its share of one.
            self._places = min(self._most, self._places + 1 / self._places)
            return reply


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


class RateLimit(Wrapper):
    """Spreads requests over time, as leaky buckets do: a minute's worth may go at once, the rest trickles.

    Tokens are estimated before the request (four characters each) and corrected by what the server counted:
    what was underestimated is charged to the next request.

    Args:
        judge: The judge.
        requests_per_minute: Requests a minute; None for no limit.
        tokens_per_minute: Prompt and completion tokens a minute; None for no limit.
        period: Seconds that count as a minute.
    """

    def __init__(
        self,
        judge: Judge,
        *,
        requests_per_minute: float | None = None,
        tokens_per_minute: float | None = None,
        period: float = 60.0,
    ) -> None:
        super().__init__(judge)
        for name, rate in (("requests", requests_per_minute), ("tokens", tokens_per_minute)):
            if rate is not None and rate < 1:
                raise ConfigurationError(f"{name}_per_minute must be at least 1, not {rate!r}")
        if period <= 0:
            raise ConfigurationError(f"period must be positive, not {period!r}")
        self._requests = _limiters(requests_per_minute, period)
        self._tokens = _limiters(tokens_per_minute, period)
        self._owed = 0.0

    async def answer(self, request: Request) -> Reply:
        """Wait until there is room, then ask."""
        estimate = _estimate(request)
        # Taken at once, or two requests would be charged for the same underestimate.
        charge, self._owed = max(0.0, estimate + self._owed), 0.0
        await _take(self._requests, 1)
        await _take(self._tokens, charge)
        reply = await self.judge.answer(request)
        used = reply.usage.prompt_tokens + reply.usage.completion_tokens
        if used:
            self._owed += used - estimate
        return reply


def _estimate(request: Request) -> float:
    """Tokens that a request will cost."""
    view = request.view
    contexts = (*(view.contexts or ()), *(view.reference_contexts or ()))
    texts = [view.question, view.answer, view.reference, *(context.text for context in contexts)]
    characters = sum(len(text) for text in (*texts, *map(repr, request.questions.values())) if text)
    return characters / _CHARACTERS_A_TOKEN + _OVERHEAD


def _limiters(rate: float | None, period: float) -> PerLoop[AsyncLimiter] | None:
    return None if rate is None else PerLoop(lambda: AsyncLimiter(rate, period))


async def _take(limiters: PerLoop[AsyncLimiter] | None, amount: float) -> None:
    """Wait for so much room; more than a whole period's worth, which could never go, counts as that."""
    if limiters is not None:
        limiter = limiters.here()
        await limiter.acquire(min(amount, limiter.max_rate))
