"""What a sink is handed at once, and all that it does with it."""

from __future__ import annotations

import asyncio
from pathlib import Path

from steelyard.recording import unrecorded
from steelyard.scores import Evaluation
from steelyard.sinks import Sink, SQLiteSink


def write(place: Sink | Path | str, *evaluations: Evaluation) -> None:
    """Have a sink, or one of a results file, write evaluations as a Monitor does, and close it."""
    sink = SQLiteSink(place) if isinstance(place, Path | str) else place

    async def run() -> None:
        with unrecorded():
            await sink.write(evaluations)
        await sink.aclose()

    asyncio.run(run())
