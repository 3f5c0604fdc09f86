"""From the inbox to the queue: turns are taken, prepared, and put where they wait to be judged."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Mapping

from steelyard._internal.logs import SafeLogger, WarnOnce
from steelyard._internal.text import error_place
from steelyard.online._budget import BudgetControl
from steelyard.online._options import MonitorOptions
from steelyard.online._prepare import Masker, Preparer
from steelyard.online.queue._inbox import Inbox
from steelyard.online.queue._protocol import QueueFailed, Stored, TurnQueue, to_the_end
from steelyard.online.queue._turns import Closed, Feedback, FinalState, Queued, Selected
from steelyard.recording import unrecorded

_log = SafeLogger("steelyard.online")
_LONGEST_LOOK = 0.16  # a thousand Monitors that look fifty times a second would take a core
_LOOK = 0.02  # looking in is cheaper for the host than waking the loop at every turn
_LINGER = 5.0  # traffic pauses; after this long it has ended, and the thread sleeps
# So many are stored in one transaction, at most.
_BATCH = 256
_COMMITS = 5.0  # how long who is cancelled waits for turns that are being stored
_REFUSED: Mapping[Stored, tuple[FinalState, str]] = {
    "known": ("skipped", "duplicate"),
    "full": ("skipped", ""),
    "broken": ("dead", "unstorable"),
}


class Intake:
    """Moves turns from the inbox into a queue, and into another one once the first has failed.

    Args:
        options: The Monitor's.
        inbox: Where turns come from; its ledger hears of those that end here.
        feedback: What users said.
        budget: What is set aside for turns that are put into the queue.
        queue: Where turns go.
        fallback: Where they go when that has failed; a file also takes what that has no room for. Without
            one they wait in the inbox.
    """

    def __init__(
        self,
        options: MonitorOptions,
        *,
        inbox: Inbox,
        feedback: Feedback,
        budget: BudgetControl,
        queue: TurnQueue,
        fallback: TurnQueue | None,
    ) -> None:
        self._inbox = inbox
        self._budget = budget
        self._queue = queue
        self._fallback = fallback
        self._masker = Masker(options.mask, timeout=options.mask_timeout)
        self._preparer = Preparer(options, masker=self._masker, budget=budget, feedback=feedback)
        self._elsewhere = not options.judges
        self._full = "queue_unavailable" if fallback is not None and fallback.durable else "spool_full"
        # Turns wait for their masks side by side, so that one slow call holds up no other turn.
        # Without a mask nothing waits, and turns keep their order.
        self._lanes = 1 if options.mask is None else options.concurrency
        # Turns are taken by one at a time, so that each batch is as full as it can be.
        self._turnstile = asyncio.Lock()
        self._news = asyncio.Event()
        self._warn = WarnOnce(_log)

    def nudge(self) -> None:
        """There is news in the inbox; called in the loop."""
        self._news.set()

    def start(self) -> None:
        """Start the mask's threads; called where the loop's own thread is started."""
        self._masker.start()

    async def run(self) -> None:
        try:
            await asyncio.gather(*(self._work() for _ in range(self._lanes)))
        finally:
            self._masker.close()

    async def _work(self) -> None:
        while True:
            async with self._turnstile:
                batch = await self._next(await self._room())
            # By identity: equal turns may be in one batch, and a Record is not hashable.
            unsettled = {id(item): item for item in batch}
            picked: list[Selected] = []
            try:
                await self._prepare_all(batch, unsettled, picked)
                if picked:
                    # A transaction commits although nobody waits for it any more; its turns would be counted
                    # as given up.
                    await to_the_end(self._put(picked, unsettled), seconds=_COMMITS)
            finally:
                # Cancelled, at the end of the program or to begin anew, or there was no queue to put them
                # into: the turns come again.
                for turn in picked:
                    self._preparer.undo(turn.record.id)
                self._inbox.put_back([*unsettled.values()])

    async def _room(self) -> int:
        """Wait until turns fit somewhere; returns how many."""
        while True:
            queue = next(
                (one for one in (self._queue, self._fallback) if one is not None and one.works), None
            )
            if queue is not None:
                self._inbox.full_because = "queue_full"
                with contextlib.suppress(QueueFailed):
                    return await queue.room(_BATCH)
            else:
                # Turns wait in the inbox, within its bounds: nobody here may judge them.
                self._inbox.full_because = "queue_unavailable"
            await asyncio.sleep(_LOOK)

    async def _next(self, most: int) -> list[Queued]:
        """The next turns. Looks in ever less often for some seconds, then sleeps until it is woken."""
        idle_since, pause = time.monotonic(), _LOOK
        while not (taken := self._inbox.take(most)):
            if time.monotonic() - idle_since < _LINGER:
                await asyncio.sleep(pause)
                pause = min(2 * pause, _LONGEST_LOOK)
                continue
            # Cleared before asking, so that a turn which comes in between is not missed.
            self._news.clear()
            if self._inbox.sleep():
                await self._news.wait()
        return taken

    async def _prepare_all(
        self, batch: list[Queued], unsettled: dict[int, Queued], picked: list[Selected]
    ) -> None:
        if self._lanes > 1:
            await asyncio.gather(*(self._prepare(item, unsettled, picked) for item in batch))
            return
        for item in batch:
            await self._prepare(item, unsettled, picked)

    async def _prepare(self, item: Queued, unsettled: dict[int, Queued], picked: list[Selected]) -> None:
        """Prepare a turn; where it ends here, that is entered into the ledger."""
        turn: Selected | Closed
        try:
            with unrecorded():
                turn = await self._preparer.prepare(item)
        # A rule or a mask of the user's may raise CancelledError, which ends its turn and not this task.
        except BaseException as error:
            if _is_asked_to_end(error):
                raise
            turn = Closed("dead", type(error).__name__)
            self._warn(turn.reason, "a turn could not be prepared for evaluation: %s", error_place(error))
        if isinstance(turn, Selected):
            picked.append(turn)
            return
        del unsettled[id(item)]
        self._inbox.close_turn(turn)
        # Outside of the inbox's lock: a user's function may take its time, or submit a turn.
        self._inbox.decided(item.turn, turn.reason)

    async def _put(self, turns: list[Selected], unsettled: dict[int, Queued]) -> None:
        """Store turns in the first queue that takes them, and strike them off both lists."""
        for queue in (self._queue, self._fallback):
            if queue is not None and queue.works:
                with contextlib.suppress(QueueFailed):
                    stored = await queue.put(turns)
                    if queue is self._queue and "full" in stored:
                        stored = await self._put_beside(turns, stored)
                    self._account(turns, stored, durable=queue.durable)
                    turns.clear()
                    unsettled.clear()
                    return

    async def _put_beside(self, turns: list[Selected], stored: list[Stored]) -> list[Stored]:
        """Keep what a broker has no room for in the file beside it, if there is one."""
        file = self._fallback
        if file is None or not file.durable or not file.works:
            return stored
        full = [place for place, outcome in enumerate(stored) if outcome == "full"]
        with contextlib.suppress(QueueFailed):
            kept = dict(zip(full, await file.put([turns[place] for place in full]), strict=True))
            return [kept.get(place, outcome) for place, outcome in enumerate(stored)]
        return stored

    def _account(self, turns: list[Selected], stored: list[Stored], *, durable: bool) -> None:
        for turn, outcome in zip(turns, stored, strict=True):
            if outcome != "new":
                state, reason = _REFUSED[outcome]
                reason = reason or self._full
                self._budget.release(turn.record.id)
                self._inbox.settle(state, reason)
                self._inbox.decided(turn.record, reason)
            elif durable:
                # Another process may judge it, and nobody here would hear what it cost.
                self._budget.hand_over(turn.record.id)
                if self._elsewhere:
                    self._inbox.decided(turn.record, "spooled")
        if durable:
            self._inbox.settle("spooled", count=stored.count("new"))


def _is_asked_to_end(error: BaseException) -> bool:
    """Whether this task was cancelled, rather than a user's code raising CancelledError."""
    task = asyncio.current_task()
    return isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling() > 0
