"""One sink's way out: a bounded queue, a thread of its own, and what happens when it fails or hangs.

Every sink has its own event loop in its own thread. So one that is slow, blocks its loop, raises SystemExit
or never comes back holds up neither judging nor another sink. What it does not take is counted by cause.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from steelyard._internal.logs import SafeLogger
from steelyard._internal.redact import error_words
from steelyard._internal.threads import LoopThread, leave
from steelyard._internal.warn_once import WarnOnce
from steelyard.errors import SinkError
from steelyard.online.delivery._sink_counts import SinkCounts, SinkLedger
from steelyard.online.queue._turns import size_of
from steelyard.recording import unrecorded
from steelyard.scores import Evaluation
from steelyard.sinks import Sink

_log = SafeLogger("steelyard.online")
_PLACES = 1000  # what waits for a slow sink is kept in memory, so it has a bound
_BYTES = 16 * 1024 * 1024  # large records fill the memory before the places are taken
_BATCH = 256  # one transaction or request for as many as came while the last one was written
_TRIES = 3  # what fails three times in a row is not a hiccup
# Doubled before the last try, which makes 1.2 s in all: longer outages are for the rest below.
_PAUSE = 0.2
_REST = 30.0  # a sink that is down is not asked for every turn; what comes meanwhile is lost and counted
# After its timeout a write gets so long to let itself be cancelled.
_GRACE = 1.0
_SPARES = 8  # each write that hangs costs a thread until it returns; a broken sink must not take them all


@dataclass(frozen=True, slots=True)
class Handed:
    """An Evaluation on its way to a sink."""

    evaluation: Evaluation
    size: int
    """Roughly how many bytes it keeps alive."""
    settled: Callable[[], object]
    """Called once it is written or lost; in any thread, and must not block."""


class SinkWriter:
    """Writes to one sink, one batch at a time: whatever arrives during a write goes into the next.

    A write that raises or takes too long is tried three times. Then the batch is lost for this sink (not for
    the others), and the sink rests for half a minute. A thread that does not come back from a write is left
    behind with its batch, and another one goes on; this can happen eight times.

    Args:
        sink: The sink.
        timeout: Seconds for one write.
        rest: Seconds during which a sink that failed is given nothing.
        pause: Seconds before a write is tried again, and twice that before the last time.
    """

    def __init__(self, sink: Sink, *, timeout: float, rest: float = _REST, pause: float = _PAUSE) -> None:
        self.name = sink.name
        self._sink = sink
        self._timeout = timeout
        self._rest = rest
        self._pause = pause
        self._waiting: deque[Handed] = deque()
        self._ledger = SinkLedger()
        self._turn: _Turn | None = None
        self._spares = _SPARES
        self._closed = False
        self._warn = WarnOnce(_log)

    @property
    def counts(self) -> SinkCounts:
        """What became of it all."""
        return self._ledger.counts(self._sink)

    @property
    def full(self) -> bool:
        """Whether no more Evaluations may wait: for their number, or for what they keep alive."""
        return len(self._waiting) >= _PLACES or sum(handed.size for handed in tuple(self._waiting)) > _BYTES

    @property
    def restarts(self) -> int:
        """How often the sink would have ended its thread."""
        return self._turn.thread.restarts if self._turn is not None else 0

    def start(self) -> None:
        """Start the thread.

        Raises:
            RuntimeError: If the interpreter refuses new threads.
            OSError: If there are no file descriptors for its loop.
        """
        if self._turn is None:
            turn = _Turn(self._sink, self._waiting, self._ledger, self._fails, self._timeout, self._pause)
            try:
                turn.thread.start()
                self._turn = turn
            finally:
                if self._turn is None:
                    turn.thread.stop()

    def put(self, evaluation: Evaluation, settled: Callable[[], object]) -> None:
        """Hand over an Evaluation; it is lost at once where the sink rests or its queue is full."""
        self._ledger.handed += 1
        turn = self._turn
        size = size_of(evaluation.record) if evaluation.record is not None else 0
        handed = Handed(evaluation, size, settled)
        # Without a thread nobody would ever settle it, and the queue would keep it for ever.
        if turn is None:
            return self._keep_back("closed" if self._closed else "hangs", [handed])
        if time.monotonic() < turn.resting_until:
            return self._keep_back("resting", [handed])
        if self.full:
            self._warn("full", "the sink %r is slower than the turns; results are lost for it", self.name)
            return self._keep_back("queue_full", [handed])
        self._waiting.append(handed)
        turn.rouse()
        return None

    def look(self) -> None:
        """Replace the thread where it has not come back from a write; called now and then."""
        turn = self._turn
        # The write has its own timeout within the loop; later than that the loop itself is blocked.
        if turn is None or turn.began is None or time.monotonic() - turn.began < self._timeout + _GRACE:
            return
        self._turn = None
        batch = turn.leave()
        self._warn(
            "hangs", "the sink %r blocks its thread; another thread goes on, its results are lost", self.name
        )
        self._keep_back("hangs", batch)
        if self._spares:
            self._spares -= 1
            with contextlib.suppress(RuntimeError, OSError):
                self.start()
        # No thread could be started: what waits is given up rather than kept in memory.
        if self._turn is None:
            self._keep_back("hangs", self._drained())

    def stop(self) -> None:
        """Ask the thread to close the sink; does not wait."""
        self._closed = True
        if self._turn is not None:
            self._turn.thread.stop()

    def close(self, timeout: float) -> None:
        """Let the sink write what it holds back, close it, and give up what waits; blocks."""
        self.stop()
        turn, self._turn = self._turn, None
        if turn is not None and not turn.thread.join(timeout):
            self._keep_back("closed", turn.leave())
        self._keep_back("closed", self._drained())

    def _drained(self) -> list[Handed]:
        return [self._waiting.popleft() for _ in range(len(self._waiting))]

    def _keep_back(self, cause: str, batch: list[Handed]) -> None:
        if batch:
            self._ledger.keep_back(cause, len(batch))
        for handed in batch:
            handed.settled()

    def _fails(self, problem: str) -> float:
        """A batch is lost; returns the moment until which the sink rests."""
        self._warn(
            "lost", "the sink %r does not take results: %s; they are counted as lost", self.name, problem
        )
        return time.monotonic() + self._rest


class _Turn:
    """One thread's time with a sink, until it is closed or hangs."""

    def __init__(
        self,
        sink: Sink,
        waiting: deque[Handed],
        ledger: SinkLedger,
        fails: Callable[[str], float],
        timeout: float,
        pause: float,
    ) -> None:
        self._news = asyncio.Event()
        self._roused = False
        self.began: float | None = None
        self.resting_until = 0.0
        # One helper, for host names: what else a sink does in threads it does in its own.
        self.thread = LoopThread(self._run, name=f"steelyard-sink-{sink.name}", helpers=1)
        self._sink = sink
        self._waiting = waiting
        self._ledger = ledger
        self._fails = fails
        self._timeout = timeout
        self._pause = pause
        # Who pops the batch settles it: this thread, or the Monitor's once it has given this one up.
        self._batches: list[list[Handed]] = []
        self._left = False

    def rouse(self) -> None:
        """There is something to write. Wakes the thread once for all that comes until it looks."""
        if not self._roused:
            self._roused = True
            self.thread.call(self._look)

    def _look(self) -> None:
        self._roused = False  # first: what comes from now on rouses again
        self._news.set()

    def leave(self) -> list[Handed]:
        """Count on this thread no more; returns what it was about to write."""
        self._left = True
        self.thread.stop()
        return self._claimed()

    async def _run(self) -> None:
        with unrecorded():
            try:
                while not self._left:
                    # Cleared first: what is put while the queue is drained rouses again.
                    self._news.clear()
                    await self._drain()
                    await self._news.wait()
            finally:
                # A sink that hangs is not closed: its connection is in the hands of the thread that hangs.
                if not self._left and self.thread.stopped:
                    await self._call(self._sink.aclose)

    async def _drain(self) -> None:
        while self._waiting and not self._left:
            batch = [self._waiting.popleft() for _ in range(min(_BATCH, len(self._waiting)))]
            self._batches.append(batch)
            try:
                cause = await self._write([handed.evaluation for handed in batch])
            except BaseException as error:
                # Settled whatever it was, SystemExit included, or the turns would never be confirmed.
                self._settle("closed" if self.thread.stopped else type(error).__name__)
                raise
            self._settle(cause)

    def _settle(self, cause: str | None) -> None:
        batch = self._claimed()
        if cause is None:
            self._ledger.written += len(batch)
        elif batch:
            self._ledger.lose(cause, len(batch))
        for handed in batch:
            handed.settled()

    # `pop` is atomic: exactly one of the two threads gets the batch.
    def _claimed(self) -> list[Handed]:
        try:
            return self._batches.pop()
        except IndexError:
            return []

    async def _write(self, evaluations: list[Evaluation]) -> str | None:
        """Write; the cause where the sink did not take them."""
        cause, words = "resting", ""
        for attempt in range(_TRIES):
            if time.monotonic() < self.resting_until:
                return cause
            if attempt:
                await asyncio.sleep(self._pause * 2**attempt)
            error = await self._call(lambda: self._sink.write(evaluations))
            if error is None:
                return None
            cause, words = _cause(error), error_words(error)
        self.resting_until = self._fails(words)
        return cause

    async def _call(self, method: Callable[[], Awaitable[None]]) -> BaseException | None:
        """Call the sink in a task of its own; what it raised, if anything."""

        async def inside() -> None:
            await method()

        self.began = time.monotonic()
        # In a task of its own, so that what a sink cancels is its own task and not the writer.
        task = asyncio.create_task(inside())
        try:
            await asyncio.wait([task], timeout=self._timeout)
            if not task.done():
                await leave(task, _GRACE)
                return TimeoutError()
            return asyncio.CancelledError() if task.cancelled() else task.exception()
        except asyncio.CancelledError:
            await leave(task, _GRACE)
            raise
        finally:
            self.began = None


def _cause(error: BaseException) -> str:
    if isinstance(error, TimeoutError):
        return "timeout"
    cause = error.cause if isinstance(error, SinkError) else None
    return cause if isinstance(cause, str) else type(error).__name__  # any class may say it is a SinkError
