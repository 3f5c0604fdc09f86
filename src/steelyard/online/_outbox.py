"""What a process holds of a queue: turns that it judges, and results until every sink has them.

    finished --deliver--> sinks --all have it--> gone
                            `--some do not--> parked in the queue for those --bring_back--> sink

A result is settled for a sink once the sink has it, or has refused that one result for good. What a sink does
not take is parked for that sink in the queue's own store, whoever judged it; a sink that works again gets it
from there, in any process that has such a sink. So a sink that is away holds up nobody else, and costs no
memory.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Collection

from steelyard.online._delivery import Delivery
from steelyard.online._sink_writer import SinkWriter
from steelyard.online.queue._protocol import QueueFailed, TurnQueue
from steelyard.online.queue._turns import Leased, Undelivered

_LOOK = 0.1  # between two looks at whether a sink has room for what waits for it
_AGAIN = 1.0  # between two looks at whether something waits, and two attempts to park what did not fit


class Outbox:
    """Turns and results that this process holds of one queue."""

    def __init__(self, queue: TurnQueue, delivery: Delivery) -> None:
        self._queue = queue
        self._delivery = delivery
        self._held: dict[tuple[int, str], Leased | Undelivered] = {}
        # By result: the sinks that are not known to have it.
        self._owed: dict[tuple[int, str], Collection[str]] = {}
        # Sinks may settle results after the worker has begun anew.
        self._settled: asyncio.Queue[tuple[Undelivered, Collection[str]]] = asyncio.Queue()
        self._room = asyncio.Event()
        self._room.set()

    def hold(self, leased: Leased | Undelivered) -> None:
        """This process works on it: its lease is renewed."""
        self._held[_key(leased)] = leased

    def drop(self, leased: Leased | Undelivered) -> None:
        """This process has nothing to do with it any more."""
        self._held.pop(_key(leased), None)
        self._owed.pop(_key(leased), None)

    async def room(self) -> None:
        """Wait while results do not fit into the queue's store: no more is judged then."""
        await self._room.wait()

    def deliver(self, result: Undelivered) -> None:
        """Hand a result to the sinks that do not have it."""
        self.hold(result)

        def settled(lacking: Collection[str]) -> None:
            self._settled.put_nowait((result, lacking))

        kept, only = self._queue.durable, result.sink
        self._owed[_key(result)] = self._delivery.deliver(result.evaluation, settled, kept=kept, only=only)

    async def run(self) -> None:
        """Keep leases, and tell the queue what sinks have and what they do not, until it fails."""
        work = [self._renew(), self._confirm()]
        if self._queue.durable:
            work += [self._bring_back(writer) for writer in self._delivery.writers]
        try:
            async with asyncio.TaskGroup() as group:
                for one in work:
                    group.create_task(one)
        except* QueueFailed:
            pass

    async def give_back(self) -> None:
        """Leave everything to the queue, because this process stops or the queue has failed."""
        held, owed = list(self._held.values()), dict(self._owed)
        self._held.clear()
        self._owed.clear()
        with contextlib.suppress(QueueFailed):
            results = [one for one in held if isinstance(one, Undelivered) and _key(one) in owed]
            # In memory they stay undelivered: their sinks may still take them.
            if self._queue.durable:
                await self._queue.park([(one, tuple(owed[_key(one)])) for one in results])
            # A result that no sink was handed yet is owed to all of them.
            await self._queue.release([one for one in held if one not in results])

    async def _renew(self) -> None:
        while True:
            # A third, so that one renewal that is lost does not cost the lease.
            await asyncio.sleep(min(self._queue.lease_seconds / 3, 3600.0))
            await self._queue.renew(list(self._held.values()))

    async def _confirm(self) -> None:
        """Tell the queue what has become of results, of all that are ready at a time."""
        stuck: list[tuple[Undelivered, Collection[str]]] = []
        try:
            while True:
                lacking = stuck
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(_AGAIN if stuck else None):
                        lacking = [*stuck, await self._settled.get()]
                # One transaction or message for all of them: sinks settle whole batches at a time.
                while not self._settled.empty():
                    lacking.append(self._settled.get_nowait())
                written = [result for result, sinks in lacking if not sinks]
                await self._queue.delivered(written)
                stuck = await self._queue.park([one for one in lacking if one[1]])
                for result in {id(one): one for one, _ in lacking}.values():
                    if not any(result is one for one, _ in stuck):
                        self.drop(result)
                # What fits nowhere stays in memory, so that no more may be made.
                self._room.clear() if stuck else self._room.set()
        finally:
            self._room.set()

    async def _bring_back(self, writer: SinkWriter) -> None:
        """Bring a sink what waits for it in the queue, as long as it takes it."""
        while True:
            pause = _LOOK
            if places := writer.places:
                results = await self._queue.parked(writer.key, places)
                for result in results:
                    self.deliver(result)
                pause = _LOOK if results else _AGAIN
            await asyncio.sleep(pause)


def _key(one: Leased | Undelivered) -> tuple[int, str]:
    return one.seq, one.sink if isinstance(one, Undelivered) else ""
