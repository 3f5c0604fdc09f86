"""A file beside a broker: it takes turns while the broker cannot be used, and gives them to it afterwards.

A turn leaves the file once the broker has confirmed it. A process that dies in between leaves it in both.
NATS drops the second within its window for duplicates; else it is judged again, and sinks keep one result.
"""

from __future__ import annotations

import asyncio
import contextlib

from steelyard.online.queue._protocol import QueueFailed, TurnQueue
from steelyard.online.queue._spool_settings import SpoolSettings
from steelyard.online.queue._sqlite import SQLiteQueue
from steelyard.online.queue._turns import Leased

_LOOK = 0.25
_BATCH = 64
_FIRST_WAIT = 5.0  # before a turn that the broker has no room for is offered again; doubled each time
_LONGEST_WAIT = 600.0


class Fallback:
    """Moves turns from a file to the broker.

    Args:
        settings: The file's.
        broker: Where its turns go once that works.
    """

    def __init__(self, settings: SpoolSettings, broker: TurnQueue) -> None:
        self.file = SQLiteQueue(settings)
        self._broker = broker

    async def serve(self) -> None:
        """Move what is in the file until the file fails."""
        try:
            with contextlib.suppress(QueueFailed):
                while not await self._failed_within(_LOOK):
                    while self._broker.works and (counts := self.file.counts()) and counts.pending:
                        if not await self._move():
                            break
        finally:
            await self.file.close()

    async def _failed_within(self, seconds: float) -> bool:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self.file.failed()
                return True
        return False

    async def _move(self) -> bool:
        """Move the oldest turns; False where none is due, or the broker takes none of them."""
        leased = await self.file.lease_turns(_BATCH)
        try:
            stored = await self._broker.put([one.turn for one in leased]) if leased else []
        except BaseException as error:
            # Given back, or they would wait for the end of their leases.
            with contextlib.suppress(QueueFailed):
                await self.file.release(leased)
            if isinstance(error, QueueFailed):
                return False
            raise
        outcomes = list(zip(leased, stored, strict=True))
        through = [one for one, outcome in outcomes if outcome in ("new", "known")]
        await self.file.moved(through)
        for one, outcome in outcomes:
            if outcome == "full":
                await self.file.postpone(one, _wait(one))
            elif outcome == "broken":
                await self.file.dead_letter(one, "unstorable")
        return bool(through)


def _wait(turn: Leased) -> float:
    return float(min(_LONGEST_WAIT, _FIRST_WAIT * 2.0 ** min(turn.postponed, 10)))
