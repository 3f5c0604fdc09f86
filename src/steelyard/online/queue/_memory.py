"""The queue in memory: a handful of selected turns between the inbox and the judge."""

from __future__ import annotations

import asyncio
import itertools
import math
from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import replace

from steelyard.errors import DeadCause
from steelyard.online.queue._inbox import Inbox
from steelyard.online.queue._protocol import Parking, QueueCounts, Stored
from steelyard.online.queue._turns import Closed, Leased, Selected, Undelivered
from steelyard.scores import Evaluation


class MemoryQueue:
    """A TurnQueue that lives and dies with the process.

    Turns wait in the inbox; here is only what is being judged or is next, so that they are selected as late
    as possible. Leases do not end, and nothing is kept for later: a turn whose judge cannot be reached ends
    as failed. What ends here ends in the inbox's ledger too.
    """

    durable = False
    left_behind = 0
    works = True
    lease_seconds = math.inf

    def __init__(self, inbox: Inbox, *, capacity: int) -> None:
        self._inbox = inbox
        self._capacity = capacity
        self._waiting: deque[Leased] = deque()
        self._held: dict[int, Leased] = {}
        self._finished: dict[int, Selected] = {}
        self._leases = itertools.count()
        self._changed = asyncio.Event()
        self._accepted = self._evaluated = 0
        self._dead: Counter[str] = Counter()

    async def open(self) -> None:
        """Nothing to open."""

    async def failed(self) -> None:
        """Never."""
        await asyncio.get_running_loop().create_future()

    async def room(self, most: int) -> int:
        # Small on purpose: turns wait in the inbox, where selection has not been paid for yet.
        while (room := self._capacity - len(self._waiting) - len(self._held)) < 1:
            await self._change()
        return min(room, most)

    async def put(self, turns: Sequence[Selected]) -> list[Stored]:
        # An id that is being judged would be judged twice; one that is through may come again.
        pending = {leased.turn.record.id for leased in (*self._waiting, *self._held.values())}
        stored: list[Stored] = []
        for turn in turns:
            if turn.record.id in pending:
                stored.append("known")
                continue
            pending.add(turn.record.id)
            self._accepted += 1
            self._waiting.append(Leased(self._accepted, "", turn))
            stored.append("new")
        self._changed.set()
        return stored

    async def lease(self, most: int) -> list[Leased | Undelivered]:
        while not self._waiting:
            await self._change()
        lease = str(next(self._leases))
        taken = [self._waiting.popleft() for _ in range(min(most, len(self._waiting)))]
        leased = [replace(one, lease=lease) for one in taken]
        self._held.update((one.seq, one) for one in leased)
        return [*leased]

    async def renew(self, held: Sequence[Leased | Undelivered]) -> None:
        """Leases do not end."""

    async def finish(self, leased: Leased, evaluation: Evaluation) -> Undelivered | None:
        if not self._give_up(leased):
            return None
        self._evaluated += 1
        self._finished[leased.seq] = leased.turn
        self._changed.set()
        return Undelivered(leased.seq, leased.lease, evaluation)

    async def postpone(self, leased: Leased, seconds: float) -> bool:
        """Never: memory keeps nothing for later."""
        return False

    async def dead_letter(self, leased: Leased, cause: DeadCause | str) -> bool:
        if not self._give_up(leased):
            return False
        self._dead[cause] += 1
        self._inbox.close_turn(Closed("dead", cause))
        self._changed.set()
        return True

    async def delivered(self, results: Sequence[Undelivered]) -> None:
        for result in results:
            if (turn := self._finished.pop(result.seq, None)) is not None:
                self._inbox.close_turn(Closed("evaluated", requeue=turn.requeue))
        self._changed.set()

    async def park(self, results: Sequence[Parking]) -> list[Parking]:
        """Nothing is kept for a sink: it has counted what it lost."""
        await self.delivered([result for result, _ in results])
        return []

    async def parked(self, sink: str, most: int) -> list[Undelivered]:
        """Nothing is kept for a sink."""
        return []

    async def release(self, held: Sequence[Leased | Undelivered]) -> None:
        back = [one for one in held if isinstance(one, Leased) and self._give_up(one)]
        self._waiting.extendleft(sorted(back, key=lambda one: -one.seq))
        self._changed.set()

    def counts(self) -> QueueCounts:
        return QueueCounts(
            accepted=self._accepted,
            pending=len(self._waiting) + len(self._held),
            evaluated=self._evaluated,
            dead=dict(self._dead),
            undelivered=len(self._finished),
            bytes=0,
        )

    async def close(self) -> None:
        """Nothing to close."""

    def _give_up(self, leased: Leased) -> bool:
        """End a lease; False where it was lost."""
        held = self._held.get(leased.seq)
        if held is None or held.lease != leased.lease:
            return False
        del self._held[leased.seq]
        return True

    async def _change(self) -> None:
        # In one loop nothing runs between these two lines, so that no change is missed.
        self._changed.clear()
        await self._changed.wait()
