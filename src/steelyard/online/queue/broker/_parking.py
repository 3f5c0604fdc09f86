"""What a `BrokerQueue` does about results that wait for a sink."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Protocol, TypeVar

from steelyard._internal.logs import SafeLogger
from steelyard.online.queue._in_flight import Leasing
from steelyard.online.queue._protocol import QueueCounts
from steelyard.online.queue._turns import Undelivered, result_to_json
from steelyard.online.queue.broker._broker import (
    LeasedMessage,
    Parked,
    Waiting,
    is_token,
    packed,
    token_of,
    unpacked,
)
from steelyard.scores import evaluation_from_json

_log = SafeLogger("steelyard.online")
_AT_ONCE = 256
_PATIENCE = 5.0
_Result = TypeVar("_Result")


class _Call(Protocol):
    async def __call__(self, do: Callable[[], Awaitable[_Result]], /) -> _Result: ...


class ParkedQueue:
    """Results that wait for a sink, and those of them that this process holds."""

    def __init__(self, parked: Parked, call: _Call) -> None:
        self._parked = parked
        self._call = call
        self._held: dict[tuple[str, int], LeasedMessage] = {}
        self._pulling: defaultdict[str, Leasing[LeasedMessage]] = defaultdict(Leasing)
        # By what the broker has for its name.
        self._sinks: dict[str, str] = {}
        self._watched: set[str] = set()

    def messages(self, results: Sequence[Undelivered]) -> list[LeasedMessage]:
        """Those of some results that this process still holds."""
        found = [self._held.get((result.sink, result.seq)) for result in results]
        pairs = zip(found, results, strict=True)
        return [message for message, result in pairs if message is not None and message.lease == result.lease]

    async def put(self, results: Sequence[tuple[LeasedMessage, Undelivered, Collection[str]]]) -> list[bool]:
        """Keep results for sinks; False where one does not fit."""
        if not results:
            return []
        waiting = [
            Waiting(
                message=message,
                body=packed(result_to_json(result.evaluation)),
                sinks=[self._token(sink) for sink in sinks],
            )
            for message, result, sinks in results
        ]
        return await self._call(lambda: self._parked.put(waiting))

    async def lease(self, sink: str, most: int, counts: QueueCounts | None) -> list[Undelivered]:
        """Lease the oldest results that are kept for a sink, unless the latest counts show none."""
        if token_of(sink) not in self._watched:
            await self.watch([sink])
        elif counts is not None and not counts.waiting.get(sink):
            return []
        token = token_of(sink)
        results = []
        pull = partial(self._parked.pull, token)
        for message in await self._call(lambda: self._pulling[token].take(most, pull)):
            self._held[sink, message.seq] = message
            try:
                evaluation = evaluation_from_json(unpacked(message.body))
            except Exception:  # noqa: BLE001 - a body may hold anything
                _log.error("a result that waits for a sink cannot be read; it is not delivered")
                await self._call(partial(self._parked.acknowledge, [message]))
            else:
                results.append(Undelivered(message.seq, message.lease, evaluation, sink))
        return results

    async def watch(self, sinks: Collection[str]) -> None:
        """Count what waits for these sinks."""
        tokens = [self._token(sink) for sink in sinks]
        await self._call(lambda: self._parked.watch(tokens))
        self._watched.update(tokens)

    async def acknowledge(self, results: Sequence[Undelivered]) -> None:
        """Their sink has these."""
        if messages := self._taken(results):
            await self._call(lambda: self._parked.acknowledge(messages))

    async def give_back(self, results: Sequence[Undelivered]) -> None:
        """Their sink does not have these."""
        if messages := self._taken(results):
            await self._call(lambda: self._parked.give_back(messages))

    async def release(self) -> None:
        """Give back what was just coming, because this process stops; without patience."""
        for pulling in self._pulling.values():
            await self._parked.give_back(await pulling.left())

    async def move(self, sink: str, to: str) -> int:
        """Have the results that wait for a sink wait for another, or for none; those that nobody holds."""
        token, moved = sink if is_token(sink) else self._token(sink), 0
        until = time.monotonic() + _PATIENCE
        while True:
            messages = await self._call(lambda: self._parked.pull(token, _AT_ONCE))
            if not messages:
                # A busy broker may have more than it hands over, and a worker that stops gives some back.
                if time.monotonic() > until or not (await self._call(self._parked.counts)).get(token):
                    break
                continue
            until = time.monotonic() + _PATIENCE
            if to:
                # NATS knows what it has stored by these numbers, and those of turns are others.
                others = [replace(message, seq=-message.seq) for message in messages]
                copies = [Waiting(message=one, body=one.body, sinks=[self._token(to)]) for one in others]
                if not all(await self._call(partial(self._parked.put, copies))):
                    await self._call(partial(self._parked.give_back, messages))
                    break
            await self._call(partial(self._parked.acknowledge, messages))
            moved += len(messages)
        return moved

    def named(self, waiting: Mapping[str, int]) -> dict[str, int]:
        """Counts by sink, with their names where this process knows them."""
        return {self._sinks.get(token, token): count for token, count in waiting.items()}

    def clear(self) -> None:
        """Forget what is held."""
        self._held.clear()

    def _token(self, sink: str) -> str:
        token = token_of(sink)
        self._sinks[token] = sink
        return token

    def _taken(self, results: Sequence[Undelivered]) -> list[LeasedMessage]:
        messages = self.messages(results)
        for result in results:
            self._held.pop((result.sink, result.seq), None)
        return messages
