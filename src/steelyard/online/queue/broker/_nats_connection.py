"""A connection to a NATS server: made anew as a whole, and its answers and errors told as the queue's."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, NoReturn, TypeVar

from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.errors import Error, MaxPayloadError, NoRespondersError
from nats.js import JetStreamContext
from nats.js.api import PubAck
from nats.js.errors import APIError, NoStreamResponseError, ServiceUnavailableError

from steelyard._internal.text import error_words
from steelyard._internal.threads import take_note
from steelyard.online.queue.broker._broker import BrokerAddress, Refused, Unreachable

FULL = frozenset({10002, 10023, 10047, 10054, 10077})
"""Codes of the server for: no room, in the account, the server or the stream, or too large a message."""
NOT_LAST = 10071
"""Its code for: there is a message under this subject already."""
ANSWER = 5.0
"""Seconds that an answer of the server may take."""
_LINGER = 0.5  # every worker asks again right after it
_FORBIDDEN = frozenset({"authorization", "authentication", "permission", "user", "credential", "nkey"})
_Answer = TypeVar("_Answer")


def refuse(error: Exception) -> NoReturn:
    """Raise an error of the server's as one that comes again."""
    raise Refused(words(error)) from None


def words(error: Exception) -> str:
    """An error by its type, and by the server's own description, which names no secrets."""
    described = getattr(error, "description", None)
    return f"{error_words(error)}: {described}" if described else error_words(error)


