"""The worker: what happens to turns in the background, from the queue to the sinks."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections import deque

from steelyard.online._masking import Masker
from steelyard.online._prepare import Preparer
from steelyard.online._scoring import score
from steelyard.online._turn_states import Closed, Selected
from steelyard.online.config._options import MonitorOptions
from steelyard.online.delivery._delivery import Delivery
from steelyard.online.queue._feedback import Feedback
from steelyard.online.queue._memory import MemoryQueue, Queued
from steelyard.online.queue._spooling import Spooling
from steelyard.recording import unrecorded

__all__ = ["Worker"]

_log = logging.getLogger("steelyard.online")
_LOOK = 0.02
_LINGER = 5.0
_BATCH = 256


class Worker:
    """Takes turns from the intake and sees each of them through to its end.

    Without a spool a picked turn is judged right away. With one it is stored first, many in one transaction,
    and judged when it is claimed from there, in this process or another. Where the spool fails, turns are
    judged right away from then on.
    """

    def __init__(
        self, plan: MonitorOptions, *, intake: MemoryQueue, delivery: Delivery, feedback: Feedback
    ) -> None:
        self._plan = plan
        self._intake = intake
        self._delivery = delivery
        self._feedback = feedback
        self._pace = plan.pace()
        self._masker = Masker(plan.mask, timeout=plan.mask_timeout)
        self._preparer = Preparer(
            selection=plan.selection,
            metrics=plan.metrics,
            masker=self._masker,
            pace=self._pace,
            feedback=feedback,
            keep=plan.spool is None,
        )
        self._news: asyncio.Event | None = None
        self._handed_back: deque[Selected] = deque()
        self._said: set[str] = set()
        self.spooling = Spooling(plan, delivery=delivery, pace=self._pace) if plan.spool else None

    def nudge(self) -> None:
        """There is news in the intake; called in the loop."""
        if self._news is not None:
            self._news.set()

    def start(self) -> None:
        """Start the threads for blocking work; called where the loop's own thread is started.

        Raises:
            RuntimeError: If the interpreter refuses new threads.
        """
        self._masker.start()
        if self.spooling is not None:
            self.spooling.start()

    async def run(self) -> None:
        """Work until cancelled."""
        self._news = asyncio.Event()
        try:
            if self.spooling is not None:
                await self._work_with_spool(self.spooling)
            await self._judge_at_once()
        finally:
            self._masker.close()
            with unrecorded():
                await self._close()

    async def _work_with_spool(self, spooling: Spooling) -> None:
        try:
            with unrecorded():
                await spooling.run(self._fill_spool)
        except Exception:  # noqa: BLE001 - whatever it is, turns must still be judged
            _log.exception("the spool failed unexpectedly; turns are kept in memory from now on")

    async def _fill_spool(self) -> None:
        """Store what is picked until the spool fails, and then see to what it did not take."""
        assert self.spooling is not None
        while True:
            batch = await self._next(_BATCH)
            ready = [turn for turn in await self._prepare_all(batch) if isinstance(turn, Selected)]
            if not ready:
                continue
            stored = await self.spooling.store(ready)
            if stored is None:
                self._handed_back.extend(ready)
                return
            self._intake.settle("spooled", count=stored.count("new"))
            self._intake.settle("skipped", "duplicate", count=stored.count("known"))
            self._intake.settle("skipped", "spool_full", count=stored.count("full"))
            self._intake.settle("dead", "unstorable", count=stored.count("broken"))

    async def _prepare_all(self, batch: list[Queued]) -> list[Selected | Closed]:
        if self._plan.mask is None:
            return [await self._prepare(item) for item in batch]
        return await asyncio.gather(*map(self._prepare, batch))

    async def _judge_at_once(self) -> None:
        slots = asyncio.Semaphore(self._plan.concurrency)
        tasks: set[asyncio.Task[None]] = set()
        try:
            while True:
                await slots.acquire()
                turn = self._handed_back.popleft() if self._handed_back else (await self._next(1))[0]
                task = asyncio.create_task(self._see_through(turn))
                tasks.add(task)
                task.add_done_callback(tasks.discard)
                task.add_done_callback(lambda _: slots.release())
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _next(self, most: int) -> list[Queued]:
        """The next turns. Looks in every 20 ms for some seconds, then sleeps until it is woken."""
        assert self._news is not None
        idle_since = time.monotonic()
        while not (taken := self._intake.take(most)):
            if time.monotonic() - idle_since < _LINGER:
                await asyncio.sleep(_LOOK)
                continue
            self._news.clear()
            if self._intake.sleep():
                await self._news.wait()
        return taken

    async def _prepare(self, item: Queued) -> Selected | Closed:
        """Prepare a turn; where it ends here, that is entered into the ledger."""
        try:
            with unrecorded():
                turn = await self._preparer.prepare(item)
        except Exception as error:  # noqa: BLE001 - users' drafts and rules may raise anything
            turn = self._died(error)
        if isinstance(turn, Closed):
            self._settle(turn)
        return turn

    async def _see_through(self, item: Queued | Selected) -> None:
        """Bring one turn to its final state, whatever happens; a cancelled one stays pending."""
        turn = item if isinstance(item, Selected) else await self._prepare(item)
        if isinstance(turn, Closed):
            return
        try:
            with unrecorded():
                evaluation = await score(self._plan, turn.record, place=turn.place, rate=turn.rate)
                self._pace.correct(turn.reservation, evaluation.usage)
                await self._delivery.deliver(evaluation)
            final = Closed("evaluated", again=turn.again)
        except Exception as error:  # noqa: BLE001 - users' metrics may raise anything
            final = self._died(error)
        self._settle(final)

    def _settle(self, final: Closed) -> None:
        self._intake.settle(final.state, final.reason)
        if final.again is not None and (kept := self._feedback.keep(final.again, final.state)) is not None:
            self._intake.revive(kept.item, kept.settled)

    def _died(self, error: Exception) -> Closed:
        kind = type(error).__name__
        if kind not in self._said:
            self._said.add(kind)
            _log.warning("a turn could not be evaluated; said once for %s", kind, exc_info=error)
        return Closed("dead", kind)

    async def _close(self) -> None:
        await self._delivery.close()
        for part in (self._plan.judge, self._plan.embedder):
            if part is not None:
                with contextlib.suppress(Exception):
                    await part.aclose()
