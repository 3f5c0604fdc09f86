"""Waiting for servers that know a trace only some seconds after it ended, or that ask us to slow down."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from tenacity import (
    AsyncRetrying,
    RetryCallState,
    retry_if_exception,
    stop_before_delay,
    wait_exponential,
)

from steelyard.errors import SinkError

_MAY_PASS = frozenset({"not_found", "rate_limited"})
_growing = wait_exponential(multiplier=0.05, max=1.0)


async def patiently(send: Callable[[], Awaitable[None]], *, patience: float) -> None:
    """Send; where the server does not know the trace yet, or asks for a pause, again until patience is over.

    Host applications export spans in batches, every five seconds by default, so a score may be first. Other
    failures are not tried again here: the Monitor does that, for all sinks alike.

    Args:
        send: Sends once.
        patience: Seconds.

    Raises:
        SinkError: The last one.
    """
    async for attempt in AsyncRetrying(
        retry=retry_if_exception(_may_pass),
        wait=_pause,
        stop=stop_before_delay(patience),
        reraise=True,
    ):
        with attempt:
            await send()


def _may_pass(error: BaseException) -> bool:
    return isinstance(error, SinkError) and error.cause in _MAY_PASS


def _pause(state: RetryCallState) -> float:
    error = state.outcome.exception() if state.outcome else None
    asked: float | None = getattr(error, "retry_after", None)
    return _growing(state) if asked is None else asked
