"""From a finished Evaluation to everybody who is waiting for it."""

from __future__ import annotations

import asyncio
import time
from collections import Counter, deque
from collections.abc import Callable, Collection, Sequence
from functools import partial

from steelyard.online._prepare import without_content
from steelyard.online.config._options import MonitorOptions
from steelyard.online.delivery._sink_counts import SinkCounts
from steelyard.online.delivery._sink_writer import SinkWriter
from steelyard.scores import Evaluation, Usage
from steelyard.sinks import Sink


class Delivery:
    """Hands Evaluations to callbacks and sinks, without content where that is not to be stored."""

    def __init__(self, options: MonitorOptions, tell: Callable[[Evaluation], None]) -> None:
        self._store_content = options.store_content
        self._tell = tell
        self.writers = _writers(options.sinks, timeout=options.sink_timeout)
        """One for each sink."""
        self._settled: deque[Callable[[], None]] = deque()
        self._told: asyncio.AbstractEventLoop | None = None
        self.usage = Usage()

    @property
    def sinks(self) -> dict[str, SinkCounts]:
        """What became of the Evaluations, by sink."""
        return {writer.key: writer.counts for writer in self.writers}

    @property
    def restarts(self) -> int:
        """How often a sink would have ended its thread."""
        return sum(writer.restarts for writer in self.writers)

    def start(self) -> None:
        """Start each sink's thread; called where the Monitor's own thread is started."""
        for writer in self.writers:
            writer.start()

    def strip(self, evaluation: Evaluation) -> Evaluation:
        """The Evaluation as it may be kept."""
        return evaluation if self._store_content else without_content(evaluation)

    def deliver(
        self,
        evaluation: Evaluation,
        settled: Callable[[Collection[str]], None],
        *,
        kept: bool,
        only: str = "",
    ) -> Collection[str]:
        """Hand an Evaluation to everybody, or to one sink that did not take it before.

        Args:
            evaluation: What was judged.
            settled: Called in the running loop as soon as each sink has it or has given it back, with the
                keys of those that do not have it.
            kept: Whether a stored queue keeps what a sink gives back; otherwise it is lost.
            only: Key of the one sink; callbacks have heard of the result then.

        Returns:
            The keys of the sinks that do not have it at the moment you look.
        """
        evaluation = self.strip(evaluation)
        if not only:
            self.usage += evaluation.usage
            self._tell(evaluation)
        loop = asyncio.get_running_loop()
        writers = [writer for writer in self.writers if only in ("", writer.key)]
        lacking = {writer.key for writer in writers}
        left = len(writers)
        # Without sinks nobody else would settle it.
        if not left:
            settled(lacking)

        def count(key: str, taken: bool) -> None:
            nonlocal left
            left -= 1
            if taken:
                lacking.discard(key)
            if not left:
                settled(lacking)

        def one_settled(key: str, taken: bool) -> None:
            self._settled.append(partial(count, key, taken))
            # One call for all that a sink has taken at a time: each wakes the loop by a system call.
            if self._told is not loop and not loop.is_closed():
                self._told = loop
                loop.call_soon_threadsafe(self._count_settled)

        for writer in writers:
            writer.put(evaluation, partial(one_settled, writer.key), kept=kept)
        return lacking

    def _count_settled(self) -> None:
        self._told = None  # first: whoever settles from now on calls again
        while self._settled:
            self._settled.popleft()()

    def look(self) -> None:
        """Replace the threads of sinks that hang; called in the loop, now and then."""
        for writer in self.writers:
            writer.look()

    def stop(self) -> None:
        """Ask the sinks' threads to close them; does not wait."""
        for writer in self.writers:
            writer.stop()

    def close(self, timeout: float) -> None:
        """Close the sinks side by side, within this time; blocks."""
        deadline = time.monotonic() + timeout
        # All are asked before the first is waited for, so that they close side by side.
        self.stop()
        for writer in self.writers:
            writer.close(max(0.0, deadline - time.monotonic()))


def _writers(sinks: Sequence[Sink], *, timeout: float) -> list[SinkWriter]:
    """A writer for each sink; what waits for a sink is kept under its key, so that two never share one."""
    seen: Counter[str] = Counter()
    writers = []
    for sink in sinks:
        seen[sink.name] += 1
        key = sink.name if seen[sink.name] == 1 else f"{sink.name}#{seen[sink.name]}"
        writers.append(SinkWriter(sink, key=key, timeout=timeout))
    return writers
