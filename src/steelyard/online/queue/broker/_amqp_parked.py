"""Results that wait for a sink, on RabbitMQ: a quorum queue for each sink."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterator, Mapping, Sequence

from aio_pika.abc import AbstractQueue
from aio_pika.exceptions import DeliveryError

from steelyard.online.queue.broker._amqp_connection import AmqpConnection
from steelyard.online.queue.broker._broker import LeasedMessage, Waiting


class AmqpParked:
    """The queues `NAME.results.SINK`."""

    def __init__(self, connection: AmqpConnection, numbers: Iterator[int]) -> None:
        self._connection = connection
        self._numbers = numbers
        self._watched: set[str] = set()
        self._queues: dict[str, AbstractQueue] = {}
        self._held: dict[int, LeasedMessage] = {}

    def start(self) -> None:
        """Go on over a new connection; what was held is the broker's again."""
        self._queues.clear()
        self._held.clear()

    async def watch(self, sinks: Collection[str]) -> None:
        self._watched.update(sinks)

    async def put(self, results: Sequence[Waiting]) -> list[bool]:
        async with self._connection.translated():
            for sink in {sink for result in results for sink in result.sinks}:
                await self._queue(sink)
            return list(await asyncio.gather(*map(self._put, results)))

    async def pull(self, sink: str, most: int) -> list[LeasedMessage]:
        found: list[LeasedMessage] = []
        async with self._connection.translated():
            queue = await self._queue(sink)
            while len(found) < most and (raw := await queue.get(no_ack=False, fail=False)) is not None:
                seq, lease = next(self._numbers), str(raw.delivery_tag)
                found.append(LeasedMessage(seq=seq, lease=lease, body=raw.body, attempts=1, raw=raw))
                self._held[seq] = found[-1]
        return found

    async def acknowledge(self, messages: Sequence[LeasedMessage]) -> None:
        async with self._connection.translated():
            for message in messages:
                if self._held.pop(message.seq, None) is not None:
                    await message.raw.ack()

    async def give_back(self, messages: Sequence[LeasedMessage]) -> None:
        """Their sink does not have these.

        Copied to the end rather than handed back: RabbitMQ 4 drops what was handed back twenty times.
        """
        async with self._connection.translated():
            for message in messages:
                if message.seq not in self._held:
                    continue
                try:
                    await self._connection.send(message.body, message.raw.routing_key)
                except DeliveryError:
                    await message.raw.nack(requeue=True)
                else:
                    await message.raw.ack()
                # Last: in between it counts twice, and not never.
                self._held.pop(message.seq, None)

    async def counts(self) -> Mapping[str, int]:
        held = [message.raw.routing_key for message in self._held.values()]
        for sink in self._watched - self._queues.keys():
            await self._queue(sink)
        found = {
            sink: await self._connection.ready(queue.name) + held.count(queue.name)
            for sink, queue in list(self._queues.items())
        }
        return {sink: count for sink, count in found.items() if count}

    async def _queue(self, sink: str) -> AbstractQueue:
        if sink not in self._queues:
            self._queues[sink] = await self._connection.declare(f"results.{sink}", self._connection.refusing)
        return self._queues[sink]

    async def _put(self, result: Waiting) -> bool:
        try:
            for sink in result.sinks:
                await self._connection.send(result.body, self._queues[sink].name)
        except DeliveryError:
            return False
        return True
