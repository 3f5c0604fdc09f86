"""A queue on RabbitMQ, through aio-pika: quorum queues, which survive the loss of a server.

| queue | what is in it |
|---|---|
| `NAME.turns` | turns that are pending |
| `NAME.wait.SECONDS` | turns that were postponed; the broker moves them back when their time is over |
| `NAME.results.SINK` | results that wait for a sink |
| `NAME.dead` | dead letters, with their cause in a header |

RabbitMQ numbers nothing, stores nothing beside a message and knows no duplicates. So a turn whose holder has
died before its result was written or parked for its sinks is judged again, a duplicate is recognised by the
process that has published it, and evaluated and dead turns are counted by each process for itself, since its
start.
"""

from __future__ import annotations

import asyncio
import itertools
import math
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence

from aio_pika.abc import AbstractIncomingMessage, AbstractQueue
from aio_pika.exceptions import DeliveryError, PublishError

from steelyard._internal.bounded import BoundedDict
from steelyard._internal.logs import SafeLogger, WarnOnce
from steelyard.online.queue._protocol import DeadLetter, Decide, QueueCounts, Stored
from steelyard.online.queue.broker._amqp_connection import ANSWER, AmqpConnection
from steelyard.online.queue.broker._broker import (
    BrokerAddress,
    LeasedMessage,
    Outgoing,
    Unreachable,
    dead_letter_of,
    plain,
)

_log = SafeLogger("steelyard.online")
_LINGER = 0.5
_BURST = 0.01
_KNOWN = 100_000  # RabbitMQ does not drop repeated publications by itself
_WAITS = (5, 10, 20, 40, 80, 160, 320, 640)
_POSTPONED, _SEEN = "steelyard-postponed", "steelyard-seen"
_NO_WAIT = 4  # seconds that are not worth a place in a waiting queue


