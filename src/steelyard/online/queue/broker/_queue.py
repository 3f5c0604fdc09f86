"""The queue on a broker: what the worker asks of a TurnQueue, in terms of what brokers have.

A turn is acknowledged once the sinks have its result. Until then the broker keeps it: whoever dies with it
leaves it to the next worker, at the latest when its lease ends. A connection that breaks is made anew for
some seconds, in which everybody waits who needs it; after that the queue has failed, and the worker's loop
opens it again from time to time.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import replace
from typing import TypeVar

from steelyard._internal.logs import SafeLogger
from steelyard.errors import DeadCause
from steelyard.online.queue._in_flight import Leasing, to_the_end
from steelyard.online.queue._protocol import DeadLetter, Decide, Parking, QueueCounts, QueueFailed, Stored
from steelyard.online.queue._turns import (
    Leased,
    Selected,
    Undelivered,
    seen_from_dict,
    turn_from_json,
    turn_to_json,
)
from steelyard.online.queue.broker._broker import (
    Broker,
    LeasedMessage,
    Outgoing,
    Refused,
    Unreachable,
    evaluation_of,
    key_of,
    packed,
    result_of,
    seen_of,
    unpacked,
)
from steelyard.online.queue.broker._parking import ParkedQueue
from steelyard.scores import Evaluation

_log = SafeLogger("steelyard.online")
_PATIENCE = 10.0  # long enough for a server that restarts
# Between two attempts to connect: a server that restarts refuses connections at once.
_PAUSE = 0.2
_COMING = 5.0  # for what is just being leased or stored when a process stops
_COUNTED = 1.0  # counting asks the broker, which must not become its main work
_MAX_ATTEMPTS = 5  # a turn that ends its worker each time must not end all of them one after the other
_Result = TypeVar("_Result")


class BrokerQueue:
    """A TurnQueue on a broker.

    Args:
        broker: Its connection.
        shown: Its address as it may be logged.
        patience: Seconds for which a broken connection is made anew before the queue fails.
        max_attempts: Leases without any outcome after which a turn is given up.
        meanwhile: What turns of this process do while the broker cannot be used, for the log.
    """

    durable = True
    left_behind = 0  # a broker keeps them for any machine, and this one does not know how many

    def __init__(
        self,
        broker: Broker,
        *,
        shown: str,
        patience: float = _PATIENCE,
        max_attempts: int = _MAX_ATTEMPTS,
        meanwhile: str = "go through its memory",
    ) -> None:
        self._broker = broker
        self._shown = shown
        self._patience = patience
        self._max_attempts = max_attempts
        self._meanwhile = meanwhile
        self._held: dict[int, LeasedMessage] = {}
        self._finished: dict[int, LeasedMessage] = {}
        self._parked = ParkedQueue(broker.parked, self._call)
        self._leasing: Leasing[LeasedMessage] = Leasing(ahead=True)
        self._counting: asyncio.Task[None] | None = None
        self._counts: QueueCounts | None = None
        self._connecting = asyncio.Lock()
        self._connection = 0
        self._failed = asyncio.Event()
        # Told once for each outage, however many calls find the broker gone.
        self._works = self._said = False

    @property
    def works(self) -> bool:
        return self._works

    @property
    def lease_seconds(self) -> float:
        return self._broker.lease_seconds

    def start(self) -> None:
        """No thread is needed: clients run in the worker's loop."""

    async def open(self) -> None:
        try:
            await self._broker.connect()
            await self._count()
        except (Unreachable, Refused) as error:
            self._set_aside(error)
            await self._broker.close()
            raise QueueFailed(str(error)) from error
        self._works = True
        self._connection += 1
        self._failed.clear()
        self._counting = asyncio.create_task(self._keep_counting())
        if self._said:
            self._said = False
            _log.warning("the broker %s works again", self._shown)

    async def failed(self) -> None:
        await self._failed.wait()

    async def room(self, most: int) -> int:
        """All of them: the broker's own bound is what `put` holds turns against."""
        return most

    async def put(self, turns: Sequence[Selected]) -> list[Stored]:
        """Publish turns side by side; what is not confirmed is published again, with the same key."""
        # By place: equal turns in one batch are told apart by nothing else.
        outcomes: dict[int, Stored] = {}
        waiting: dict[int, Outgoing] = {}
        keys: set[str] = set()
        for place, turn in enumerate(turns):
            line, key = turn_to_json(turn), key_of(turn)
            if line is None:
                outcomes[place] = "broken"
            elif key in keys:
                outcomes[place] = "known"
            else:
                waiting[place] = Outgoing(key=key, body=packed(line))
                keys.add(key)
        again = False

        async def publish() -> None:
            nonlocal again
            places, first = list(waiting), not again
            again = True  # also where this raises: what was sent may be there
            for place, stored in zip(
                places, await self._broker.publish([waiting[place] for place in places]), strict=True
            ):
                if stored is not None:
                    # A turn that is known at the second try is the one of the first.
                    outcomes[place] = "new" if stored == "known" and not first else stored
                    del waiting[place]
            if waiting:
                raise Unreachable("it does not confirm what is published")

        while waiting:
            await self._call(publish)
        stored = [outcomes[place] for place in range(len(turns))]
        self._counted(pending=stored.count("new"))
        return stored

    async def lease(self, most: int) -> list[Leased | Undelivered]:
        leased: list[Leased | Undelivered] = []
        for message in await self._call(lambda: self._leasing.take(most, self._broker.pull)):
            try:
                one = await self._taken(message)
            except QueueFailed:
                raise
            except Exception:  # noqa: BLE001 - RecursionError, AttributeError: a body may hold anything
                await self._dead_letter(message, "unreadable")
            else:
                leased += [one] if one is not None else []
        return leased

    async def renew(self, held: Sequence[Leased | Undelivered]) -> None:
        messages = [message for one in held if (message := self._message(one)) is not None]
        messages += self._leasing.ready
        messages += self._parked.messages([one for one in held if isinstance(one, Undelivered)])
        await self._call(lambda: self._broker.extend(messages))

    async def finish(self, leased: Leased, evaluation: Evaluation) -> Undelivered | None:
        message = self._take(leased)
        if message is None:
            return None
        if message.result is None:
            if not await self._call(
                lambda: self._broker.keep_result(message, lambda: result_of(leased.turn, evaluation))
            ):
                return None
            self._counted(pending=-1, evaluated=1, undelivered=1)
        self._finished[leased.seq] = message
        return Undelivered(leased.seq, leased.lease, evaluation)

    async def postpone(self, leased: Leased, seconds: float) -> bool:
        message = self._take(leased)
        if message is None:
            return False
        screened = replace(message, seen=seen_of(leased.turn))
        return await self._call(lambda: self._broker.give_back([screened], seconds, postpone=True))

    async def dead_letter(self, leased: Leased, cause: DeadCause | str) -> bool:
        message = self._take(leased)
        return message is not None and await self._dead_letter(message, cause)

    async def delivered(self, results: Sequence[Undelivered]) -> None:
        await self._parked.acknowledge([result for result in results if result.sink])
        self._counted(undelivered=-await self._acknowledge(results))

    async def park(self, results: Sequence[Parking]) -> list[Parking]:
        # Broken off in between, they would be kept a second time when this process gives back what it holds.
        return await to_the_end(self._park(results), seconds=_COMING)

    async def _park(self, results: Sequence[Parking]) -> list[Parking]:
        await self._parked.give_back([result for result, _ in results if result.sink])
        found = [(self._message(one[0]), one) for one in results if not one[0].sink]
        whole = [(message, one) for message, one in found if message is not None]
        stored = await self._parked.put([(message, *one) for message, one in whole])
        # Acknowledged after they are stored: a crash in between delivers them twice, and not never.
        await self._acknowledge([one[0] for (_, one), kept in zip(whole, stored, strict=True) if kept])
        return [one for (_, one), kept in zip(whole, stored, strict=True) if not kept]

    async def _acknowledge(self, results: Sequence[Undelivered]) -> int:
        """The turns of these results are through; returns how many that this process held."""
        through = [message for result in results if (message := self._take_finished(result)) is not None]
        if through:
            await self._call(lambda: self._broker.acknowledge(through))
        return len(through)

    async def parked(self, sink: str, most: int) -> list[Undelivered]:
        return await self._parked.lease(sink, most, self._counts)

    async def watch(self, sinks: Collection[str]) -> None:
        await self._parked.watch(sinks)
        await self._call(self._count)

    async def move(self, sink: str, to: str) -> int:
        moved = await self._parked.move(sink, to)
        await self._call(self._count)
        return moved

    async def dead_letters(self, decide: Decide, most: int) -> list[DeadLetter]:
        letters = await self._call(lambda: self._broker.dead_letters(decide, most))
        await self._call(self._count)
        return letters

    async def release(self, held: Sequence[Leased | Undelivered]) -> None:
        messages = [
            replace(message, seen=seen_of(one.turn)) if isinstance(one, Leased) else message
            for one in held
            if (message := self._message(one)) is not None
        ]
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_COMING):
                messages += await self._leasing.left()
        for message in messages:
            self._held.pop(message.seq, None)
            self._finished.pop(message.seq, None)
        if self._works:
            # Without patience: nobody waits for a broker at the end, and leases end by themselves.
            with contextlib.suppress(Unreachable, Refused):
                await self._broker.give_back(messages, 0, postpone=False)
                await self._parked.release()

    def counts(self) -> QueueCounts | None:
        """The broker's ledger as of the last second, with what this process has done since, or at `close`."""
        return None if self._failed.is_set() else self._counts

    async def close(self) -> None:
        if self._works:
            # What was given back at the end is told, too; nobody waits for a broker that has just gone.
            with contextlib.suppress(Unreachable, Refused, TimeoutError):
                async with asyncio.timeout(1):
                    await self._count()
        self._works = False
        if self._counting is not None:
            self._counting.cancel()
            await asyncio.gather(self._counting, return_exceptions=True)
            self._counting = None
        self._held.clear()
        self._finished.clear()
        self._leasing.ready.clear()
        self._parked.clear()
        await self._broker.close()

    async def _taken(self, message: LeasedMessage) -> Leased | Undelivered | None:
        """What a message is for the worker; None for a turn that was tried too often, and is dead now."""
        # A result is there although the turn came again: only delivering it is left.
        if message.result:
            result = Undelivered(message.seq, message.lease, evaluation_of(message.result, message.body))
            self._finished[message.seq] = message
            return result
        if message.attempts > self._max_attempts:
            await self._dead_letter(message, "poison")
            return None
        turn = turn_from_json(unpacked(message.body))
        if message.seen:
            turn = replace(turn, seen=seen_from_dict(json.loads(message.seen), turn.record))
        leased = Leased(message.seq, message.lease, turn, message.postponed)
        self._held[message.seq] = message
        return leased

    async def _dead_letter(self, message: LeasedMessage, cause: str) -> bool:
        moved = await self._call(lambda: self._broker.dead_letter(message, cause))
        if moved and message.result is None:
            self._counted(pending=-1, dead=cause)
        return moved

    def _message(self, one: Leased | Undelivered) -> LeasedMessage | None:
        message = (self._held if isinstance(one, Leased) else self._finished).get(one.seq)
        return message if message is not None and message.lease == one.lease else None

    def _take(self, leased: Leased) -> LeasedMessage | None:
        message = self._message(leased)
        if message is not None:
            del self._held[leased.seq]
        return message

    def _take_finished(self, result: Undelivered) -> LeasedMessage | None:
        message = None if result.sink else self._message(result)
        if message is not None:
            del self._finished[result.seq]
        return message

    async def _call(self, do: Callable[[], Awaitable[_Result]]) -> _Result:
        """Do something with the broker; a broken connection is made anew for a while."""
        deadline = time.monotonic() + self._patience
        while self._works:
            # Remembered from before the call: another caller may make the connection anew meanwhile.
            connection = self._connection
            try:
                return await do()
            except Unreachable as error:
                if time.monotonic() > deadline:
                    self._set_aside(error)
                else:
                    await self._connect_again(connection, deadline)
            except Refused as error:
                self._set_aside(error)
        raise QueueFailed("the broker cannot be used any more")

    async def _connect_again(self, connection: int, deadline: float) -> None:
        """Make the connection anew unless somebody has done so meanwhile."""
        # One at a time: ten calls that find the connection broken would make ten.
        async with self._connecting:
            while self._works and self._connection == connection:
                try:
                    await self._broker.connect()
                    self._connection += 1
                    self._leasing.ready.clear()  # of the connection before: it comes again
                except Unreachable as error:
                    if time.monotonic() > deadline:
                        self._set_aside(error)
                    await asyncio.sleep(_PAUSE)
                except Refused as error:
                    self._set_aside(error)

    def _set_aside(self, error: Exception) -> None:
        """Use the broker no more, until it is opened again."""
        self._works = False
        self._failed.set()
        if not self._said:
            self._said = True
            told = "the broker %s cannot be used: %s; it is tried again; turns of this process %s meanwhile"
            _log.error(told, self._shown, error, self._meanwhile)

    async def _keep_counting(self) -> None:
        while self._works:
            await asyncio.sleep(_COUNTED)
            # Whoever needs the connection sees to it.
            with contextlib.suppress(Unreachable, Refused):
                await self._count()

    async def _count(self) -> None:
        counts = await self._broker.totals()
        self._counts = replace(counts, waiting=self._parked.named(counts.waiting))

    def _counted(self, *, pending: int = 0, evaluated: int = 0, undelivered: int = 0, dead: str = "") -> None:
        """Enter what this process has done, until the broker's own counts come."""
        if (counts := self._counts) is None:
            return
        causes = dict(counts.dead)
        if dead:
            causes[dead] = causes.get(dead, 0) + 1
        # The broker's counts may hold some of it already; they come again within a second.
        pending, evaluated = max(0, counts.pending + pending), counts.evaluated + evaluated
        self._counts = replace(
            counts,
            accepted=pending + evaluated + sum(causes.values()),
            pending=pending,
            evaluated=evaluated,
            undelivered=max(0, counts.undelivered + undelivered),
            dead=causes,
        )
