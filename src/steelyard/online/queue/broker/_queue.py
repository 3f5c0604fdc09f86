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
from collections import defaultdict
from collections.abc import Callable, Collection, Coroutine, Sequence
from dataclasses import replace
from functools import partial, wraps
from typing import Any, ParamSpec, TypeVar

from steelyard._internal.logs import SafeLogger
from steelyard.errors import DeadCause
from steelyard.online.queue._protocol import (
    DeadLetter,
    Decide,
    Leasing,
    Parking,
    QueueCounts,
    QueueFailed,
    Stored,
    to_the_end,
)
from steelyard.online.queue._turns import (
    Leased,
    Selected,
    Undelivered,
    result_to_json,
    seen_from_dict,
    turn_from_json,
    turn_to_json,
)
from steelyard.online.queue.broker._broker import (
    COMING,
    PATIENCE,
    Broker,
    BrokerConnection,
    LeasedMessage,
    Outgoing,
    Refused,
    Unreachable,
    evaluation_of,
    is_token,
    key_of,
    packed,
    result_of,
    seen_of,
    unpacked,
)
from steelyard.online.queue.broker._ledger import BrokerLedger
from steelyard.scores import Evaluation, evaluation_from_json

_log = SafeLogger("steelyard.online")
_MOVING = 5.0  # without anything to move, after which all is taken to be moved
_AT_ONCE = 256
_MAX_ATTEMPTS = 5  # a turn that ends its worker each time must not end all of them one after the other
_Args = ParamSpec("_Args")
_Result = TypeVar("_Result")


def whole(
    method: Callable[_Args, Coroutine[Any, Any, _Result]],
) -> Callable[_Args, Coroutine[Any, Any, _Result]]:
    """Not broken off where its caller stops: what it has taken would be held until its lease ends.

    RabbitMQ's client closes its channel over a call that is cancelled, and what was held goes with it.
    """

    @wraps(method)
    async def to_its_end(*args: _Args.args, **kwargs: _Args.kwargs) -> _Result:
        return await to_the_end(method(*args, **kwargs), seconds=COMING)

    return to_its_end


