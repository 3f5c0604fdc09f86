"""Turns from a NATS consumer, some of them ahead of time.

A worker leases one turn for each that it has finished. Asking the server for every single one would cost a
request and a round trip a turn, in which a place stands empty; so a quarter more is asked for than there are
places, as RabbitMQ sends by itself.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections import deque
from collections.abc import Sequence

from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription
from nats.errors import Error
from nats.js.api import Header
from nats.js.errors import APIError

_EXPIRES = 5.0
_LATE = 1.0  # the server's word that a request has expired may be on its way
_PENDING = "Nats-Pending-Messages"
_PASSING = frozenset({"100", "404", "408", "409"})
_GONE = "Consumer Deleted"


class Puller:
    """Asks a consumer for turns and holds those that have come.

    Args:
        subject: Where the server takes requests for turns of the consumer.
    """

    def __init__(self, subject: str) -> None:
        self._subject = subject
        self._client: Client | None = None
        self._subscription: Subscription | None = None
        self._inbox = ""
        self._came: deque[Msg] = deque()
        self._news = asyncio.Event()
        self._asked: deque[_Asked] = deque()
        self._most = 0
        self._problem: Exception | None = None

    @property
    def ahead(self) -> tuple[Msg, ...]:
        """Turns that have come and were not taken yet; their leases have begun."""
        return tuple(self._came)

    def start(self, client: Client) -> None:
        """Go on over a new connection. What came over an earlier one is still leased, and is kept."""
        self._client, self._problem, self._news = client, None, asyncio.Event()
        self._asked.clear()
        self._subscription = None

    async def pull(self, most: int, *, patience: float) -> list[Msg]:
        """Take up to so many turns; waits for the first one, but not longer than `patience` seconds.

        Raises:
            Error: What the client raises, or the server has said.
        """
        if not self._came:
            self._news.clear()
        await self._ask(most)
        if not self._came:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(patience):
                    await self._news.wait()
        if self._problem is not None and not self._came:
            problem, self._problem = self._problem, None
            raise problem
        return [self._came.popleft() for _ in range(min(most, len(self._came)))]

    def put_back(self, came: Sequence[Msg]) -> None:
        """Turns that were taken and could not be looked at: the next call takes them first."""
        self._came.extendleft(reversed(came))

    async def stop(self) -> list[Msg]:
        """Ask for no more; returns everything that has come and was not taken."""
        subscription, self._subscription = self._subscription, None
        if self._client is not None and subscription is not None:
            with contextlib.suppress(Error, TimeoutError, OSError):
                async with asyncio.timeout(1):
                    await subscription.drain()  # type: ignore[no-untyped-call]  # to the last on its way
        came = list(self._came)
        self.clear()
        return came

    def clear(self) -> None:
        """Forget everything that has come: its leases end by themselves."""
        self._came.clear()
        self._asked.clear()

    async def _ask(self, most: int) -> None:
        """Ask for more where too little has come or is on its way."""
        assert self._client is not None
        if self._subscription is None:
            self._inbox = self._client.new_inbox()
            self._subscription = await self._client.subscribe(self._inbox, cb=self._take)
        now = asyncio.get_running_loop().time()
        # A request whose end was never told has ended all the same.
        while self._asked and (self._asked[0].left <= 0 or now > self._asked[0].ends + _LATE):
            self._asked.popleft()
        self._most = max(self._most, most)
        ahead = self._most // 4
        coming = len(self._came) + sum(asked.left for asked in self._asked)
        if coming >= most + ahead // 2:
            return
        batch = most + ahead - coming
        self._asked.append(_Asked(batch, now + _EXPIRES))
        request = {"batch": batch, "expires": int(_EXPIRES * 1e9)}
        await self._client.publish(self._subject, json.dumps(request).encode(), reply=self._inbox)

    async def _take(self, message: Msg) -> None:
        if message.reply:
            self._came.append(message)
            self._less(1)
        else:
            headers = message.headers or {}
            status, said = headers.get(Header.STATUS, ""), headers.get(Header.DESCRIPTION, "")
            self._less(int(headers.get(_PENDING, "0") or 0))
            if status in _PASSING and said != _GONE:
                return
            self._asked.clear()
            self._problem = _problem_of(message)
        self._news.set()

    def _less(self, count: int) -> None:
        """So many turns of the oldest requests have come, or will not come."""
        for asked in self._asked:
            taken = min(asked.left, count)
            asked.left -= taken
            count -= taken


def _problem_of(message: Msg) -> Error:
    try:
        APIError.from_msg(message)
    except Error as error:
        return error


class _Asked:
    """A request for turns."""

    __slots__ = ("ends", "left")

    def __init__(self, batch: int, ends: float) -> None:
        self.left = batch
        """Turns of it that have not come."""
        self.ends = ends
        """When the server gives it up."""
