"""A connection to RabbitMQ: made anew as a whole, its queues, and its errors told as ours."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

import aio_pika
from aio_pika.abc import AbstractChannel, AbstractConnection, AbstractQueue
from aio_pika.exceptions import (
    AuthenticationError,
    ChannelNotFoundEntity,
    ChannelPreconditionFailed,
    ProbableAuthenticationError,
)
from aiormq.exceptions import ChannelAccessRefused, ConnectionNotAllowed

from steelyard._internal.text import error_words
from steelyard.online.queue.broker._broker import BrokerAddress, Refused, Unreachable

ANSWER = 5.0
"""Seconds that an answer of the server may take."""


class AmqpConnection:
    """A connection that is made anew where it breaks; nothing of an earlier one is used again."""

    def __init__(self, address: BrokerAddress, *, max_bytes: int) -> None:
        self._address = address
        self._connection: AbstractConnection | None = None
        self._channel: AbstractChannel | None = None
        self.bound: Mapping[str, str | int] = {"x-max-length-bytes": max_bytes}
        """For queues that drop the oldest where they are full."""
        self.refusing: Mapping[str, str | int] = {"x-overflow": "reject-publish", **self.bound}
        """For those that take no more then."""

    async def connect(self) -> None:
        self._connection = await aio_pika.connect(self._address.servers[0], timeout=ANSWER)
        self._channel = await self._connection.channel()

    async def close(self) -> None:
        """End the connection. Never raises."""
        connection, self._connection, self._channel = self._connection, None, None
        if connection is not None:
            with contextlib.suppress(Exception):
                async with asyncio.timeout(1):
                    await connection.close()

    @property
    def channel(self) -> AbstractChannel:
        """The channel; raises `Unreachable` where there is none."""
        if self._channel is None or self._channel.is_closed:
            raise Unreachable("the connection has ended")
        return self._channel

    async def declare(self, name: str, arguments: Mapping[str, str | int]) -> AbstractQueue:
        """Create a queue that is missing; one that is there is used as it is, if it is a quorum queue.

        Its bounds are the operator's: RabbitMQ would refuse to change them.
        """
        channel = self.channel
        assert self._connection is not None
        full = f"{self._address.queue}.{name}"
        wanted = {"x-queue-type": "quorum", **arguments}
        async with await self._connection.channel() as trying:
            with contextlib.suppress(ChannelNotFoundEntity):
                await trying.declare_queue(full, passive=True)
                return await self._checked(full)
        return await channel.declare_queue(full, durable=True, arguments=dict(wanted))

    async def ready(self, name: str) -> int:
        queue = await self.channel.declare_queue(name, passive=True, timeout=ANSWER)
        return queue.declaration_result.message_count or 0

    async def _checked(self, name: str) -> AbstractQueue:
        """The queue, on our channel; refused where it is not a quorum queue.

        RabbitMQ tells nobody the kind of a queue, but refuses to declare it as another one, and says in which
        argument they differ; a difference in a bound is the operator's.
        """
        assert self._connection is not None
        try:
            async with await self._connection.channel() as trying:
                await trying.declare_queue(name, durable=True, arguments={"x-queue-type": "quorum"})
        except ChannelPreconditionFailed as error:
            if "'x-queue-type'" in str(error) or "'durable'" in str(error):
                raise Refused(
                    f"the queue {name!r} is there and is not a quorum queue; empty and delete it, or name "
                    "another one with ?queue=NAME"
                ) from None
        return await self.channel.get_queue(name)

    async def send(
        self,
        body: bytes,
        queue: str,
        *,
        key: str | None = None,
        headers: Mapping[str, str | int] | None = None,
    ) -> None:
        message = aio_pika.Message(
            body, message_id=key, headers=dict(headers or {}), delivery_mode=aio_pika.DeliveryMode.PERSISTENT
        )
        await self.channel.default_exchange.publish(message, queue, timeout=ANSWER)

    @asynccontextmanager
    async def translated(self) -> AsyncIterator[None]:
        """The client's errors as ours, by their type: their texts may quote addresses."""
        try:
            yield
        except (Unreachable, Refused):
            raise
        except (AuthenticationError, ProbableAuthenticationError, ChannelAccessRefused, ConnectionNotAllowed):
            raise Refused("it refuses the credentials") from None
        except Exception as error:  # noqa: BLE001 - clients raise OSError, RuntimeError and much else
            raise Unreachable(f"it cannot be reached ({error_words(error)})") from None
