"""One thread's time with a sink, until it is closed or hangs."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable, Sequence

from steelyard._internal.threads import LoopThread, leave
from steelyard.online.delivery._attempts import Handed
from steelyard.recording import unrecorded
from steelyard.scores import Evaluation
from steelyard.sinks import Sink

GRACE = 1.0  # after its timeout a write gets so long to let itself be cancelled
_GATHER = 0.05  # a write costs as much for ten results as for one, and nobody looks at them so soon
_BATCH = 256  # one transaction or request for as many as came while the last one was written


class SinkThread:
    """Takes batches of what waits, and has them brought to the sink, in a loop and a thread of its own."""

    def __init__(
        self,
        sink: Sink,
        waiting: deque[Handed],
        bring: Callable[[SinkThread, list[Handed]], Awaitable[None]],
        *,
        timeout: float,
    ) -> None:
        self.began: float | None = None
        """When the call under way began."""
        self.thread = LoopThread(self._run, name=f"steelyard-sink-{sink.name}")
        self._sink = sink
        self._waiting = waiting
        self._bring = bring
        self._timeout = timeout
        self._news = asyncio.Event()
        self._roused = False
        # Who pops the batch settles it: this thread, or the Monitor's once it has given this one up.
        self._batches: list[list[Handed]] = []
        self._left = False

    def rouse(self) -> None:
        """There is something to write. Wakes the thread once for all that comes until it looks."""
        if not self._roused:
            self._roused = True
            self.thread.call(self._look)

    def leave(self) -> list[Handed]:
        """Count on this thread no more; returns what it was about to write."""
        self._left = True
        self.thread.stop()
        return self.claimed()

    def hold(self, batch: list[Handed]) -> None:
        """These are in work: whoever claims them settles them."""
        self._batches.append(batch)

    # `pop` is atomic: exactly one of the two threads gets the batch.
    def claimed(self) -> list[Handed]:
        """What is in work; nothing for whoever comes second."""
        try:
            return self._batches.pop()
        except IndexError:
            return []

    async def write(self, evaluations: Sequence[Evaluation]) -> BaseException | None:
        """Write; what the sink raised, if anything."""
        return await self._call(lambda: self._sink.write(evaluations))

    def _look(self) -> None:
        self._news.set()

    async def _run(self) -> None:
        with unrecorded():
            try:
                while not self._left:
                    # Cleared first: what is put while the queue is drained rouses again.
                    self._news.clear()
                    self._roused = False
                    if not self._waiting:
                        await self._news.wait()
                        continue
                    while self._waiting and not self._left:
                        batch = [self._waiting.popleft() for _ in range(min(_BATCH, len(self._waiting)))]
                        await self._bring(self, batch)
                    # The next write takes what comes meanwhile; nobody need wake the thread for it.
                    self._roused = True
                    await asyncio.sleep(_GATHER)
            finally:
                # A sink that hangs is not closed: its connection is in the hands of the thread that hangs.
                if not self._left and self.thread.stopped:
                    await self._call(self._sink.aclose)

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
                await leave(task, GRACE)
                return TimeoutError()
            return asyncio.CancelledError() if task.cancelled() else task.exception()
        except asyncio.CancelledError:
            await leave(task, GRACE)
            raise
        finally:
            self.began = None
