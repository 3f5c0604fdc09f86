"""Leave a judge alone that is down, and for good one that has turned us away."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Literal

from steelyard._internal.logs import SafeLogger
from steelyard.errors import ConfigurationError, JudgeError, JudgeRejected, JudgeUnavailable
from steelyard.judge.middleware._retry import Wrapper
from steelyard.questions import Judge, Reply, Request

CircuitState = Literal["closed", "open", "half_open", "rejected"]
"""`closed` lets requests through, `open` none, `half_open` one to see; `rejected` none until `reset`."""

_log = SafeLogger("steelyard.judge")
# What no waiting mends; a bad request concerns only itself.
_PERMANENT = frozenset({"unauthorized", "unknown_model", "quota_exceeded"})


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
            self._reject(error)
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

    def _reject(self, error: JudgeRejected) -> None:
        if error.cause in _PERMANENT and self._rejection is None:
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
