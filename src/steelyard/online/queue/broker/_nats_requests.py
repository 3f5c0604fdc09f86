"""What a queue asks a NATS server for each turn, with less work than the calls of nats-py itself.

`benchmarks/brokers.py` decides: with `Client.request` a turn costs the publisher 27 to 82 % more processor
time, since it makes a random inbox, a timer and a task for each; with `PullSubscription.fetch` a worker needs
40 % more for each turn and finishes half as many, since it asks for each one by itself. Here one subscription
takes all answers, and a quarter more turns are asked for than there are places, as RabbitMQ sends by itself.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
from collections import deque
from collections.abc import Mapping, Sequence

from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription
from nats.errors import ConnectionClosedError, Error, NoRespondersError
from nats.js.api import Header
from nats.js.errors import APIError

API = "$JS.API"
_LOOK = 0.5
_NO_RESPONDERS = "503"
_EXPIRES = 5.0
_LATE = 1.0  # the server's word that a request has expired may be on its way
_PENDING = "Nats-Pending-Messages"
_PASSING = frozenset({"100", "404", "408", "409"})
_GONE = "Consumer Deleted"


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


class Puller:
    """Asks a consumer for turns and holds those that have come.

    Args:
        stream: Where they lie.
        consumer: Through which they are leased.
        ahead: How many more than its caller wants it asks for, as a share.
    """

    def __init__(self, stream: str, consumer: str, *, ahead: float) -> None:
        self._subject = f"{API}.CONSUMER.MSG.NEXT.{stream}.{consumer}"
        self._ahead = ahead
        self._client: Client | None = None
        self._subscription: Subscription | None = None
        self._inbox = ""
        self._came: deque[Msg] = deque()
        self._news = asyncio.Event()
        self._asked: deque[_PullRequest] = deque()
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
        ahead = int(self._most * self._ahead)
        coming = len(self._came) + sum(asked.left for asked in self._asked)
        if coming >= most + ahead // 2:
            return
        batch = most + ahead - coming
        self._asked.append(_PullRequest(batch, now + _EXPIRES))
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


class _PullRequest:
    """A request for turns."""

    __slots__ = ("ends", "left")

    def __init__(self, batch: int, ends: float) -> None:
        self.left = batch
        """Turns of it that have not come."""
        self.ends = ends
        """When the server gives it up."""