class NatsConnection:
    """A connection that is made anew where it breaks; nothing of an earlier one is used again."""

    def __init__(self, address: BrokerAddress) -> None:
        self._address = address
        self._client: Client | None = None
        self._jetstream: JetStreamContext | None = None
        self._closed: asyncio.Future[None] | None = None
        self._problem: Exception | None = None
        self.server = ""

    async def connect(self) -> None:
        """Connect, or connect anew.

        `server` then names the process at the other end: another one where the server was restarted.
        """
        await self.disconnect()
        self._problem = None
        self._closed = closed = asyncio.get_running_loop().create_future()

        async def ended() -> None:
            if not closed.done():
                closed.set_result(None)

        async with asyncio.timeout(ANSWER):
            self._client = client = Client()
            await client.connect(
                servers=list(self._address.servers),
                name="steelyard",
                allow_reconnect=False,
                connect_timeout=int(ANSWER),
                max_reconnect_attempts=1,
                reconnect_time_wait=0,
                error_cb=self._note,
                closed_cb=ended,
                user_credentials=self._address.options.get("credentials"),
            )
        for task in _tasks_of(client):
            task.add_done_callback(take_note)
        self._jetstream = client.jetstream(timeout=ANSWER)
        described: Mapping[str, Any] = getattr(client, "_server_info", {})
        self.server = str(described.get("server_id", ""))

    async def disconnect(self) -> None:
        """End the connection. Never raises."""
        client, self._client, self._jetstream = self._client, None, None
        if client is None:
            return
        try:
            with contextlib.suppress(Exception):
                async with asyncio.timeout(1):
                    await client.close()
        # Also where whoever disconnects is cancelled: nobody else knows this client any more.
        finally:
            # A server that hangs takes what is still to be sent from nobody, and the client waits for that.
            if (transport := getattr(client, "_transport", None)) is not None:
                with contextlib.suppress(Exception):
                    transport.close()
            for task in _tasks_of(client):
                task.cancel()

    @property
    def client(self) -> Client:
        self.check()
        assert self._client is not None
        return self._client

    @property
    def jetstream(self) -> JetStreamContext:
        self.check()
        assert self._jetstream is not None
        return self._jetstream

    def check(self) -> None:
        # Without JetStream: somebody is just connecting.
        if self._client is None or self._jetstream is None or self._client.is_closed:
            raise Unreachable("the connection has ended")

    async def publish_all(
        self, messages: Sequence[tuple[str, bytes, dict[str, str]]], *, stream: str
    ) -> list[PubAck | Exception | None]:
        """Publish side by side; the server's answer to each, None where none has come in time."""
        jetstream = self.jetstream
        sent = [
            asyncio.ensure_future(
                jetstream.publish(subject, body, timeout=ANSWER, stream=stream, headers=headers)
            )
            for subject, body, headers in messages
        ]
        known: list[PubAck | Exception | None] = []
        for answer in await self.answers(sent):
            if isinstance(answer, NoStreamResponseError):
                raise Unreachable("JetStream is not there, or the stream was deleted")
            if isinstance(answer, ServiceUnavailableError) and answer.err_code not in FULL:
                known.append(None)
            elif isinstance(answer, PubAck | APIError | MaxPayloadError):
                known.append(answer)
            else:
                self.check()
                known.append(None)
        return known

    async def answers(
        self, asked: Sequence[asyncio.Future[_Answer]], *, seconds: float = ANSWER
    ) -> list[_Answer | BaseException | None]:
        """What the server answers; None where nothing has come in time, or the connection has ended."""
        assert self._closed is not None
        together: asyncio.Future[Any] = asyncio.gather(*asked, return_exceptions=True)
        try:
            await asyncio.wait({together, self._closed}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
            found: list[_Answer | BaseException | None] = []
            for one in asked:
                ended = one.done() and not one.cancelled()
                found.append((one.exception() or one.result()) if ended else None)
            return found
        finally:
            for one in asked:
                one.cancel()

    async def send_in_order(self, requests: Sequence[tuple[str, bytes]]) -> None:
        """Send requests, and wait for the answer to the last: the server works them off in order."""
        if not requests:
            return
        *before, (subject, body) = requests
        for earlier in before:
            await self.client.publish(*earlier)
        [answer] = await self.answers([self.ask(subject, body)])
        if answer is None:
            self.check()
            raise TimeoutError
        if isinstance(answer, BaseException):
            raise answer

    def ask(self, subject: str, body: bytes) -> asyncio.Future[Msg]:
        return asyncio.ensure_future(self.client.request(subject, body, timeout=ANSWER))

    async def fetch(self, subscription: JetStreamContext.PullSubscription, most: int) -> list[Msg]:
        """The oldest messages of a consumer; waits half a second for one."""
        try:
            return await subscription.fetch(most, timeout=_LINGER)
        except TimeoutError:
            # No message and a broken connection look the same.
            self.check()
            return []

    @asynccontextmanager
    async def translated(self) -> AsyncIterator[None]:
        """The client's errors as ours, by their type: their texts may quote addresses."""
        try:
            yield
        except (Unreachable, Refused):
            raise
        except (TimeoutError, OSError, Error, NoRespondersError) as error:
            problem = self._problem or error
            if any(word in str(problem).lower() for word in _FORBIDDEN):
                raise Refused("it refuses the credentials") from None
            if isinstance(error, APIError) and not isinstance(
                error, ServiceUnavailableError | NoStreamResponseError
            ):
                refuse(error)
            if isinstance(error, ServiceUnavailableError | NoRespondersError) and self._problem is None:
                raise Unreachable("its JetStream does not answer; nats-server needs the option -js") from None
            raise Unreachable(f"it cannot be reached ({words(problem)})") from None
        except Exception as error:  # noqa: BLE001 - whatever else a client raises, on a broken answer say
            raise Unreachable(f"it cannot be used ({error_words(error)})") from None

    async def _note(self, error: Exception) -> None:
        self._problem = error


def _tasks_of(client: Client) -> list[asyncio.Task[None]]:
    """What a client leaves running where closing it fails on a connection that was reset."""
    owners = [
        *((client, name) for name in ("_flusher_task", "_reading_task", "_ping_interval_task")),
        *((one, "_wait_for_msgs_task") for one in list(getattr(client, "_subs", {}).values())),
    ]
    found = (getattr(owner, name, None) for owner, name in owners)
    return [task for task in found if isinstance(task, asyncio.Task)]
