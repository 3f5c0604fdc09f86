"""One sink's way out: batches what is ready, bounds what a sink may cost, and counts what it did not take."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from dataclasses import dataclass

from steelyard._internal.warn_once import WarnOnce
from steelyard.scores import Evaluation
from steelyard.sinks import Sink

_log = logging.getLogger("steelyard.online")
_BATCH = 256
_TRIES = 3
_PAUSE = 0.2
_REST = 30.0


@dataclass(frozen=True, kw_only=True, slots=True)
class SinkCounts:
    """What became of the Evaluations meant for one sink."""

    written: int
    """Taken by the sink."""
    lost: int
    """Not taken: it raised or hung three times in a row, or rested after having done so."""


class SinkWriter:
    """Writes to one sink, one batch at a time: whatever arrives during a write goes into the next.

    A write that raises or takes too long is tried three times. Then the batch is lost for this sink (not for
    the others), and the sink rests for half a minute, so that a dead one does not hold up the rest.
    """

    def __init__(self, sink: Sink, *, timeout: float, rest: float = _REST, pause: float = _PAUSE) -> None:
        self.name = sink.name
        self._sink = sink
        self._timeout = timeout
        self._rest = rest
        self._pause = pause
        self._resting_until = 0.0
        self._waiting: list[tuple[Evaluation, asyncio.Future[bool]]] = []
        self._writing: asyncio.Task[None] | None = None
        self._warn = WarnOnce(_log)
        self._written = 0
        self._lost = 0

    @property
    def counts(self) -> SinkCounts:
        """What became of it all."""
        return SinkCounts(written=self._written, lost=self._lost)

    async def write(self, evaluation: Evaluation) -> bool:
        """Write one Evaluation, together with others that are ready; False where the sink did not take it."""
        if time.monotonic() < self._resting_until:
            self._lost += 1
            return False
        done: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._waiting.append((evaluation, done))
        if self._writing is None or self._writing.done():
            self._writing = asyncio.create_task(self._drain())
        return await done

    async def close(self) -> None:
        """Give up a write under way, let the sink write what it holds back, and close it."""
        if self._writing is not None and not self._writing.done():
            self._writing.cancel()
            await asyncio.gather(self._writing, return_exceptions=True)
        with contextlib.suppress(Exception):
            async with asyncio.timeout(self._timeout):
                await self._sink.aclose()

    async def _drain(self) -> None:
        while self._waiting:
            batch, self._waiting = self._waiting[:_BATCH], self._waiting[_BATCH:]
            taken = await self._try([evaluation for evaluation, _ in batch])
            self._written += taken * len(batch)
            self._lost += (not taken) * len(batch)
            for _, done in batch:
                if not done.done():
                    done.set_result(taken)

    async def _try(self, batch: list[Evaluation]) -> bool:
        for attempt in range(_TRIES):
            if time.monotonic() < self._resting_until:
                return False
            if attempt:
                await asyncio.sleep(self._pause * 2**attempt)
            try:
                async with asyncio.timeout(self._timeout):
                    await self._sink.write(batch)
                return True
            except Exception as error:  # noqa: BLE001 - a sink may raise anything
                problem = error
        self._resting_until = time.monotonic() + self._rest
        self._warn(
            "lost", "the sink %r does not take results: %r; they are counted as lost", self.name, problem
        )
        return False
