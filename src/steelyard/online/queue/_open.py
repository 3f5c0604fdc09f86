"""The one place where an address becomes a queue."""

from __future__ import annotations

from collections.abc import Collection
from typing import Protocol

from steelyard.errors import ConfigurationError, MissingDependency
from steelyard.online.queue._dead_letters import DeadLetter, Decide
from steelyard.online.queue._protocol import QueueFailed, TurnQueue
from steelyard.online.queue._spool_settings import SpoolSettings
from steelyard.online.queue._sqlite import SQLiteQueue
from steelyard.online.queue.broker._address import NATS, BrokerAddress
from steelyard.online.queue.broker._broker import Broker, Refused, Unreachable
from steelyard.online.queue.broker._queue import BrokerQueue


class StoredQueue(TurnQueue, Protocol):
    """A queue outside of the process's memory."""

    def start(self) -> None:
        """Start the threads it needs; called where the loop's own thread is started.

        Raises:
            RuntimeError: If the interpreter refuses new threads.
        """
        ...

    async def dead_letters(self, decide: Decide, most: int) -> list[DeadLetter]:
        """Have somebody decide about turns that could not be evaluated, the oldest first.

        Args:
            decide: What becomes of each; must return at once.
            most: How many are looked at.
        """
        ...

    async def watch(self, sinks: Collection[str]) -> None:
        """Count what waits for these sinks; RabbitMQ tells nobody which queues there are."""
        ...


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
        raise ConfigurationError(f"the spool {settings.shown!r} cannot be used: {error}") from None
    except Unreachable as error:
        raise QueueFailed(str(error)) from None
    finally:
        await broker.close()
