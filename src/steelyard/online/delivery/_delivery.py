"""From a finished Evaluation to everybody who is waiting for it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from steelyard.online._masking import without_content
from steelyard.online.config._options import MonitorOptions
from steelyard.online.delivery._sink_writer import SinkCounts, SinkWriter
from steelyard.scores import Evaluation, Usage

__all__ = ["Delivery"]


class Delivery:
    """Hands Evaluations to callbacks and sinks, without content where that is not to be stored."""

    def __init__(self, plan: MonitorOptions, tell: Callable[[Evaluation], None]) -> None:
        self._store_content = plan.store_content
        self._tell = tell
        self._outlets = [SinkWriter(sink, timeout=plan.sink_timeout) for sink in plan.sinks]
        self.usage = Usage()

    @property
    def sinks(self) -> dict[str, SinkCounts]:
        """What became of the Evaluations, by sink."""
        return {outlet.name: outlet.counts for outlet in self._outlets}

    def strip(self, evaluation: Evaluation) -> Evaluation:
        """The Evaluation as it may be kept."""
        return evaluation if self._store_content else without_content(evaluation)

    async def deliver(self, evaluation: Evaluation) -> None:
        """Tell everybody; returns when each sink has it or has lost it."""
        self.usage += evaluation.usage
        evaluation = self.strip(evaluation)
        self._tell(evaluation)
        if self._outlets:
            await asyncio.gather(*(outlet.write(evaluation) for outlet in self._outlets))

    async def close(self) -> None:
        """Close the sinks."""
        await asyncio.gather(*(outlet.close() for outlet in self._outlets))
