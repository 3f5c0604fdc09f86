"""One thread's time with a sink, until it is closed or hangs."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from steelyard._internal.threads import LoopThread, leave
from steelyard.recording import unrecorded
from steelyard.scores import Evaluation
from steelyard.sinks import Sink

GRACE = 1.0  # after its timeout a write gets so long to let itself be cancelled
_GATHER = 0.05  # a write costs as much for ten results as for one, and nobody looks at them so soon
_BATCH = 256  # one transaction or request for as many as came while the last one was written


@dataclass(frozen=True, slots=True, eq=False)
class Handed:
    """An Evaluation on its way to a sink."""

    evaluation: Evaluation
    size: int
    """Roughly how many bytes it keeps alive."""
    settled: Callable[[bool], object]
    """Called once, in any thread: whether the sink has it or has refused it for good. Must not block."""
    kept: bool
    """Whether a stored queue keeps it if the sink does not take it; otherwise it is lost then."""


class SinkThread:
    """Takes batches of what waits, in a loop and a thread of its own, until it is closed or hangs."""

    def __init__(
        self,
        sink: Sink,
        waiting: deque[Handed],
        see_through: Callable[[SinkThread, list[Handed]], Awaitable[None]],
        *,
        timeout: float,
    ) -> None:
        self.thread = LoopThread(self._run, name=f"steelyard-sink-{sink.name}")
        self._sink = sink
        self._waiting = waiting
        self._see_through = see_through
        self._timeout = timeout
        self._began: float | None = None
        self._news = asyncio.Event()
        self._roused = False
        # Whoever takes a result out settles it: this thread, or the Monitor's once it has given this one up.
        self._in_work: dict[Handed, None] = {}
        self.left = False
        """Whether nobody counts on this thread any more."""

    @property
    def busy_for(self) -> float:
        """Seconds since the call under way began."""
        began = self._began
        return 0.0 if began is None else time.monotonic() - began

    def rouse(self) -> None:
        """There is something to write. Wakes the thread once for all that comes until it looks."""
        if not self._roused:
            self._roused = True
            self.thread.call(self._news.set)

    def leave(self) -> list[Handed]:
        """Count on this thread no more; returns what it was about to write."""
        self.left = True
        self.thread.stop()
        return self.claimed()

    def claimed(self, batch: Sequence[Handed] | None = None) -> list[Handed]:
        """Those of a batch, or of all that is in work, that nobody else has settled."""
        # `pop` is atomic: exactly one of the two threads gets a result.
        found = tuple(self._in_work) if batch is None else batch
        return [handed for handed in found if self._in_work.pop(handed, handed) is None]

    async def call(self, method: Callable[[], Awaitable[None]]) -> BaseException | None:
        """Call the sink in a task of its own; what it raised, if anything."""

        async def inside() -> None:
            await method()

        self._began = time.monotonic()
        # In a task of its own, so that what a sink cancels is its own task and not the writer.
        task = asyncio.create_task(inside())
        try:
            await asyncio.wait([task], timeout=self._timeout)
            if not task.done():
                await leave(task, GRACE)
                return TimeoutError()
            return asyncio.CancelledError() if task.cancelled() else task.exception()
        except asyncio.CancelledError:
            await leave(task, GRACE)
            raise
        finally:
            self._began = None

    async def _run(self) -> None:
        with unrecorded():
            try:
                while not self.left:
                    # Cleared first: what is put while the queue is drained rouses again.
                    self._news.clear()
                    self._roused = False
                    if not self._waiting:
                        await self._news.wait()
                        continue
                    while self._waiting and not self.left:
                        batch = [self._waiting.popleft() for _ in range(min(_BATCH, len(self._waiting)))]
                        self._in_work.update(dict.fromkeys(batch))
                        await self._see_through(self, batch)
                    # The next write takes what comes meanwhile; nobody need wake the thread for it.
                    self._roused = True
                    await asyncio.sleep(_GATHER)
            finally:
                # A sink that hangs is not closed: its connection is in the hands of the thread that hangs.
                if not self.left and self.thread.stopped:
                    await self.call(self._sink.aclose)


def drained(waiting: deque[Handed]) -> list[Handed]:
    drained = []
    # Both threads may drain it.
    with contextlib.suppress(IndexError):
        while True:
            drained.append(waiting.popleft())
    return drained