class BrokerQueue:
    """A TurnQueue on a broker.

    Args:
        broker: The broker.
        shown: Its address as it may be logged; see `BrokerConnection`, as for `patience` and `meanwhile`.
    """

    durable = True
    left_behind = 0  # a broker keeps them for any machine, and this one does not know how many

    def __init__(
        self,
        broker: Broker,
        *,
        shown: str,
        patience: float = PATIENCE,
        meanwhile: str = "go through its memory",
    ) -> None:
        self._broker = broker
        self._connection = BrokerConnection(
            broker, shown=shown, patience=patience, meanwhile=meanwhile, anew=self._forget_ready
        )
        self._held: dict[int, LeasedMessage] = {}
        # By the sink for which a result waits, and by its number.
        self._results: dict[tuple[str, int], LeasedMessage] = {}
        # By sink; turns under none.
        self._leasing: defaultdict[str, Leasing[LeasedMessage]] = defaultdict(Leasing)
        self._leasing[""] = Leasing(ahead=True)
        self._watched: set[str] = set()
        self._counting: asyncio.Task[None] | None = None
        self._ledger = BrokerLedger(broker)

    @property
    def works(self) -> bool:
        return self._connection.works

    @property
    def settled(self) -> bool:
        return self._ledger.settled or not self.works

    @property
    def lease_seconds(self) -> float:
        return self._broker.lease_seconds

    def start(self) -> None:
        """No thread is needed."""

    async def open(self) -> None:
        await self._connection.open(self._ledger.ask)
        self._counting = asyncio.create_task(self._ledger.keep(lambda: self.works))

    async def failed(self) -> None:
        await self._connection.failed.wait()

    async def room(self, most: int) -> int:
        """All of them: the broker's own bound is what `put` holds turns against."""
        return most

    async def put(self, turns: Sequence[Selected]) -> list[Stored]:
        """Publish turns side by side; what is not confirmed is published again, with the same key."""
        # By place: equal turns in one batch are told apart by nothing else.
        outcomes: dict[int, Stored] = {}
        waiting: dict[int, Outgoing] = {}
        for place, turn in enumerate(turns):
            line, key = turn_to_json(turn), key_of(turn)
            if line is None:
                outcomes[place] = "broken"
            elif any(key == one.key for one in waiting.values()):
                outcomes[place] = "known"
            else:
                waiting[place] = Outgoing(key=key, body=packed(line))
        again = False

        async def publish() -> None:
            nonlocal again
            first, again = not again, True  # also where this raises: what was sent may be there
            answers = await self._broker.publish(list(waiting.values()))
            for place, stored in zip(list(waiting), answers, strict=True):
                if stored is not None:
                    # A turn that is known at the second try is the one of the first.
                    outcomes[place] = "new" if stored == "known" and not first else stored
                    del waiting[place]
            if waiting:
                raise Unreachable("it does not confirm what is published")

        while waiting:
            await self._connection.call(publish)
        stored = [outcomes[place] for place in range(len(turns))]
        self._ledger.enter(pending=stored.count("new"))
        return stored

    async def lease(self, most: int) -> list[Leased | Undelivered]:
        leased: list[Leased | Undelivered] = []
        for message in await self._connection.retried(
            lambda: self._leasing[""].take(most, self._broker.pull)
        ):
            try:
                leased += await self._taken(message)
            except QueueFailed:
                raise
            except Exception:  # noqa: BLE001 - RecursionError, AttributeError: a body may hold anything
                await self._dead_letter(message, "unreadable")
        return leased

    async def renew(self, held: Sequence[Leased | Undelivered]) -> None:
        own = [message for one in held if (message := self._message(one)) is not None]
        await self._connection.call(lambda: self._broker.extend(own + self._leasing[""].ready))

    @whole
    async def finish(self, leased: Leased, evaluation: Evaluation) -> Undelivered | None:
        message = self._take(leased)
        if message is None:
            return None
        if message.result is None:
            if not await self._connection.call(
                lambda: self._broker.keep_result(message, lambda: result_of(leased.turn, evaluation))
            ):
                return None
            self._ledger.enter(pending=-1, evaluated=1, undelivered=1)
        self._results["", leased.seq] = message
        return Undelivered(leased.seq, leased.lease, evaluation)

    @whole
    async def postpone(self, leased: Leased, seconds: float) -> bool:
        message = self._take(leased)
        if message is None:
            return False
        screened = replace(message, seen=seen_of(leased.turn))
        return await self._connection.call(lambda: self._broker.give_back([screened], seconds, postpone=True))

    async def dead_letter(self, leased: Leased, cause: DeadCause | str) -> bool:
        message = self._take(leased)
        return message is not None and await self._dead_letter(message, cause)

    @whole
    async def delivered(self, results: Sequence[Undelivered]) -> None:
        through = await self._acknowledge(results)
        self._ledger.enter(undelivered=-sum(not message.sink for message in through))

    async def _acknowledge(self, results: Sequence[Undelivered]) -> list[LeasedMessage]:
        """These results are through; returns those that this process held."""
        through = [message for result in results if (message := self._take(result)) is not None]
        if through:
            await self._connection.call(lambda: self._broker.acknowledge(through))
        return through

    @whole
    async def park(self, results: Sequence[Parking]) -> list[Parking]:
        back = [message for one, _ in results if one.sink and (message := self._take(one)) is not None]
        if back:
            await self._connection.call(lambda: self._broker.give_back(back, 0, postpone=False))
        own = [one for one in results if not one[0].sink and self._message(one[0]) is not None]
        if not own:
            return []
        parking = [
            Outgoing(
                key=str(result.seq),
                body=packed(result_to_json(result.evaluation)),
                sinks=[self._ledger.token(sink) for sink in sinks],
            )
            for result, sinks in own
        ]
        stored = await self._connection.call(lambda: self._broker.park(parking))
        # Acknowledged after they are stored: a crash in between delivers them twice, and not never.
        await self._acknowledge([one for (one, _), kept in zip(own, stored, strict=True) if kept])
        return [one for one, kept in zip(own, stored, strict=True) if not kept]

    async def parked(self, sink: str, most: int) -> list[Undelivered]:
        token, results = self._ledger.token(sink), list[Undelivered]()
        if token not in self._watched:
            await self.watch([sink])
        if self._ledger.counts is not None and not self._ledger.counts.waiting.get(sink):
            return []
        pull = partial(self._broker.pull, sink=token)
        for message in await self._connection.retried(lambda: self._leasing[token].take(most, pull)):
            try:
                evaluation = evaluation_from_json(unpacked(message.body))
            except Exception:  # noqa: BLE001 - a body may hold anything
                _log.error("a result that waits for a sink cannot be read; it is not delivered")
                await self._connection.call(partial(self._broker.acknowledge, [message]))
            else:
                self._results[sink, message.seq] = message
                results.append(Undelivered(message.seq, message.lease, evaluation, sink))
        return results

    @whole
    async def watch(self, sinks: Collection[str]) -> None:
        """Count what waits for these sinks; before `open`, from the first count on."""
        tokens = [self._ledger.token(sink) for sink in sinks]
        self._broker.watch(tokens)
        self._watched.update(tokens)
        if self.works:
            await self._connection.call(self._ledger.ask)

    async def move(self, sink: str, to: str) -> int:
        token, moved = sink if is_token(sink) else self._ledger.token(sink), 0
        until = time.monotonic() + _MOVING
        while True:
            messages = await self._connection.call(lambda: self._broker.pull(_AT_ONCE, sink=token))
            if not messages:
                await self._connection.call(self._ledger.ask)
                # A busy broker may have more than it hands over, and a worker that stops gives some back.
                waiting = self._ledger.counts.waiting if self._ledger.counts is not None else {}
                if time.monotonic() > until or not waiting.get(self._ledger.names.get(token, token)):
                    return moved
                continue
            until = time.monotonic() + _MOVING
            # NATS knows what it has stored by its key, and the numbers of turns are others.
            copies = [
                Outgoing(key=f"-{one.seq}", body=one.body, sinks=[self._ledger.token(to)]) for one in messages
            ]
            if to and not all(await self._connection.call(partial(self._broker.park, copies))):
                await self._connection.call(partial(self._broker.give_back, messages, 0, postpone=False))
                return moved
            await self._connection.call(partial(self._broker.acknowledge, messages))
            moved += len(messages)

    async def dead_letters(self, decide: Decide, most: int) -> list[DeadLetter]:
        letters = await self._connection.call(lambda: self._broker.dead_letters(decide, most))
        await self._connection.call(self._ledger.ask)
        return letters

    async def release(self, held: Sequence[Leased | Undelivered]) -> None:
        seen = {one.seq: seen_of(one.turn) for one in held if isinstance(one, Leased)}
        # All of them, also those that nobody has heard of: their caller was cancelled.
        messages = [
            replace(one, seen=seen.get(one.seq, one.seen))
            for one in (*self._held.values(), *self._results.values())
        ]
        self._held.clear()
        self._results.clear()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(COMING):
                for leasing in self._leasing.values():
                    messages += await leasing.left()
        if self._connection.works:
            # Without patience: nobody waits for a broker at the end, and leases end by themselves.
            with contextlib.suppress(Unreachable, Refused):
                messages += await self._broker.stop()
                await self._broker.give_back(messages, 0, postpone=False)

    def counts(self) -> QueueCounts | None:
        """The broker's ledger as of the last second, with what this process has done since, or at `close`."""
        return None if self._connection.failed.is_set() else self._ledger.counts

    async def close(self) -> None:
        if self._connection.works:
            # What was given back at the end is told, too; nobody waits for a broker that has just gone.
            with contextlib.suppress(Unreachable, Refused, TimeoutError):
                async with asyncio.timeout(1):
                    await self._ledger.ask()
        self._connection.works = False
        if self._counting is not None:
            self._counting.cancel()
            await asyncio.gather(self._counting, return_exceptions=True)
            self._counting = None
        self._held.clear()
        self._results.clear()
        self._forget_ready()
        await self._broker.close()

    async def _taken(self, message: LeasedMessage) -> list[Leased | Undelivered]:
        """What a message is for the worker; nothing for a turn that was tried too often, and is dead now."""
        # A result is there although the turn came again: only delivering it is left.
        if message.result:
            result = Undelivered(message.seq, message.lease, evaluation_of(message.result, message.body))
            self._results["", message.seq] = message
            return [result]
        if message.attempts > _MAX_ATTEMPTS:
            await self._dead_letter(message, "poison")
            return []
        turn = turn_from_json(unpacked(message.body))
        if message.seen:
            turn = replace(turn, seen=seen_from_dict(json.loads(message.seen), turn.record))
        self._held[message.seq] = message
        return [Leased(message.seq, message.lease, turn, message.postponed)]

    @whole
    async def _dead_letter(self, message: LeasedMessage, cause: str) -> bool:
        moved = await self._connection.call(lambda: self._broker.dead_letter(message, cause))
        if moved and message.result is None:
            self._ledger.enter(pending=-1, dead=cause)
        return moved

    def _message(self, one: Leased | Undelivered) -> LeasedMessage | None:
        """What this process holds of it; None where the lease was lost."""
        key = (one.sink, one.seq) if isinstance(one, Undelivered) else None
        message = self._held.get(one.seq) if key is None else self._results.get(key)
        return message if message is not None and message.lease == one.lease else None

    def _take(self, one: Leased | Undelivered) -> LeasedMessage | None:
        """The same, held no longer."""
        message = self._message(one)
        if message is not None and isinstance(one, Leased):
            del self._held[one.seq]
        elif message is not None and isinstance(one, Undelivered):
            del self._results[one.sink, one.seq]
        return message

    def _forget_ready(self) -> None:  # leased over a connection that has ended: it comes again
        self._leasing[""].ready.clear()
