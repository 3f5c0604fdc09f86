"""The ledger of a broker, over all processes: asked once a second, and entered meanwhile."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable
from dataclasses import replace

from steelyard.online.queue._protocol import QueueCounts
from steelyard.online.queue.broker._broker import Broker, Refused, Unreachable, token_of

_COUNTED = 1.0  # counting asks the broker, which must not become its main work
_SOON = 0.05


class BrokerLedger:
    """A broker's own counts, with what this process has done since."""

    def __init__(self, broker: Broker) -> None:
        self.counts: QueueCounts | None = None
        self.names: dict[str, str] = {}
        """The sinks that are known here, by what the broker has for their names."""
        self.settled = False
        """Whether the broker itself said that nothing is left, and this process has done nothing since.

        What is entered may be in the broker's counts already, and then makes them too small.
        """
        self._broker = broker
        self._asked = 0.0
        self._entered = 0
        self._news = asyncio.Event()

    def token(self, sink: str) -> str:
        """What the broker has for a sink's name."""
        token = token_of(sink)
        self.names[token] = sink
        return token

    async def ask(self) -> None:
        entered, self._asked = self._entered, time.monotonic()
        counts = await self._broker.totals()
        waiting = {self.names.get(token, token): count for token, count in counts.waiting.items()}
        self.counts = replace(counts, waiting=waiting)
        self.settled = entered == self._entered and not counts.pending + counts.undelivered

    async def keep(self, works: Callable[[], bool]) -> None:
        """Ask again and again while the broker can be used; soon, where all seems done."""
        while works():
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_COUNTED):
                    await self._news.wait()
            self._news.clear()
            await asyncio.sleep(_SOON)
            counts = self.counts
            all_done = counts is not None and not counts.pending + counts.undelivered and not self.settled
            if all_done or time.monotonic() - self._asked > _COUNTED:
                # Whoever needs the connection sees to it.
                with contextlib.suppress(Unreachable, Refused):
                    await self.ask()

    def enter(self, *, pending: int = 0, evaluated: int = 0, undelivered: int = 0, dead: str = "") -> None:
        """Enter what this process has done, until the broker's own counts come."""
        self._entered += 1
        self._news.set()
        self.settled = False
        if (counts := self.counts) is None:
            return
        causes = dict(counts.dead)
        if dead:
            causes[dead] = causes.get(dead, 0) + 1
        # The broker's counts may hold some of it already; they come again within a second.
        pending, evaluated = max(0, counts.pending + pending), counts.evaluated + evaluated
        self.counts = replace(
            counts,
            accepted=pending + evaluated + sum(causes.values()),
            pending=pending,
            evaluated=evaluated,
            undelivered=max(0, counts.undelivered + undelivered),
            dead=causes,
        )
