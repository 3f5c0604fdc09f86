"""The one place where an address becomes a queue, and where turns go while it is away."""

from __future__ import annotations

import asyncio
import contextlib

from steelyard.errors import ConfigurationError, MissingDependency
from steelyard.online.queue._protocol import QueueFailed, TurnQueue
from steelyard.online.queue._spool_file import SpoolSettings
from steelyard.online.queue._sqlite import SQLiteQueue
from steelyard.online.queue.broker._broker import NATS, Broker, BrokerAddress, Refused, Unreachable
from steelyard.online.queue.broker._queue import BrokerQueue

_LOOK = 0.25
_BATCH = 64
_FIRST_WAIT = 5.0  # before a turn that the broker has no room for is offered again; doubled each time
_LONGEST_WAIT = 600.0


class Fallback:
    """Moves turns from a file to the broker."""

    def __init__(self, settings: SpoolSettings, broker: TurnQueue) -> None:
        self.file = SQLiteQueue(settings)
        self._broker = broker

    async def serve(self) -> None:
        try:
            with contextlib.suppress(QueueFailed):
                while self.file.works:
                    await asyncio.sleep(_LOOK)
                    while self._broker.works and (counts := self.file.counts()) and counts.pending:
                        if not await self._move():
                            break
        finally:
            await self.file.close()

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
                wait = min(_LONGEST_WAIT, _FIRST_WAIT * 2.0 ** min(one.postponed, 10))
                await self.file.postpone(one, wait)
        return bool(through)


StoredQueue = SQLiteQueue | BrokerQueue
"""A queue outside of the process's memory."""


def open_queue(settings: SpoolSettings) -> StoredQueue:
    """The queue in a file or on a broker, not yet opened.

    Raises:
        MissingDependency: If the broker's client is not installed.
    """
    address = settings.address
    if address is None:
        return SQLiteQueue(settings)
    meanwhile = "go through its memory" if settings.evaluate else "wait in its memory"
    if settings.beside is None:
        return BrokerQueue(_broker(address, settings), shown=address.shown, meanwhile=meanwhile)
    # Soon, since the file keeps what memory would lose.
    return BrokerQueue(
        _broker(address, settings),
        shown=address.shown,
        patience=1.0,
        meanwhile=f"go into {settings.beside.shown}",
    )


def _broker(address: BrokerAddress, settings: SpoolSettings) -> Broker:
    package, extra = ("nats-py", "nats") if address.scheme in NATS else ("aio-pika", "rabbitmq")
    try:
        if extra == "nats":
            from steelyard.online.queue.broker._nats import NatsBroker

            return NatsBroker(address, max_bytes=settings.max_bytes, lease_seconds=settings.lease_seconds)
        from steelyard.online.queue.broker._amqp import AmqpBroker

        return AmqpBroker(address, max_bytes=settings.max_bytes)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] in {"nats", "aio_pika", "aiormq"}:
            raise MissingDependency(package, extra=extra) from error
        raise


async def try_queue(settings: SpoolSettings) -> None:
    """Connect to a broker once, to find out whether it can be used; a file is not looked at.

    Raises:
        ConfigurationError: If it refuses us, and will refuse us again.
        QueueFailed: If it cannot be reached now.
    """
    if settings.address is None:
        return
    broker = _broker(settings.address, settings)
    try:
        await broker.connect()
    except Refused as error:
        raise ConfigurationError(
            f"the spool {settings.shown!r} cannot be used: {error}; "
            "check its address, and that it can be written to"
        ) from None
    except Unreachable as error:
        raise QueueFailed(str(error)) from None
    finally:
        await broker.close()