class AmqpBroker:
    """A connection to RabbitMQ, with the queues of one queue of ours.

    Args:
        address: Where the server is.
        max_bytes: Bound of what may be pending, for a queue that is created now.
    """

    lease_seconds = math.inf

    def __init__(self, address: BrokerAddress, *, max_bytes: int) -> None:
        self._address = address
        self._name = address.queue
        self._connection = AmqpConnection(address, max_bytes=max_bytes)
        self._turns: AbstractQueue | None = None
        self._consumer: str | None = None
        self._coming: asyncio.Queue[AbstractIncomingMessage] = asyncio.Queue()
        self._numbers = itertools.count(1)
        self._generation = 0
        self._held: dict[int, LeasedMessage] = {}
        self._waiting_queues: set[str] = set()
        # By sink, for results that wait for it.
        self._results: dict[str, AbstractQueue] = {}
        self._watched: set[str] = set()
        self._known: BoundedDict[str, None] = BoundedDict(max_items=_KNOWN)
        self._evaluated: set[int] = set()
        self._judged = 0
        self._dead: Counter[str] = Counter()
        self._warn = WarnOnce(_log)

    async def connect(self) -> None:
        """Connect anew and create the queues that are missing; what was held is the broker's again."""
        await self.close()
        self._generation += 1
        self._held.clear()
        self._evaluated.clear()
        self._results.clear()
        self._coming = asyncio.Queue()
        async with self._connection.translated(), asyncio.timeout(ANSWER):
            await self._connection.connect()
            self._turns = await self._connection.declare("turns", self._connection.refusing)
            await self._connection.declare("dead", self._connection.bound)

    async def publish(self, turns: Sequence[Outgoing]) -> list[Stored | None]:
        return list(await asyncio.gather(*map(self._publish_turn, turns)))

    async def park(self, results: Sequence[Outgoing]) -> list[bool]:
        async with self._connection.translated():
            for sink in {sink for result in results for sink in result.sinks}:
                await self._results_of(sink)
            return list(await asyncio.gather(*map(self._park_one, results)))

    async def pull(self, most: int, sink: str = "") -> list[LeasedMessage]:
        """Take what the broker has sent; it sends no more than a little beyond what is asked for at first."""
        if sink:
            return await self._pull_results(most, sink)
        async with self._connection.translated():
            await self._consume(most)
            try:
                async with asyncio.timeout(_LINGER):
                    found = [await self._coming.get()]
            except TimeoutError:
                return []
            if self._coming.empty():
                await asyncio.sleep(_BURST)  # the rest of a burst is on its way
            while len(found) < most and not self._coming.empty():
                found.append(self._coming.get_nowait())
        return [self._message(raw) for raw in found]

    async def _pull_results(self, most: int, sink: str) -> list[LeasedMessage]:
        found: list[LeasedMessage] = []
        async with self._connection.translated():
            queue = await self._results_of(sink)
            while len(found) < most and (raw := await queue.get(no_ack=False, fail=False)) is not None:
                found.append(self._message(raw, sink))
        return found

    async def extend(self, messages: Sequence[LeasedMessage]) -> None:
        """Leases end with the connection only."""

    async def keep_result(self, message: LeasedMessage, body: Callable[[], bytes]) -> bool:
        """Nothing is kept beside a message; False where the connection has ended since the lease."""
        if message.seq not in self._held:
            return False
        self._evaluated.add(message.seq)
        self._judged += 1
        return True

    async def acknowledge(self, messages: Sequence[LeasedMessage]) -> None:
        """Acknowledge those that this connection still holds; the others will be judged again."""
        async with self._connection.translated():
            for message in messages:
                if message.seq in self._held:
                    await message.raw.ack()
                    self._forget(message)

    async def give_back(self, messages: Sequence[LeasedMessage], seconds: float, *, postpone: bool) -> bool:
        """Give messages back: to their place in the queue, or by way of a queue that holds them for a while.

        Results are copied to the end: RabbitMQ 4 drops what was handed back twenty times. What is handed back
        comes again as it was: so what the screen said of a turn goes with a copy.
        """
        held = [message for message in messages if message.seq in self._held]
        async with self._connection.translated():
            for message in held:
                if message.sink:
                    await self._copy_to_the_end(message)
                elif postpone or message.seen:
                    await self._copy_back(message, seconds, postponed=message.postponed + postpone)
                else:
                    await message.raw.nack(requeue=True)
                self._forget(message)
        return bool(held)

    async def stop(self) -> list[LeasedMessage]:
        consumer, self._consumer = self._consumer, None
        if consumer is not None and self._turns is not None:
            async with self._connection.translated():
                await self._turns.cancel(consumer, timeout=ANSWER)
        ahead = []
        while not self._coming.empty():
            ahead.append(self._message(self._coming.get_nowait()))
        return ahead

    async def dead_letter(self, message: LeasedMessage, cause: str) -> bool:
        if message.seq not in self._held:
            return False
        headers: dict[str, str | int] = {
            "Steelyard-Cause": plain(cause),
            "Steelyard-Attempts": message.attempts,
        }
        async with self._connection.translated():
            await self._connection.send(message.body, f"{self._name}.dead", headers=headers)
            await message.raw.ack()
        self._forget(message)
        self._dead[cause] += 1
        return True

    async def dead_letters(self, decide: Decide, most: int) -> list[DeadLetter]:
        """Have somebody decide about dead letters, the oldest first; kept ones go to the end.

        Copied there rather than handed back: RabbitMQ 4 drops what was handed back twenty times.
        """
        async with self._connection.translated():
            queue = await self._connection.declare("dead", self._connection.bound)
            letters: list[DeadLetter] = []
            for _ in range(min(most, await self._connection.ready(queue.name))):
                if (raw := await queue.get(no_ack=False, fail=False)) is None:
                    break
                headers = {name: raw.headers[name] for name in raw.headers if name.startswith("Steelyard-")}
                letters.append(dead_letter_of(raw.body, headers))
                fate = decide(letters[-1])
                if fate == "replay":
                    await self._connection.send(raw.body, f"{self._name}.turns")
                elif fate == "keep":
                    kept = {name: value for name, value in headers.items() if isinstance(value, str | int)}
                    await self._connection.send(raw.body, queue.name, headers=kept)
                await raw.ack()
            return letters

    def watch(self, sinks: Collection[str]) -> None:
        """RabbitMQ tells nobody which queues there are."""
        self._watched.update(sinks)

    async def totals(self) -> QueueCounts:
        """What the broker has ready and this process holds, with this process's own counts."""
        async with self._connection.translated():
            ready = 0
            for name in (f"{self._name}.turns", *self._waiting_queues):
                ready += await self._connection.ready(name)
            # Before what waits for sinks: a result that goes there meanwhile counts twice, and not never.
            undelivered = len(self._evaluated)
            turns = sum(not message.sink for message in self._held.values())
            waiting = await self._waiting()
        pending = ready + turns + self._coming.qsize() - undelivered
        return QueueCounts(
            accepted=pending + self._judged + sum(self._dead.values()),
            pending=pending,
            evaluated=self._judged,
            dead=dict(self._dead),
            undelivered=undelivered + max(waiting.values(), default=0),
            bytes=0,
            waiting=waiting,
        )

    async def close(self) -> None:
        """Disconnect; what is held goes back to the queue."""
        self._turns = self._consumer = None
        await self._connection.close()

    async def _consume(self, most: int) -> None:
        """Have the broker send turns, a quarter more than are judged at a time."""
        channel = self._connection.channel
        there = getattr(await channel.get_underlay_channel(), "consumers", (self._consumer,))
        # The broker ends one by itself, where its queue was deleted; another process may have made it anew.
        if self._consumer is None or self._consumer not in there:
            assert self._turns is not None
            await channel.set_qos(prefetch_count=most + most // 4 + 1)
            self._consumer = await self._turns.consume(self._coming.put, timeout=ANSWER)

    def _message(self, raw: AbstractIncomingMessage, sink: str = "") -> LeasedMessage:
        seq, headers = next(self._numbers), raw.headers or {}
        self._held[seq] = message = LeasedMessage(
            seq=seq,
            lease=f"{self._generation}-{raw.delivery_tag}",
            body=raw.body,
            attempts=_whole(headers.get("x-delivery-count")) + 1,
            postponed=_whole(headers.get(_POSTPONED)),
            seen=str(headers.get(_SEEN) or ""),
            sink=sink,
            raw=raw,
        )
        return message

    def _forget(self, message: LeasedMessage) -> None:
        self._held.pop(message.seq, None)
        self._evaluated.discard(message.seq)

    async def _waiting(self) -> Mapping[str, int]:
        """How many results wait, by the sinks that are known here."""
        held = Counter(message.sink for message in self._held.values())
        found: dict[str, int] = {}
        for sink in self._watched | self._results.keys():
            found[sink] = await self._connection.ready((await self._results_of(sink)).name) + held[sink]
        return {sink: count for sink, count in found.items() if count}

    async def _results_of(self, sink: str) -> AbstractQueue:
        if sink not in self._results:
            made = await self._connection.declare(f"results.{sink}", self._connection.refusing)
            self._results[sink] = made
        return self._results[sink]

    async def _park_one(self, result: Outgoing) -> bool:
        try:
            for sink in result.sinks:
                await self._connection.send(result.body, self._results[sink].name)
        except DeliveryError:
            return False
        return True

    async def _publish_turn(self, turn: Outgoing) -> Stored | None:
        if turn.key in self._known:
            return "known"
        try:
            async with asyncio.timeout(ANSWER):
                await self._connection.send(turn.body, f"{self._name}.turns", key=turn.key)
        except PublishError:
            raise Unreachable("the queue was deleted") from None
        except DeliveryError:
            self._warn(
                "full",
                "the broker %s refuses turns: the queue is full; start more workers, or raise its bound",
                self._address.shown,
            )
            return "full"
        except Exception:  # noqa: BLE001 - whatever it was, the broker has not confirmed
            return None
        self._known[turn.key] = None
        return "new"

    async def _copy_to_the_end(self, message: LeasedMessage) -> None:
        try:
            await self._connection.send(message.body, message.raw.routing_key)
        except DeliveryError:
            await message.raw.nack(requeue=True)
        else:
            await message.raw.ack()

    async def _copy_back(self, message: LeasedMessage, seconds: float, *, postponed: int) -> None:
        """Put a copy into the queue that holds it for so long, and then end the original.

        A broker or process that dies in between leaves both: the turn is then judged twice, with one result.
        """
        queue = f"{self._name}.turns"
        if seconds > _NO_WAIT:
            wait = next((one for one in _WAITS if one >= seconds), _WAITS[-1])
            back = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": queue}
            queue = (
                await self._connection.declare(f"wait.{wait}", {"x-message-ttl": 1000 * wait, **back})
            ).name
            self._waiting_queues.add(queue)
        await self._connection.send(
            message.body,
            queue,
            key=message.raw.message_id,
            headers={_POSTPONED: postponed, _SEEN: message.seen},
        )
        await message.raw.ack()


def _whole(value: object) -> int:
    return value if isinstance(value, int) else 0
