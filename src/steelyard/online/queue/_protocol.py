"""The queue between selection and judging: one Protocol, and one worker that works on any of its kinds.

    put -> waiting --lease--> leased --finish-----> undelivered --delivered--> gone
              ^                 |  `--dead_letter-> gone
              `-postpone, release, the end of a lease     undelivered --park--> parked for a sink --parked--+
                                                                                  ^                         |
                                                                                  `--park-- undelivered <---'

Every call may be answered over a network, so all but the counts are coroutines. Whoever implements it owes:
at least one delivery of each turn that `put` called new; no two results for one turn, since `finish` answers
None to everybody who has lost the lease; and `accepted = pending + evaluated + dead` at every moment.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import math
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Collection, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Generic, Literal, Protocol, TypeVar

from steelyard._internal.threads import take_note
from steelyard.errors import DeadCause, SteelyardError
from steelyard.online.queue._inbox import Inbox
from steelyard.online.queue._turns import Closed, Leased, Selected, Undelivered
from steelyard.scores import Evaluation

_Found = TypeVar("_Found")
_AHEAD = 4


class Leasing(Generic[_Found]):
    """Makes leases in tasks of their own; what comes when its caller is gone is for the next, or `left`.

    A lease that is cancelled itself may have been made already, and nobody would hear of it until it ends;
    RabbitMQ's client even closes its channel over a call that is cancelled.

    Args:
        ahead: Whether a quarter more is leased than was ever asked for: asking costs as much for several as
            for one.
    """

    def __init__(self, *, ahead: bool = False) -> None:
        self.ready: list[_Found] = []
        """Leased, and not handed out yet."""
        self._ahead = ahead
        self._most = 0
        self._coming: asyncio.Task[list[_Found]] | None = None

    async def take(
        self, most: int, lease: Callable[[int], Coroutine[Any, Any, list[_Found]]]
    ) -> list[_Found]:
        """What is ready, else what `lease` brings; raises what that raises. For one caller at a time."""
        self._most = max(self._most, most)
        if not self.ready:
            if self._coming is None:
                more = self._most // _AHEAD if self._ahead else 0
                self._coming = asyncio.create_task(lease(most + more))
            await asyncio.wait([self._coming])
            came, self._coming = self._coming, None
            self.ready = came.result()
        taken, self.ready = self.ready[:most], self.ready[most:]
        return taken

    async def left(self) -> list[_Found]:
        """What was not handed out, and what is just coming."""
        if self._coming is not None:
            await asyncio.wait({self._coming})
            came, self._coming = self._coming, None
            with contextlib.suppress(Exception):
                self.ready += came.result()
        left, self.ready = self.ready, []
        return left


def _looked_at(work: Awaitable[_Found]) -> asyncio.Future[_Found]:
    """A task that whoever is cancelled leaves alone, and does not ask why it failed."""
    task = asyncio.ensure_future(work)
    task.add_done_callback(take_note)
    return task


async def to_the_end(work: Awaitable[_Found], *, seconds: float) -> _Found:
    """The result of what is not broken off: whoever is cancelled waits so long for its end first."""
    task = _looked_at(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait([task], timeout=seconds)
        raise


async def broken_off(work: Awaitable[_Found], *, seconds: float) -> _Found:
    """The result of work by a client that may lose a cancellation: whoever is cancelled ends all the same.

    `asyncio.wait_for` loses one before Python 3.12 where the answer comes at the same moment.
    """
    task = _looked_at(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        task.cancel()
        await asyncio.wait({task}, timeout=seconds)
        raise


Parking = tuple[Undelivered, Collection[str]]
"""A result, and the sinks that do not have it."""
Stored = Literal["new", "known", "full", "broken"]
"""What became of a turn that was put in: stored, there before by its record id, refused for its size, or
impossible to write down."""
Fate = Literal["keep", "replay", "drop"]
"""What becomes of a dead letter: `replay` puts its turn into the queue again."""


class QueueFailed(SteelyardError):
    """The queue cannot be used any more; what it holds is safe there or lost, and new turns go elsewhere."""


@dataclass(frozen=True, kw_only=True, slots=True)
class QueueCounts:
    """A queue's own ledger: accepted = pending + evaluated + dead. A stored queue counts over all processes
    and restarts.
    """  # noqa: D205 - the equation is the summary

    accepted: int
    """Turns put in."""
    pending: int
    """Waiting or leased."""
    evaluated: int
    """Judged."""
    dead: Mapping[str, int]
    """Given up, by cause."""
    undelivered: int
    """Of the evaluated ones, those that the sinks do not have yet."""
    bytes: int
    """Size of what is pending; 0 where the queue does not count it."""
    waiting: Mapping[str, int] = field(default_factory=dict)
    """By sink: results that are kept for it because it did not take them."""


class TurnQueue(Protocol):
    """Selected turns until they are judged and their results delivered.

    All calls come from one event loop. Each but `counts` may raise `QueueFailed`, and does so at every call
    once it has, until `open` succeeds.
    """

    @property
    def durable(self) -> bool:
        """Whether turns outlive the process; its ledger then counts them as `spooled` once they are put."""

    @property
    def works(self) -> bool:
        """Whether it is open and has not failed."""

    @property
    def settled(self) -> bool:
        """Whether `counts` may be believed where they say that nothing is left."""

    @property
    def left_behind(self) -> int:
        """Turns and results that cannot be reached since it failed, as far as that is known."""

    @property
    def lease_seconds(self) -> float:
        """How long a lease holds without `renew`; infinite where leases do not end."""

    async def open(self) -> None:
        """Connect, or open the file. Called first, and again once the queue has failed."""

    async def failed(self) -> None:
        """Wait until the queue fails, for those who only put turns in."""

    async def room(self, most: int) -> int:
        """Wait until turns fit; returns how many, at most so many."""

    async def put(self, turns: Sequence[Selected]) -> list[Stored]:
        """Put turns in, all at once; says for each what became of it. Does not wait for room."""

    async def lease(self, most: int) -> list[Leased | Undelivered]:
        """Lease the oldest turns that are due, and results left behind by processes that ended.

        Waits a while for some if there are none; may return none.
        """

    async def renew(self, held: Sequence[Leased | Undelivered]) -> None:
        """Hold on to leases for another `lease_seconds`."""

    async def finish(self, leased: Leased, evaluation: Evaluation) -> Undelivered | None:
        """Store a result and end its turn, in one step; None where the lease was lost."""

    async def postpone(self, leased: Leased, seconds: float) -> bool:
        """Give a turn back with what the screen said, due later; False if the lease is lost or none waits."""

    async def dead_letter(self, leased: Leased, cause: DeadCause | str) -> bool:
        """End a turn that cannot be evaluated; False where the lease was lost."""

    async def delivered(self, results: Sequence[Undelivered]) -> None:
        """The sinks have these results; of a parked one, its sink has it."""

    async def park(self, results: Sequence[Parking]) -> list[Parking]:
        """Keep results for the sinks that do not have them, and give up their leases.

        Returns:
            Those that do not fit; this process still holds them.
        """

    async def parked(self, sink: str, most: int) -> list[Undelivered]:
        """Lease the oldest results that are kept for a sink; does not wait."""

    async def release(self, held: Sequence[Leased | Undelivered]) -> None:
        """Give back what is held, and what was just being leased, because this process stops."""

    def counts(self) -> QueueCounts | None:
        """The ledger now, or at `close`, from any thread; None while the queue cannot be read."""

    async def close(self) -> None:
        """Let go of the file or connection; waits for calls under way."""


@dataclass(frozen=True, kw_only=True, slots=True)
class DeadLetter:
    """A turn that could not be evaluated."""

    record_id: str
    """Its record; empty where it cannot be read."""
    cause: str
    """Why it was given up."""
    attempts: int
    """How often it had been leased."""


Decide = Callable[[DeadLetter], Fate]


class MemoryQueue:
    """A TurnQueue that lives and dies with the process.

    Turns wait in the inbox; here is only what is being judged or is next, so that they are selected as late
    as possible. Leases do not end, and nothing is kept for later: a turn whose judge cannot be reached ends
    as failed. What ends here ends in the inbox's ledger too.
    """

    durable = False
    settled = True
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
        await self.delivered([result for result, _ in results])
        return []

    async def parked(self, sink: str, most: int) -> list[Undelivered]:
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
