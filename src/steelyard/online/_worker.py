"""The worker: what happens to turns in the background, from the inbox to the sinks."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import replace
from functools import partial

from steelyard._internal.logs import SafeLogger, WarnOnce
from steelyard._internal.text import error_place
from steelyard._internal.threads import leave
from steelyard.diagnosis import experiment, laboratory_of
from steelyard.engine import evaluate_one
from steelyard.errors import TRANSIENT_CAUSES
from steelyard.online._budget import BudgetControl
from steelyard.online._canaries import canaries_of
from steelyard.online._delivery import Delivery, Outbox
from steelyard.online._intake import Intake
from steelyard.online._options import MonitorOptions
from steelyard.online._prepare import Baselines
from steelyard.online._screening import Screening, cut_off, joined
from steelyard.online.queue._inbox import Inbox
from steelyard.online.queue._open import Fallback, open_queue
from steelyard.online.queue._protocol import MemoryQueue, QueueFailed, TurnQueue
from steelyard.online.queue._turns import Feedback, Leased, Seen, Selected, Undelivered
from steelyard.record import Record, clean
from steelyard.recording import unrecorded
from steelyard.scores import Evaluation

_log = SafeLogger("steelyard.online")
_GRACE = 5.0  # a judge's own deadline comes first, so that its error is the one that is told
_FIRST_WAIT = 5.0  # doubled each time: most outages of a judge pass in seconds
_LONGEST_WAIT = 600.0  # so that turns go on within ten minutes after an outage of any length
_POSTPONED = 30  # with the waits above this is about four hours; then the turn's failure is its result
# A full disk or a broker that restarts works again within seconds, or within hours.
_FIRST_PAUSE = 0.5
_LONGEST_PAUSE = 30.0


class Worker:
    """Moves turns into a queue, and sees each turn that it leases from there through to its end.

    The queue is in memory, or a spool: a file or a broker. Where a spool fails, turns go through memory until
    it works again.
    """

    def __init__(
        self, options: MonitorOptions, *, inbox: Inbox, delivery: Delivery, feedback: Feedback
    ) -> None:
        self._options = options
        self._delivery = delivery
        self._budget = BudgetControl(
            turns_per_minute=options.throttle or None, budget=options.budget, shared=options.spool is not None
        )
        self._inbox = inbox
        self._memory = MemoryQueue(inbox, capacity=options.concurrency)
        self._warn = WarnOnce(_log)
        self._baselines = Baselines(options.metrics, options.sinks)
        self._outboxes: dict[TurnQueue, Outbox] = {}
        self._judges = options.judges
        self.canaries = canaries_of(options) if self._judges else None
        self.screening = Screening(options) if self._judges and options.screened else None
        # Where another process judges, MonitorOptions refuses experiments.
        self.laboratory = laboratory_of(options.experiments, options.sinks, is_ended=lambda: inbox.closed)
        self.spool = open_queue(options.spool) if options.spool else None
        beside = options.spool.beside if options.spool else None
        self.fallback = Fallback(beside, self.spool) if beside and self.spool else None
        self._opening = False
        self.intake = Intake(
            options,
            inbox=inbox,
            feedback=feedback,
            budget=self._budget,
            queue=self.spool or self._memory,
            fallback=self.fallback.file if self.fallback else self._memory if self._judges else None,
        )

    @property
    def unfinished(self) -> int:
        """What this process has still to do in the spool: turns to judge and results to deliver.

        One while the spool is being opened, since nobody knows yet what is in it.
        """
        if self._judged is None:
            return 0
        opening = self._opening
        counts = self._judged.counts()
        beside = self.fallback.file.counts() if self.fallback else None
        there = counts.pending + counts.undelivered if counts else int(opening)
        return there + (beside.pending if beside else 0) or int(not self._judged.settled)

    @property
    def left_behind(self) -> int:
        """What this process would have to do in a spool that has failed; nobody need wait for it."""
        return 0 if self._judged is None or self._judged.works else self._judged.left_behind

    @property
    def _judged(self) -> TurnQueue | None:
        """The spool, where this process judges what is in it."""
        return self.spool if self._judges else None

    def start(self) -> None:
        """Start the threads for blocking work; called where the loop's own thread is started."""
        self.intake.start()
        self._delivery.start()
        if self.spool is not None and self._options.spool is not None:
            self.spool.start()
            if self.fallback is not None:
                self.fallback.file.start()
            self._opening = True
            judges = "judges them, too" if self._judges else "does not judge them: steelyard worker does"
            _log.info("turns go into %s; this process %s", self._options.spool.shown, judges)

    async def run(self) -> None:
        """Work until cancelled. It may be run again, and then goes on with what has not ended."""
        # What a recorded chain does as a judge is not a turn of the application.
        with unrecorded():
            try:
                async with asyncio.TaskGroup() as group:
                    if self.fallback is not None:
                        with contextlib.suppress(QueueFailed):
                            await self.fallback.file.open()
                        group.create_task(_again_and_again(self.fallback.file, self.fallback.serve))
                    if self.spool is not None:
                        try:
                            with contextlib.suppress(QueueFailed):
                                await self.spool.watch([writer.key for writer in self._delivery.writers])
                                await self.spool.open()
                        # Also where opening was cancelled, or `flush` would wait for it.
                        finally:
                            self._opening = False
                        group.create_task(_again_and_again(self.spool, partial(self._serve, self.spool)))
                    # Memory is served at all times: turns go through it from the moment a spool fails.
                    if self._judges:
                        group.create_task(self._serve(self._memory))
                    group.create_task(self.intake.run())
                    if self.canaries is not None:
                        group.create_task(self.canaries.run())
            finally:
                await self._close()

    async def _serve(self, queue: TurnQueue) -> None:
        """Judge what is in a queue until it fails; if another process judges, only hold it open."""
        if not self._judges:
            try:
                await queue.failed()
            finally:
                await queue.close()
            return
        outbox = self._outboxes.setdefault(queue, Outbox(queue, self._delivery))
        try:
            with contextlib.suppress(QueueFailed):
                async with asyncio.TaskGroup() as group:
                    helper = group.create_task(outbox.run())
                    await self._judge(queue, outbox)
                    helper.cancel()
        finally:
            await outbox.give_back()
            await queue.close()

    async def _judge(self, queue: TurnQueue, outbox: Outbox) -> None:
        """Lease turns and results as fast as they can be worked on; returns once the queue has failed."""
        tasks: set[asyncio.Task[None]] = set()
        ending = asyncio.Event()
        try:
            while True:
                await outbox.room()
                for leased in await queue.lease(self._options.concurrency - len(tasks)):
                    outbox.hold(leased)
                    task = asyncio.create_task(self._see_through(queue, leased, outbox, ending))
                    tasks.add(task)
                    task.add_done_callback(tasks.discard)
                if len(tasks) >= self._options.concurrency:
                    await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        except QueueFailed:
            # Turns under way go on after the queue has failed: what they cost has been paid.
            await asyncio.gather(*tasks, return_exceptions=True)
        finally:
            ending.set()
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _see_through(
        self, queue: TurnQueue, leased: Leased | Undelivered, outbox: Outbox, ending: asyncio.Event
    ) -> None:
        """Bring one turn to the sinks, whatever happens; one that we cancel stays leased, to be released.

        Nobody but `_judge` may cancel this. Any other CancelledError, like SystemExit and the rest of what is
        not an Exception, comes from code of the user's, and ends no more than the turn.
        """
        try:
            with contextlib.suppress(QueueFailed):
                if isinstance(leased, Undelivered):
                    result: Undelivered | None = leased
                else:
                    result = await self._evaluate(queue, await self._screened(leased, outbox))
                if result is not None:
                    outbox.deliver(result)
                    return
        except BaseException as error:
            if ending.is_set():
                raise
            with contextlib.suppress(QueueFailed):
                await self._dead_letter(queue, leased, error)
        outbox.drop(leased)

    async def _dead_letter(
        self, queue: TurnQueue, leased: Leased | Undelivered, error: BaseException
    ) -> None:
        kind = type(error).__name__
        self._warn(kind, "a turn could not be evaluated: %s", error_place(error))
        if isinstance(leased, Leased):
            await self._budget.give_up(queue, leased)
            if await queue.dead_letter(leased, kind):
                self._inbox.decided(leased.turn.record, kind)

    async def _evaluate(self, queue: TurnQueue, leased: Leased) -> Undelivered | None:
        """Judge a leased turn; its result, unless the turn goes back into the queue."""
        seen = leased.turn.seen
        turn = leased.turn if seen is None else replace(leased.turn, rate=seen.rate)
        inclusion = self._inclusion(turn)
        if seen is not None and not inclusion:
            self._budget.release(turn.record.id)
            return await self._finish(queue, leased, seen.evaluation)
        if wait := await self._budget.ask(queue, leased):
            if await queue.postpone(leased, wait):
                return None
            if seen is not None:
                return await self._finish(queue, leased, cut_off(seen.evaluation, inclusion))
        evaluation = await self._within_the_deadline(self._score(turn))
        await self._budget.settle(queue, leased, evaluation.usage)
        if self.canaries is not None:
            self.canaries.turn_judged()
        # Only where the queue can keep the turn; otherwise the failure is the result.
        if _worth_waiting(evaluation) and leased.postponed < _POSTPONED:
            wait = min(_LONGEST_WAIT, _FIRST_WAIT * 2.0**leased.postponed)
            if await queue.postpone(leased, max(wait, evaluation.retry_after or 0.0)):
                return None
        evaluation = await self._tried(turn, evaluation)
        return await self._finish(queue, leased, self._joined(evaluation, seen))

    async def _tried(self, turn: Selected, evaluation: Evaluation) -> Evaluation:
        if self.laboratory is None:
            return evaluation

        async def score(record: Record) -> Evaluation:
            scored = await self._within_the_deadline(self._score(replace(turn, record=record)))
            self._budget.spend(scored.usage)
            return scored

        return await experiment(evaluation, self.laboratory, score)

    def _joined(self, evaluation: Evaluation, seen: Seen | None) -> Evaluation:
        if seen is None:
            return evaluation
        both = joined(seen.evaluation, evaluation)
        if self.screening is not None:
            self.screening.learn(both)
        return both

    async def _screened(self, leased: Leased, outbox: Outbox) -> Leased:
        """The turn with what the screen says of it, wherever the turn goes from here."""
        turn = leased.turn
        if self.screening is None or not turn.screened or turn.seen is not None:
            return leased
        try:
            evaluation = await self._within_the_deadline(self.screening.look(turn))
        except TimeoutError:
            evaluation = self.screening.failed(turn)
        self._budget.spend(evaluation.usage)
        seen = self.screening.weigh(turn, evaluation, drawn=leased.postponed > 0)
        screened = replace(leased, turn=replace(turn, seen=seen))
        outbox.hold(screened)
        return screened

    async def _within_the_deadline(self, scoring: Coroutine[None, None, Evaluation]) -> Evaluation:
        """Score a turn; one whose judge goes on although it was cancelled is left to itself."""
        task = asyncio.create_task(scoring)
        try:
            # The engine keeps the deadline; what is still there after that does not let itself be ended.
            await asyncio.wait([task], timeout=self._options.deadline + _GRACE)
        except asyncio.CancelledError:
            await leave(task, _GRACE)
            raise
        # Left to itself rather than waited for: one such judge would stop every other turn.
        if not task.done():
            await leave(task, 0)
            raise TimeoutError("a judge or metric that ignores the deadline")
        return task.result()

    async def _score(self, turn: Selected) -> Evaluation:
        """Score a turn with the metrics whose own rates pick it, each with its inclusion probability."""
        options = self._options
        inclusion = self._inclusion(turn)
        metrics = [metric for metric in options.metrics if metric.name in inclusion]
        # MonitorOptions has seen to it that a metric without a judge of its own finds one here.
        judge = options.judge or next((metric.judge for metric in metrics if metric.judge), None)
        if judge is None:
            record = clean(turn.record)
            return Evaluation(
                record_id=record.id, scores=(), record=record, trace=record.trace, evaluated_at=time.time()
            )
        evaluation = await evaluate_one(
            turn.record,
            metrics,
            judge=judge,
            embedder=options.embedder,
            fuse=options.fuse,
            deadline=time.monotonic() + options.deadline,
            inclusion=inclusion,
            score_guesses=options.score_guesses,
        )
        evaluation = await self._baselines.apply(evaluation)
        return evaluation if options.calibration is None else options.calibration.apply(evaluation)

    def _inclusion(self, turn: Selected) -> dict[str, float]:
        """The metrics that the judge scores a turn by, each with its inclusion probability."""
        names = [metric.name for metric in self._options.metrics]
        return self._options.selection.metrics_for(turn.sampling_position, turn.rate, names)

    async def _finish(self, queue: TurnQueue, leased: Leased, evaluation: Evaluation) -> Undelivered | None:
        try:
            return await queue.finish(leased, self._delivery.strip(evaluation))
        except QueueFailed:
            # The queue is gone, but what was paid for is not thrown away.
            self._delivery.deliver(evaluation, lambda _: None, kept=False)
            raise

    async def _close(self) -> None:
        if self.laboratory is not None:
            self.laboratory.close()
        for part in (self._options.judge, self._options.screen, self._options.embedder):
            if part is not None:
                # A judge of the user's may raise anything at its end, and there is nobody left to tell.
                with contextlib.suppress(BaseException):
                    await part.aclose()


async def _again_and_again(queue: TurnQueue, serve: Callable[[], Awaitable[None]]) -> None:
    """Serve a queue that may fail; open it again after a while, until it works."""
    pause = _FIRST_PAUSE
    while True:
        began = time.monotonic()
        if queue.works:
            await serve()
        # One that opens and fails at its first write, as on a full disk, is not tried ever faster.
        if time.monotonic() - began > _LONGEST_PAUSE:
            pause = _FIRST_PAUSE
        await asyncio.sleep(pause)
        pause = min(2 * pause, _LONGEST_PAUSE)
        with contextlib.suppress(QueueFailed):
            await queue.open()


def _worth_waiting(evaluation: Evaluation) -> bool:
    """Whether a Score failed for a reason that may pass, such as a judge that is down."""
    return any(score.status == "failed" and score.cause in TRANSIENT_CAUSES for score in evaluation.scores)
