"""From a finished Evaluation to everybody who is waiting for it."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable

from steelyard.online._masking import without_content
from steelyard.online.config._options import MonitorOptions
from steelyard.online.delivery._sink_counts import SinkCounts
from steelyard.online.delivery._sink_writer import SinkWriter
from steelyard.scores import Evaluation, Usage

# How much later than its timeout a hanging sink is noticed.
_LOOK = 0.1
# Sinks make room in threads of their own, and tell nobody of it.
_ROOM = 0.02


class Delivery:
    """Hands Evaluations to callbacks and sinks, without content where that is not to be stored."""

    def __init__(self, options: MonitorOptions, tell: Callable[[Evaluation], None]) -> None:
        self._store_content = options.store_content
        self._tell = tell
        self._writers = [SinkWriter(sink, timeout=options.sink_timeout) for sink in options.sinks]
        self._settled: deque[Callable[[], None]] = deque()
        self._told: asyncio.AbstractEventLoop | None = None
        self.usage = Usage()

    @property
    def sinks(self) -> dict[str, SinkCounts]:
        """What became of the Evaluations, by sink."""
        return {writer.name: writer.counts for writer in self._writers}

    @property
    def restarts(self) -> int:
        """How often a sink would have ended its thread."""
        return sum(writer.restarts for writer in self._writers)

    def start(self) -> None:
        """Start each sink's thread; called where the Monitor's own thread is started.

        Raises:
            RuntimeError: If the interpreter refuses new threads.
            OSError: If there are no file descriptors.
        """
        for writer in self._writers:
            writer.start()

    def strip(self, evaluation: Evaluation) -> Evaluation:
        """The Evaluation as it may be kept."""
        return evaluation if self._store_content else without_content(evaluation)

    async def room(self) -> None:
        """Wait until every sink has room for another Evaluation."""
        while any(writer.full for writer in self._writers):  # noqa: ASYNC110 - other threads make room
            await asyncio.sleep(_ROOM)

    def deliver(self, evaluation: Evaluation, settled: Callable[[], None]) -> None:
        """Hand an Evaluation to everybody.

        Args:
            evaluation: What was judged.
            settled: Called in the running loop as soon as each sink has it or has lost it.
        """
        self.usage += evaluation.usage
        evaluation = self.strip(evaluation)
        self._tell(evaluation)
        loop = asyncio.get_running_loop()
        left = len(self._writers)
        # Without sinks nobody else would settle it.
        if not left:
            settled()

        def count() -> None:
            nonlocal left
            left -= 1
            if not left:
                settled()

        def one_settled() -> None:
            self._settled.append(count)
            # One call for all that a sink has taken at a time: each wakes the loop by a system call.
            if self._told is not loop and not loop.is_closed():
                self._told = loop
                loop.call_soon_threadsafe(self._count_settled)

        for writer in self._writers:
            writer.put(evaluation, one_settled)

    def _count_settled(self) -> None:
        self._told = None  # first: whoever settles from now on calls again
        while self._settled:
            self._settled.popleft()()

    async def watch(self) -> None:
        """Replace the threads of sinks that hang, until cancelled."""
        while True:
            for writer in self._writers:
                writer.look()
            await asyncio.sleep(_LOOK)

    def stop(self) -> None:
        """Ask the sinks' threads to close them; does not wait."""
        for writer in self._writers:
            writer.stop()

    def close(self, timeout: float) -> None:
        """Close the sinks side by side, within this time; blocks."""
        deadline = time.monotonic() + timeout
        # All are asked before the first is waited for, so that they close side by side.
        self.stop()
        for writer in self._writers:
            writer.close(max(0.0, deadline - time.monotonic()))
