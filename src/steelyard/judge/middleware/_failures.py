"""What failed and may pass is asked again, as politely as the server wants; what is down is left alone.

A wait the server asks for (Retry-After) is kept exactly; without one, waits grow exponentially with full
jitter (Brooker, "Exponential Backoff And Jitter", AWS Architecture Blog, 2015). A server that wants a
longer wait gets no further request: the error goes up with its `retry_after`, for whoever can
reschedule the work.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, fields, replace
from typing import Literal, TypeVar

from steelyard._internal.logs import SafeLogger
from steelyard.errors import ConfigurationError, JudgeError, JudgeRejected, JudgeUnavailable
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


CircuitState = Literal["closed", "open", "half_open", "rejected"]
"""`closed` lets requests through, `open` none, `half_open` one to see; `rejected` none until `reset`."""

_log = SafeLogger("steelyard.judge")
# What no waiting mends; a bad request concerns only itself.
_PERMANENT = frozenset({"unauthorized", "unknown_model", "quota_exceeded"})
_RUN = 12  # letters in a row that are no chance
_SHORT = 4  # letters of a whole text that are none


def _repeats(words: str, request: Request) -> bool:
    """Whether a server's words hold some of what it was sent: gateways may reply with the request itself."""
    said = _letters(words)
    runs = {said[at : at + _RUN] for at in range(len(said) - _RUN + 1)}
    for text in map(_letters, _texts(request)):
        if any(run in text for run in runs) or (_SHORT <= len(text) < _RUN and text in said):
            return True
    return False


def _letters(text: str) -> str:
    """A text without what is escaped and broken differently wherever it is quoted."""
    return "".join(filter(str.isalnum, text))


def _texts(request: Request) -> Iterator[str]:
    view = request.view
    yield from (text for text in (view.question, view.answer, view.reference) if text)
    yield from (context.text for context in (*(view.contexts or ()), *(view.reference_contexts or ())))
    for question in request.questions.values():
        values = (getattr(question, field.name) for field in fields(question))
        yield from (value for value in values if isinstance(value, str))


class CircuitBreaker(Wrapper):
    """Stops asking after failures in a row, and tries again after a while. Goes outside of `Retry`.

    A wrong key or an unknown model will not mend itself: after one such reply nothing is sent until
    `reset()`, and one line in the log (`steelyard.judge`) says so. What the breaker turns away fails as
    `breaker_open` or with the cause of the rejection, without a request.

    Args:
        judge: The judge.
        failures: Failures in a row that open it.
        reset_after: Seconds until one request may try again. A server's own Retry-After wins if it is
            longer.
        clock: Monotonic seconds, for tests.
    """

    def __init__(
        self,
        judge: Judge,
        *,
        failures: int = 5,
        reset_after: float = 30.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(judge)
        if failures < 1 or reset_after <= 0:
            raise ConfigurationError(
                f"failures={failures!r} and reset_after={reset_after!r} must be positive"
            )
        self._failures = failures
        self._reset_after = reset_after
        self._clock = clock
        self._in_a_row = 0
        self._open_until: float | None = None
        self._probing = False
        self._rejection: JudgeRejected | None = None

    @property
    def state(self) -> CircuitState:
        """What it does with the next request."""
        if self._rejection is not None:
            return "rejected"
        if self._open_until is None:
            return "closed"
        waiting = self._probing or self._clock() < self._open_until
        return "open" if waiting else "half_open"

    def reset(self) -> None:
        """Close it, e.g. after the key was put right."""
        self._in_a_row, self._open_until, self._probing, self._rejection = 0, None, False, None

    async def answer(self, request: Request) -> Reply:
        """Ask, unless there is no point in it."""
        state = self.state
        if state in ("open", "rejected"):
            raise self._turned_away()
        # Marked before asking, so that one request tries and not all that wait.
        probe = self._probing = state == "half_open"
        try:
            reply = await self.judge.answer(request)
        except JudgeRejected as error:
            self._reject(error, request)
            raise
        except JudgeUnavailable as error:
            self._fail(error, probe=probe)
            raise
        except JudgeError:
            # It replied, however badly: it is not down.
            self._close()
            raise
        else:
            self._close()
            return reply
        finally:
            # Also where it was cancelled: nobody would ever try again.
            if probe:
                self._probing = False

    def _close(self) -> None:
        if self._open_until is not None and self._rejection is None:
            _log.warning("judge %s answers again", self.name)
            self._open_until = None
        self._in_a_row = 0

    def _fail(self, error: JudgeUnavailable, *, probe: bool) -> None:
        self._in_a_row += 1
        # Failures of requests that were sent before it opened say nothing new.
        if not probe and (self._in_a_row < self._failures or self._open_until is not None):
            return
        wait = max(self._reset_after, error.retry_after or 0.0)
        if self._open_until is None:
            _log.warning(
                "judge %s failed %d times in a row (%s); the next try is in %g s",
                self.name,
                self._in_a_row,
                error.cause,
                wait,
            )
        self._open_until = self._clock() + wait

    def _reject(self, error: JudgeRejected, request: Request) -> None:
        if error.cause in _PERMANENT and self._rejection is None:
            # What is said here stands in the log, and in the results of other people's turns.
            if _repeats(str(error), request):
                told = f"{error.cause}, in words that repeat a turn; `steelyard doctor` shows what it replies"
                error = JudgeRejected(told, cause=error.cause)
            self._rejection = error
            _log.error("judge %s is not asked again: %s; correct that, and start anew", self.name, error)

    def _turned_away(self) -> JudgeError:
        error: JudgeRejected | JudgeUnavailable
        if self._rejection is not None:
            error = JudgeRejected(f"not asked again after: {self._rejection}", cause=self._rejection.cause)
        else:
            left = max(0.0, (self._open_until or 0.0) - self._clock())
            error = JudgeUnavailable(f"not asked for another {left:.0f} s", cause="breaker_open")
            error.retry_after = left
        # Nothing was sent, so that nothing is counted as a request.
        error.requests = 0
        return error
