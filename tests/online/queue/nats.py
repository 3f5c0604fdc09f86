"""A queue at a NATS server, and what tests do with it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import TypeVar

import nats
from nats.js import JetStreamContext

from online.helpers import turn
from steelyard.online.queue._protocol import QueueCounts, TurnQueue
from steelyard.online.queue._turns import Leased, Selected, Undelivered
from steelyard.online.queue.broker._broker import BrokerAddress
from steelyard.online.queue.broker._nats import NatsBroker
from steelyard.online.queue.broker._queue import BrokerQueue
from steelyard.scores import Evaluation

Queue = TypeVar("Queue", bound=TurnQueue)


def selected(name: str, **changes: object) -> Selected:
    return Selected(turn(name, **changes), 0.25, 0.5)


def queue_at(url: str, *, patience: float = 10.0, lease_seconds: float = 60.0) -> BrokerQueue:
    address = BrokerAddress.of(url)
    broker = NatsBroker(address, max_bytes=1024**2, lease_seconds=lease_seconds)
    return BrokerQueue(broker, shown=address.shown, patience=patience)


@asynccontextmanager
async def in_use(queue: Queue) -> AsyncIterator[Queue]:
    """The queue between its opening and its end."""
    await queue.open()
    yield queue
    await queue.close()


def open_at(url: str, **options: float) -> AbstractAsyncContextManager[BrokerQueue]:
    return in_use(queue_at(url, **options))


def result(leased: Leased) -> Evaluation:
    return Evaluation(record_id=leased.turn.record.id, scores=())


async def lease(queue: TurnQueue, least: int = 1, *, most: int = 8) -> list[Leased | Undelivered]:
    found: list[Leased | Undelivered] = []
    async with asyncio.timeout(30):
        while len(found) < least:
            found += await queue.lease(most)
    return found


async def lease_one(queue: TurnQueue, most: int = 8) -> Leased:
    [one] = await lease(queue, most=most)
    assert isinstance(one, Leased)
    return one


async def counted(queue: TurnQueue, wanted: Callable[[QueueCounts], bool]) -> QueueCounts:
    """The broker's own counts, once they are as they should be."""
    async with asyncio.timeout(20):
        while not ((counts := queue.counts()) and wanted(counts)):  # noqa: ASYNC110 - the server has no event for it
            await asyncio.sleep(0.05)
    return counts


async def on_server(url: str, do: Callable[[JetStreamContext], Awaitable[object]]) -> None:
    """What an operator does to the streams."""
    client = await nats.connect(url.partition("?")[0])
    try:
        await do(client.jetstream())
    finally:
        await client.close()
