"""One run of a Monitor in one process: its ledger, its queue, its thread, and its statistics."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from steelyard._internal.lifecycle import at_exit, forget
from steelyard._internal.logs import SafeLogger, WarnOnce
from steelyard._internal.native import RLock
from steelyard._internal.text import error_words
from steelyard._internal.threads import LoopThread
from steelyard.judge.middleware import Cache, CircuitBreaker, CircuitState, layers
from steelyard.online._canaries import CanaryReading
from steelyard.online._delivery import Delivery, Notifier
from steelyard.online._options import MonitorOptions
from steelyard.online._screening import ScreenReading
from steelyard.online._sink_writer import SinkCounts
from steelyard.online._worker import Worker
from steelyard.online.queue._inbox import Inbox
from steelyard.online.queue._protocol import QueueCounts
from steelyard.online.queue._turns import Counts, Feedback
from steelyard.questions import Judge
from steelyard.scores import Usage

_log = SafeLogger("steelyard.online")
# Seconds that the threads get to close judges and sinks, however short the time given to `close`.
_GRACE = 1.0
# Well under the ten seconds after which the watch says that the loop is held up; more often, and a thousand
# Monitors with nothing to do take most of a core.
_LOOK_ABOUT = 1.0
_LOOK = 0.02
_PAUSE = 1.0
"""Seconds between attempts to start a thread where none can be started: each costs the application time."""
_SEVERITY: tuple[CircuitState, ...] = ("closed", "half_open", "open", "rejected")


class MonitorRun:
    """Everything of a Monitor that lives and dies with the process."""

    def __init__(self, options: MonitorOptions, notifier: Notifier) -> None:
        self.exit_timeout = options.exit_timeout
        self.pid = os.getpid()
        feedback = Feedback()
        self.inbox = Inbox(
            max_items=options.max_queue, max_bytes=options.max_queue_bytes, wake=self._wake, feedback=feedback
        )
        self.delivery = Delivery(options, notifier.tell)
        self.worker = Worker(options, inbox=self.inbox, delivery=self.delivery, feedback=feedback)
        self._notifier = notifier
        # Re-entrant: a signal handler may submit a turn while its own thread starts the run.
        self._starting = RLock()
        self._closing = RLock()
        self._half_started = False
        self._dismissed = False
        self._again_at = 0.0
        self._restarts = 0
        self._lost = 0
        self._thread: LoopThread | None = None
        self._warn = WarnOnce(_log)

    def flush(self, timeout: float) -> int:
        """Wait until nothing is pending and every callback was told; returns what is not written."""
        deadline = time.monotonic() + timeout
        # In a callback or a judge the loop would wait for itself.
        if self._thread is not None and self._thread.current:
            return self.inbox.counts().pending
        # Whoever flushes wants the thread now, also where starting it has just failed.
        self._again_at = 0.0
        self._wake()
        left = self.inbox.wait(timeout) + self._wait_for_spool(deadline)
        self._notifier.wait(max(0.0, deadline - time.monotonic()))
        lost, self._lost = self._lost, sum(counts.lost for counts in self.delivery.sinks.values())
        return left + self._lost - lost

    def _wait_for_spool(self, deadline: float) -> int:
        if self._thread is None:
            return 0
        while (left := self.worker.unfinished) and time.monotonic() < deadline:
            time.sleep(_LOOK)
        return left or self.worker.left_behind

    @property
    def restarts(self) -> int:
        """How often code in a judge or sink would have ended one of the threads."""
        return self.delivery.restarts + self._restarts + (self._thread.restarts if self._thread else 0)

    def start(self) -> None:
        """Start the thread now rather than with the first turn."""
        if self._thread is None:
            self._start()

    def ask_canaries(self, count: int) -> None:
        """Have canaries asked now, in the background loop."""
        self.start()
        if self._thread is not None and self.worker.canaries is not None:
            # An event belongs to its loop, so that it is set there and not in this thread.
            self.worker.canaries.expect(count, ask=True)
            self._thread.call(self.worker.canaries.wake)

    def stop(self) -> None:
        """Take no more turns, and let the threads end; does not wait for them."""
        self.inbox.closed = True
        if self._thread is not None:
            self._thread.stop()
        self.delivery.stop()

    def close(self, timeout: float, *, grace: float | None = None) -> int:
        """Flush, stop the threads, give up what is left; returns how much that was."""
        self.inbox.closed = True
        self.flush(timeout)
        ended = time.monotonic() + (max(_GRACE, timeout / 2) if grace is None else grace)
        # Whoever closes at the same time, the end of the program say, waits for whoever was first.
        first = self._closing.acquire(timeout=max(0.0, ended - time.monotonic()))
        try:
            with self._starting:
                thread, self._thread = self._thread, None
            if thread is not None:
                # Half of the time again for what judges and sinks do at their end; callers count on `timeout`
                # alone.
                thread.join(max(0.0, ended - time.monotonic()))
                self._restarts += thread.restarts
                self.delivery.close(max(0.0, ended - time.monotonic()))
        finally:
            if first:
                self._closing.release()
        forget(self)
        self._notifier.close()
        if left := self.inbox.abandon():
            # Nobody reads the counts of a process that has ended.
            _log.warning(
                "turns given up because time ran out at the end: %d; raise exit_timeout, or use a spool file",
                left,
            )
        return left

    def dismiss(self) -> None:
        """Nobody can reach the Monitor any more: the threads end once they have done what is pending."""
        self.inbox.closed = self._dismissed = True

    async def _work(self) -> None:
        async with asyncio.TaskGroup() as group:
            working = group.create_task(self.worker.run())
            while not (self._dismissed and not self.inbox.counts().pending):
                self.delivery.look()
                await asyncio.sleep(_LOOK_ABOUT)
            working.cancel()
        forget(self)
        self.delivery.stop()
        self._notifier.close()

    def _wake(self) -> None:
        """Start the thread with the first turn; later, tell it that there is another."""
        thread = self._thread
        if thread is not None:
            thread.call(self.worker.intake.nudge)
        # Each attempt to start a thread costs the application milliseconds where threads are refused.
        elif time.monotonic() < self._again_at:
            self.inbox.ask_again()
        elif self.inbox.counts().pending:
            self._start()

    def _start(self) -> None:
        with self._starting:
            if self._thread is not None or self._half_started or self.inbox.closed:
                return
            # Told apart from a lock that is held: a handler in this very thread would pass the lock.
            self._half_started = True
            thread: LoopThread | None = None
            try:
                # Before the thread runs: a program that ends now still waits for its turns.
                at_exit(self)
                self._notifier.start()
                self.worker.start()
                thread = LoopThread(self._work)
                thread.start()
                self._thread = thread
            except (RuntimeError, OSError) as error:
                self._again_at = time.monotonic() + _PAUSE
                self.inbox.ask_again()
                problem = error_words(error)
                self._warn(
                    "start",
                    "the background thread cannot be started: %s; turns wait; raise the limit of threads",
                    problem,
                )
            finally:
                if thread is not None and self._thread is None:
                    thread.stop()  # an exception out of a signal: the next turn starts another
                self._half_started = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Stats(Counts):
    """A Monitor at one moment: seen = skipped + accepted; accepted = pending + evaluated + dead + abandoned
    (+ spooled, with a spool).
    """  # noqa: D205 - the two equations are the summary

    queued: int
    """Of the pending ones, those that wait in memory."""
    queued_bytes: int
    """Roughly how many bytes they keep alive."""
    sinks: Mapping[str, SinkCounts]
    """By sink: what was written, what was lost and why."""
    restarts: int
    """How often code in a judge or sink would have ended one of our threads (SystemExit, say); they go on."""
    callbacks_missed: int
    """Evaluations that came too fast for the `on_evaluation` callbacks."""
    spool: QueueCounts | None
    """The spool's own ledger, over all processes; None without a spool, or before the first turn."""
    usage: Usage
    """What judging has cost since the start."""
    breakers: Mapping[str, CircuitState]
    """By judge: what its breaker does with the next request; the worst state where one name has several."""
    cache_hits: int
    """Replies that came out of the judges' caches instead of from a judge."""
    fallback: QueueCounts | None = None
    """The ledger of the file beside a broker: `pending` turns wait there until the broker can be used."""
    canaries: CanaryReading | None = None
    """What probes with a known answer say of the judge; None where none are asked."""
    screen: ScreenReading | None = None
    """What the screen has done; None without one, and where another process judges."""
    replays: int = 0
    """How often experiments have called the application's `replay`; what judging the answers cost is part of
    `usage`."""


def breakers_of(judges: Iterable[Judge]) -> dict[str, CircuitState]:
    found: dict[str, CircuitState] = {}
    for breaker in (
        layer for judge in judges for layer in layers(judge) if isinstance(layer, CircuitBreaker)
    ):
        states = (found.get(breaker.name, "closed"), breaker.state)
        found[breaker.name] = max(states, key=_SEVERITY.index)
    return found


def cache_hits_of(judges: Iterable[Judge]) -> int:
    """The hits of the caches that are around some judges, each counted once."""
    caches = {id(layer): layer for judge in judges for layer in layers(judge) if isinstance(layer, Cache)}
    return sum(cache.hits for cache in caches.values())
