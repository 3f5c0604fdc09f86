"""Requests to a NATS server: one subscription for all answers, and one timer for all that stay away.

The client's own `request` makes a random inbox, a timer and a task for every request, which costs more than
sending and reading it. A queue asks some of every turn, so here an answer is found by its number.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Mapping

from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.errors import ConnectionClosedError, NoRespondersError
from nats.js.api import Header

_LOOK = 0.5
_NO_RESPONDERS = "503"


class Requests:
    """Requests over one connection, until it ends.

    Args:
        client: The connection.
        seconds: How long an answer may take; its request then fails within half a second.
    """

    def __init__(self, client: Client, *, seconds: float) -> None:
        self._client = client
        self._seconds = seconds
        self._inbox = client.new_inbox()
        self._numbers = itertools.count()
        self._waiting: dict[str, tuple[asyncio.Future[Msg], float]] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._closed = False

    async def start(self) -> None:
        """Subscribe to the answers."""
        await self._client.subscribe(f"{self._inbox}.*", cb=self._take)

    async def send(
        self, subject: str, payload: bytes = b"", headers: Mapping[str, str] | None = None
    ) -> asyncio.Future[Msg]:
        """Send a request; its answer comes as the result, in the order of the server's work.

        The future fails with TimeoutError, NoRespondersError or ConnectionClosedError.

        Raises:
            Error: What the client raises for a request that it cannot send.
        """
        if self._closed:
            raise ConnectionClosedError
        loop = asyncio.get_running_loop()
        number = str(next(self._numbers))
        answer: asyncio.Future[Msg] = loop.create_future()
        self._waiting[number] = (answer, loop.time() + self._seconds)
        if self._timer is None:
            self._timer = loop.call_later(_LOOK, self._expire)
        try:
            # A list that is empty is None to the client: it writes headers for anything else.
            await self._client.publish(
                subject, payload, reply=f"{self._inbox}.{number}", headers=dict(headers) if headers else None
            )
        except BaseException:
            del self._waiting[number]
            raise
        return answer

    async def ask(self, subject: str, payload: bytes = b"", headers: Mapping[str, str] | None = None) -> Msg:
        """Send a request and wait for its answer.

        Raises:
            TimeoutError: If none comes in time.
            NoRespondersError: If nobody answers to this subject.
            Error: What else the client raises.
        """
        return await (await self.send(subject, payload, headers))

    def close(self) -> None:
        """The connection has ended: whoever waits hears of it now."""
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        waiting, self._waiting = self._waiting, {}
        for answer, _ in waiting.values():
            _fail(answer, ConnectionClosedError())

    async def _take(self, message: Msg) -> None:
        answer, _ = self._waiting.pop(message.subject.rpartition(".")[2], (None, 0.0))
        if answer is None or answer.done():
            return
        if message.headers and message.headers.get(Header.STATUS) == _NO_RESPONDERS:
            _fail(answer, NoRespondersError())
        else:
            answer.set_result(message)

    def _expire(self) -> None:
        """Fail what has waited too long; requests are kept in the order of their deadlines."""
        loop = asyncio.get_running_loop()
        now = loop.time()
        for number, (answer, deadline) in list(self._waiting.items()):
            if deadline > now and not answer.done():
                break
            del self._waiting[number]
            _fail(answer, TimeoutError())
        self._timer = loop.call_later(_LOOK, self._expire) if self._waiting else None


def _fail(answer: asyncio.Future[Msg], error: Exception) -> None:
    if not answer.done():
        answer.set_exception(error)
        answer.exception()  # whoever asked may have been cancelled, and nobody else looks
