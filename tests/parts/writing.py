"""What a sink is handed at once, and all that it does with it."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from pathlib import Path

from steelyard.recording import unrecorded
from steelyard.scores import Evaluation
from steelyard.sinks import Sink, SQLiteSink
from steelyard.sinks._sink import Checkable


def write(place: Sink | Path | str, *evaluations: Evaluation) -> None:
    """Have a sink, or one of a results file, write evaluations as a Monitor does, and close it."""
    sink = SQLiteSink(place) if isinstance(place, Path | str) else place

    async def run() -> None:
        async with aclosing(sink):
            with unrecorded():
                await sink.write(evaluations)

    asyncio.run(run())


def check(sink: Sink) -> None:
    """Have a sink see whether it could write, and close it."""
    assert isinstance(sink, Checkable)

    async def run() -> None:
        async with aclosing(sink):
            await sink.check()

    asyncio.run(run())
