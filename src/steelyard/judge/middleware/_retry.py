"""The one retry layer: what may pass is asked again, later, and as politely as the server wants.

A wait the server asks for (Retry-After) is kept exactly; without one, waits grow exponentially with full
jitter (Brooker, "Exponential Backoff And Jitter", AWS Architecture Blog, 2015). A server that wants a
longer wait gets no further request: the error goes up with its `retry_after`, for whoever can
reschedule the work.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, replace
from typing import TypeVar

from steelyard.errors import ConfigurationError, JudgeError
from steelyard.questions import Capabilities, Judge, Reply, Request
from steelyard.scores import Usage


class Wrapper:
    """A judge that hands everything on to another one. Subclasses change `answer`."""

    def __init__(self, judge: Judge) -> None:
        self.judge = judge

    @property
    def name(self) -> str:
        """The wrapped judge's name: middleware does not change what an answer means."""
        return self.judge.name

    @property
    def prompt_version(self) -> str:
        """The wrapped judge's wording."""
        return self.judge.prompt_version

    @property
    def capabilities(self) -> Capabilities:
        """What the wrapped judge can do."""
        return self.judge.capabilities

    async def answer(self, request: Request) -> Reply:
        """Hand the request on."""
        return await self.judge.answer(request)

    async def aclose(self) -> None:
        """Close the wrapped judge."""
        await self.judge.aclose()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.judge!r})"


def layers(judge: Judge) -> Iterator[Judge]:
    """A judge and what it wraps, from the outside in."""
    yield judge
    while isinstance(judge, Wrapper):
        judge = judge.judge
        yield judge


_Result = TypeVar("_Result")


@dataclass(frozen=True, kw_only=True, slots=True)
class RetryPolicy:
    """How often and how long to try."""

    retries: int = 3
    """Requests after the first one."""
    first_wait: float = 0.5
    """Upper bound of the first wait in seconds; it doubles each time."""
    longest_wait: float = 20.0
    """No wait of ours is longer, and a server that asks for a longer one is not waited for."""

    def __post_init__(self) -> None:
        if self.retries < 0:
            raise ConfigurationError(f"retries must not be negative, not {self.retries!r}")
        if self.first_wait < 0 or self.longest_wait < 0:
            raise ConfigurationError(f"waits must not be negative, not {self!r}")

    async def call(self, send: Callable[[], Awaitable[_Result]]) -> tuple[_Result, int]:
        """Send until it works.

        Returns:
            What came back, and how many requests failed before it.

        Raises:
            JudgeError: The last one; its `requests` counts all of them.
        """
        failed = 0
        for tried in range(self.retries + 1):
            try:
                return await send(), failed
            except JudgeError as error:
                # Counted upwards, so that whoever sees the last error knows what all attempts cost.
                failed = error.requests = failed + error.requests
                if tried == self.retries or not self._may_pass(error):
                    raise
                wait = self._wait(error, tried)
            await asyncio.sleep(wait)
        raise AssertionError("the last attempt ends with a result or an exception")

    def _may_pass(self, error: JudgeError) -> bool:
        # The error goes up with its wait: a queue can postpone the turn, and a request cannot wait for
        # minutes.
        return error.transient and (error.retry_after or 0) <= self.longest_wait

    def _wait(self, error: JudgeError, tried: int) -> float:
        if error.retry_after is not None:
            return error.retry_after
        return random.uniform(0, min(self.longest_wait, self.first_wait * 2.0**tried))


class Retry(Wrapper):
    """Asks again what failed in a way that may pass, and counts every request into the usage."""

    def __init__(self, judge: Judge, policy: RetryPolicy | None = None) -> None:
        super().__init__(judge)
        self._policy = policy or RetryPolicy()

    async def answer(self, request: Request) -> Reply:
        """Ask until there is a reply, or the policy allows no more."""
        reply, failed = await self._policy.call(lambda: self.judge.answer(request))
        return replace(reply, usage=reply.usage + Usage(requests=failed)) if failed else reply
