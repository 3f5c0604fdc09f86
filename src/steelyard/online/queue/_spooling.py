"""The worker's side of the spool: storing, claiming, keeping leases, and what happens when the file fails."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import sqlite3
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import ParamSpec, TypeVar

from steelyard._internal.threads import DaemonExecutor
from steelyard.online._scoring import Listening, score, worth_waiting
from steelyard.online._turn_states import Selected
from steelyard.online.config._options import MonitorOptions
from steelyard.online.delivery._delivery import Delivery
from steelyard.online.queue._spool import Claimed, Spool, SpoolCounts, Spooled, Stored, Undelivered
from steelyard.online.selection._budget import BudgetControl, Reservation
from steelyard.scores import Evaluation

__all__ = ["Spooling"]

_log = logging.getLogger("steelyard.online")
_LOOK = 0.25
_FIRST_WAIT = 5.0
_LONGEST_WAIT = 600.0
_POSTPONED = 30
_LOCKED_FOR = 30.0

_Args = ParamSpec("_Args")
_Result = TypeVar("_Result")


class _Failed(Exception):
    """The spool file cannot be used any more."""


class Spooling:
    """Works on a spool until it fails. All calls into SQLite happen in one thread beside the loop."""

    def __init__(self, plan: MonitorOptions, *, delivery: Delivery, pace: BudgetControl) -> None:
        assert plan.spool is not None
        self._plan = plan
        self._settings = plan.spool
        self._delivery = delivery
        self._pace = pace
        self._spool: Spool | None = None
        self._executor: DaemonExecutor | None = None
        self._held: dict[int, Claimed | Undelivered] = {}
        self._reserved: dict[str, Reservation] = {}
        self._news = asyncio.Event()

    @property
    def unfinished(self) -> int:
        """What this process has still to do in the spool: turns to judge and results to deliver."""
        counts = self.counts() if self._settings.evaluate else None
        return counts.pending + counts.undelivered if counts else 0

    def counts(self) -> SpoolCounts | None:
        """The spool's ledger, from any thread; None where there is no spool that works."""
        spool = self._spool
        if spool is None:
            return None
        try:
            return spool.counts()
        except sqlite3.Error:
            return None

    def start(self) -> None:
        """Start the thread that calls SQLite."""
        if self._executor is None:
            self._executor = DaemonExecutor(1, name="steelyard-spool")
            self._executor.start()

    async def run(self, fill: Callable[[], Awaitable[None]]) -> None:
        """Work until the spool has failed and `fill`, which stores turns, has noticed and returned."""
        assert self._executor is not None
        try:
            self._spool = await self._executor.run(self._open)
        except (sqlite3.Error, OSError) as error:
            self._set_aside(error)
            return
        duties = [self._judge_what_waits(), self._keep_leases()] if self._settings.evaluate else []
        tasks = [asyncio.create_task(duty) for duty in duties]
        try:
            await fill()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await self._leave()

    async def store(self, turns: Sequence[Selected]) -> list[Stored] | None:
        """Store turns in one transaction; None where the spool has failed and took none of them."""
        spooled = [Spooled(turn.record, turn.place, turn.rate) for turn in turns]
        try:
            stored = await self._call(Spool.put, spooled)
        except _Failed:
            return None
        for turn, outcome in zip(turns, stored, strict=True):
            if outcome == "new":
                self._reserved[turn.record.id] = turn.reservation
            else:
                self._pace.release(turn.reservation)
        self._news.set()
        return stored

    def _open(self) -> Spool:
        settings = self._settings
        return Spool(
            settings.path,
            max_bytes=settings.max_bytes,
            durability=settings.durability,
            lease_seconds=settings.lease_seconds,
        )

    async def _judge_what_waits(self) -> None:
        """Claim turns, and results that a dead process has left behind, as fast as they can be worked on."""
        tasks: set[asyncio.Task[None]] = set()
        try:
            while True:
                free = self._plan.concurrency - len(tasks)
                claims = await self._claim(free) if free else []
                for claim in claims:
                    self._held[claim.seq] = claim
                    task = asyncio.create_task(self._work_on(claim))
                    tasks.add(task)
                    task.add_done_callback(tasks.discard)
                if not free:
                    await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
                elif not claims:
                    await self._pause()
        except _Failed:
            await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _claim(self, most: int) -> list[Claimed | Undelivered]:
        left_behind = await self._call(Spool.undelivered, most)
        return [*left_behind, *await self._call(Spool.claim, most - len(left_behind))]

    async def _pause(self) -> None:
        """Wait until something was stored, or a moment, since other processes store too."""
        self._news.clear()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_LOOK):
                await self._news.wait()

    async def _work_on(self, claim: Claimed | Undelivered) -> None:
        try:
            if isinstance(claim, Undelivered):
                await self._hand_on(claim)
            else:
                await self._judge(claim)
        except _Failed:
            pass
        finally:
            if not asyncio.current_task().cancelling():  # type: ignore[union-attr]
                self._held.pop(claim.seq, None)

    async def _judge(self, claim: Claimed) -> None:
        turn = claim.turn
        asked_to_wait: list[float] = []
        Listening.longest.set(asked_to_wait)
        try:
            evaluation = await score(self._plan, turn.record, place=turn.place, rate=turn.rate)
        except Exception as error:  # noqa: BLE001 - users' metrics may raise anything
            _log.debug("a turn could not be evaluated", exc_info=error)
            await self._call(Spool.bury, claim, type(error).__name__)
            return
        if (reservation := self._reserved.pop(turn.record.id, None)) is not None:
            self._pace.correct(reservation, evaluation.usage)
        if worth_waiting(evaluation) and claim.postponed < _POSTPONED:
            wait = min(_LONGEST_WAIT, _FIRST_WAIT * 2.0**claim.postponed)
            wait = max(wait, *asked_to_wait, 0.0)
            await self._call(Spool.postpone, claim, wait)
            return
        await self._conclude(claim, evaluation)

    async def _conclude(self, claim: Claimed, evaluation: Evaluation) -> None:
        try:
            result = await self._call(Spool.finish, claim, self._delivery.strip(evaluation))
        except _Failed:
            # The file is gone, but what was paid for is not thrown away.
            await self._delivery.deliver(evaluation)
            raise
        if result is not None:
            self._held[claim.seq] = result
            await self._hand_on(result)

    async def _hand_on(self, result: Undelivered) -> None:
        await self._delivery.deliver(result.evaluation)
        await self._call(Spool.delivered, [result])

    async def _keep_leases(self) -> None:
        with contextlib.suppress(_Failed):
            while True:
                await asyncio.sleep(self._settings.lease_seconds / 3)
                if self._held:
                    await self._call(Spool.renew, list(self._held.values()))

    async def _call(self, method: Callable[_Args, _Result], *args: object, **kwargs: object) -> _Result:
        """Call a method of the spool in its thread; another process's lock is waited for.

        Raises:
            _Failed: If the spool has failed, now or before.
        """
        deadline = time.monotonic() + _LOCKED_FOR
        while self._spool is not None and self._executor is not None:
            try:
                return await self._executor.run(method, self._spool, *args, **kwargs)  # type: ignore[arg-type]
            except sqlite3.Error as error:
                if not _is_locked(error) or time.monotonic() > deadline:
                    self._set_aside(error)
        raise _Failed

    async def _leave(self) -> None:
        """Give back what is held, so that another process need not wait for the leases to end."""
        if self._spool is not None:
            with contextlib.suppress(_Failed):
                await self._call(Spool.release, list(self._held.values()))
                await self._call(Spool.prune)
        spool, self._spool = self._spool, None
        if spool is not None and self._executor is not None:
            await self._executor.run(spool.close)
        if self._executor is not None:
            self._executor.shutdown()

    def _set_aside(self, error: Exception) -> None:
        """Use the spool no more. A damaged file is renamed, so that the next start makes a new one."""
        spool, self._spool = self._spool, None
        if spool is not None and self._executor is not None:
            self._executor.submit(spool.close)
        path = Path(self._settings.path)
        where = str(path)
        if type(error) is sqlite3.DatabaseError and path.exists():
            where = f"{path}.damaged-{os.getpid()}-{int(time.time())}"
            for suffix in ("", "-wal", "-shm"):
                with contextlib.suppress(OSError):
                    os.replace(f"{path}{suffix}", f"{where}{suffix}")
        _log.error("the spool %s cannot be used: %s; turns are kept in memory from now on", where, error)


def _is_locked(error: sqlite3.Error) -> bool:
    return "locked" in str(error) or "busy" in str(error)
