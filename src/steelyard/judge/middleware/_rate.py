"""How many requests and tokens a minute."""

from __future__ import annotations

from aiolimiter import AsyncLimiter

from steelyard._internal.per_loop import PerLoop
from steelyard.errors import ConfigurationError
from steelyard.judge.middleware._wrapper import Wrapper
from steelyard.questions import Judge, Reply, Request

_CHARACTERS_A_TOKEN = 4  # of English; a server's own count corrects it after each request
_OVERHEAD = 200  # tokens of instructions and reply


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
        self._requests = _Bucket(requests_per_minute, period)
        self._tokens = _Bucket(tokens_per_minute, period)
        self._owed = 0.0

    async def answer(self, request: Request) -> Reply:
        """Wait until there is room, then ask."""
        estimate = _estimate(request)
        # Taken at once, or two requests would be charged for the same underestimate.
        charge, self._owed = max(0.0, estimate + self._owed), 0.0
        await self._requests.take(1)
        await self._tokens.take(charge)
        reply = await self.judge.answer(request)
        used = reply.usage.prompt_tokens + reply.usage.completion_tokens
        if used:
            self._owed += used - estimate
        return reply


def _estimate(request: Request) -> float:
    view = request.view
    contexts = (*(view.contexts or ()), *(view.reference_contexts or ()))
    texts = [view.question, view.answer, view.reference, *(context.text for context in contexts)]
    characters = sum(len(text) for text in texts if text) + sum(
        map(len, map(repr, request.questions.values()))
    )
    return characters / _CHARACTERS_A_TOKEN + _OVERHEAD


class _Bucket:
    """One limiter for each event loop it is used in."""

    def __init__(self, rate: float | None, period: float) -> None:
        self._rate = rate
        self._limiters = PerLoop(lambda: AsyncLimiter(rate or 1, period))

    async def take(self, amount: float) -> None:
        """Wait for so much room; more than a whole period's worth counts as that."""
        if self._rate is None:
            return
        # A request of more than a minute's worth could otherwise never go.
        await self._limiters.here().acquire(min(amount, self._rate))
