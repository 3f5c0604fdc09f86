"""From a finished Evaluation to everybody who is waiting for it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from steelyard.online._masking import without_content
from steelyard.online.config._options import MonitorOptions
from steelyard.online.delivery._sink_writer import SinkCounts, SinkWriter
from steelyard.scores import Evaluation, Usage


class Delivery:
    """Hands Evaluations to callbacks and sinks, without content where that is not to be stored."""

    def __init__(self, options: MonitorOptions, tell: Callable[[Evaluation], None]) -> None:
        self._store_content = options.store_content
        self._tell = tell
        self._writers = [SinkWriter(sink, timeout=options.sink_timeout) for sink in options.sinks]
        self.usage = Usage()

    @property
    def sinks(self) -> dict[str, SinkCounts]:
        """What became of the Evaluations, by sink."""
        return {writer.name: writer.counts for writer in self._writers}

    def strip(self, evaluation: Evaluation) -> Evaluation:
        """The Evaluation as it may be kept."""
        return evaluation if self._store_content else without_content(evaluation)

    async def deliver(self, evaluation: Evaluation) -> None:
        """Tell everybody; returns when each sink has it or has lost it."""
        self.usage += evaluation.usage
        evaluation = self.strip(evaluation)
        self._tell(evaluation)
        if self._writers:
            await asyncio.gather(*(writer.write(evaluation) for writer in self._writers))

    async def close(self) -> None:
        """Close the sinks."""
        await asyncio.gather(*(writer.close() for writer in self._writers))
