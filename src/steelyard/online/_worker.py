"""The worker: what happens to turns in the background, from the inbox to the sinks."""

from __future__ import annotations

import asyncio
import contextlib
import logging

from steelyard._internal.warn_once import WarnOnce
from steelyard.online._intake import Intake
from steelyard.online._scoring import score, worth_waiting
from steelyard.online.config._options import MonitorOptions
from steelyard.online.delivery._delivery import Delivery
from steelyard.online.queue._feedback import Feedback
from steelyard.online.queue._inbox import Inbox
from steelyard.online.queue._memory import MemoryQueue
from steelyard.online.queue._protocol import QueueFailed, TurnQueue
from steelyard.online.queue._sqlite import SQLiteQueue
from steelyard.online.queue._turns import Leased, Undelivered
from steelyard.online.selection._budget import BudgetControl
from steelyard.recording import unrecorded
from steelyard.scores import Evaluation, Usage

_log = logging.getLogger("steelyard.online")
_FIRST_WAIT = 5.0
_LONGEST_WAIT = 600.0
_POSTPONED = 30


class Worker:
    """Moves turns into a queue, and sees each turn that it leases from there through to its end.

    The queue is in memory, or a spool. Where a spool fails, turns go through memory from then on.
    """

    def __init__(
        self, options: MonitorOptions, *, inbox: Inbox, delivery: Delivery, feedback: Feedback
    ) -> None:
        self._options = options
        self._delivery = delivery
        self._budget = BudgetControl(turns_per_minute=options.throttle or None, budget=options.budget)
        self._memory = MemoryQueue(inbox, capacity=options.concurrency)
        self._warn = WarnOnce(_log)
        self.spool = SQLiteQueue(options.spool) if options.spool else None
        self.intake = Intake(
            options,
            inbox=inbox,
            feedback=feedback,
            budget=self._budget,
            queue=self.spool or self._memory,
            fallback=self._memory,
        )

    @property
    def unfinished(self) -> int:
        """What this process has still to do in the spool: turns to judge and results to deliver."""
        judged_here = self._options.spool is not None and self._options.spool.evaluate
        counts = self.spool.counts() if self.spool is not None and judged_here else None
        return counts.pending + counts.undelivered if counts else 0

    def start(self) -> None:
        """Start the threads for blocking work; called where the loop's own thread is started.

        Raises:
            RuntimeError: If the interpreter refuses new threads.
        """
        self.intake.start()
        if self.spool is not None:
            self.spool.start()

    async def run(self) -> None:
        """Work until cancelled."""
        with unrecorded():
            try:
                async with asyncio.TaskGroup() as group:
                    if self.spool is not None:
                        with contextlib.suppress(QueueFailed):
                            await self.spool.open()
                        group.create_task(self._serve(self.spool))
                    group.create_task(self._serve(self._memory))
                    group.create_task(self.intake.run())
            finally:
                await self._close()

    async def _serve(self, queue: TurnQueue) -> None:
        """Judge what is in a queue until it fails."""
        held: dict[int, Leased | Undelivered] = {}
        elsewhere = queue is self.spool and self._options.spool and not self._options.spool.evaluate
        try:
            with contextlib.suppress(QueueFailed):
                if elsewhere:
                    await asyncio.get_running_loop().create_future()
                async with asyncio.TaskGroup() as group:
                    renewing = group.create_task(_renew(queue, held))
                    await self._judge(queue, held)
                    renewing.cancel()
        finally:
            with contextlib.suppress(QueueFailed):
                await queue.release(list(held.values()))
            await queue.close()

    async def _judge(self, queue: TurnQueue, held: dict[int, Leased | Undelivered]) -> None:
        """Lease turns and results as fast as they can be worked on; returns once the queue has failed."""
        tasks: set[asyncio.Task[None]] = set()
        try:
            while True:
                for leased in await queue.lease(self._options.concurrency - len(tasks)):
                    held[leased.seq] = leased
                    task = asyncio.create_task(self._see_through(queue, leased, held))
                    tasks.add(task)
                    task.add_done_callback(tasks.discard)
                if len(tasks) >= self._options.concurrency:
                    await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        except QueueFailed:
            await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _see_through(
        self, queue: TurnQueue, leased: Leased | Undelivered, held: dict[int, Leased | Undelivered]
    ) -> None:
        """Bring one turn to its end, whatever happens; one that is cancelled stays leased, to be released."""
        with contextlib.suppress(QueueFailed):
            result = leased if isinstance(leased, Undelivered) else await self._evaluate(queue, leased)
            if result is not None:
                held[leased.seq] = result
                await self._delivery.deliver(result.evaluation)
                await queue.delivered([result])
        held.pop(leased.seq, None)

    async def _evaluate(self, queue: TurnQueue, leased: Leased) -> Undelivered | None:
        """Judge a leased turn; its result, unless the turn goes back into the queue or cannot be judged."""
        turn, usage = leased.turn, Usage()
        try:
            evaluation = await score(
                self._options, turn.record, sampling_position=turn.sampling_position, rate=turn.rate
            )
            usage = evaluation.usage
        except Exception as error:  # noqa: BLE001 - users' metrics may raise anything
            kind = type(error).__name__
            self._warn(kind, "a turn could not be evaluated: %s", kind, exc_info=error)
            await queue.dead_letter(leased, kind)
            return None
        finally:
            self._budget.correct(turn.record.id, usage)
        if worth_waiting(evaluation) and leased.postponed < _POSTPONED:
            wait = min(_LONGEST_WAIT, _FIRST_WAIT * 2.0**leased.postponed)
            if await queue.postpone(leased, max(wait, evaluation.retry_after or 0.0)):
                return None
        return await self._finish(queue, leased, evaluation)

    async def _finish(self, queue: TurnQueue, leased: Leased, evaluation: Evaluation) -> Undelivered | None:
        try:
            return await queue.finish(leased, self._delivery.strip(evaluation))
        except QueueFailed:
            # The queue is gone, but what was paid for is not thrown away.
            await self._delivery.deliver(evaluation)
            raise

    async def _close(self) -> None:
        await self._delivery.close()
        for part in (self._options.judge, self._options.embedder):
            if part is not None:
                with contextlib.suppress(Exception):
                    await part.aclose()


async def _renew(queue: TurnQueue, held: dict[int, Leased | Undelivered]) -> None:
    with contextlib.suppress(QueueFailed):
        while True:
            await asyncio.sleep(min(queue.lease_seconds / 3, 3600.0))
            if held:
                await queue.renew(list(held.values()))
