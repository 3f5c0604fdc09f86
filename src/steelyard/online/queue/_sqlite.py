"""The queue in a SQLite file: a `Spool` called in a thread of its own, and what happens when it fails."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import os
import sqlite3
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Coroutine, Sequence
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

from steelyard._internal.forks import identity_of
from steelyard._internal.logs import SafeLogger, WarnOnce
from steelyard._internal.text import error_words
from steelyard._internal.threads import DaemonExecutor
from steelyard.errors import ConfigurationError
from steelyard.online.queue._protocol import Leasing, Parking, QueueCounts, QueueFailed, Stored
from steelyard.online.queue._spool import Spool
from steelyard.online.queue._spool_file import SpoolSettings, check
from steelyard.online.queue._turns import Leased, Selected, Undelivered
from steelyard.scores import Evaluation

_log = SafeLogger("steelyard.online")
# Another process cannot wake this one; a quarter of a second is what its turns may wait.
_LOOK = 0.25
# A backup or a vacuum holds the lock for seconds; a process that died with it holds none.
_LOCKED_FOR = 30.0
_FAILURES = (sqlite3.Error, OSError, ConfigurationError)
"""A file that was open is opened again after a fork, so that any call may find what opening finds."""

_Args = ParamSpec("_Args")
_Result = TypeVar("_Result")


def _in_its_thread(
    method: Callable[Concatenate[Spool, _Args], _Result],
) -> Callable[Concatenate[SQLiteQueue, _Args], Coroutine[Any, Any, _Result]]:
    """A method of the spool as one of the queue."""

    async def call(self: SQLiteQueue, /, *args: _Args.args, **kwargs: _Args.kwargs) -> _Result:
        return await self._call(method, *args, **kwargs)

    return call


class SQLiteQueue:
    """A TurnQueue in a file that several processes may share, until the file fails.

    A file that fails is closed and reported once; every later call raises `QueueFailed`. One that another
    process has locked is waited for.
    """

    durable = True
    settled = True

    def __init__(self, settings: SpoolSettings) -> None:
        self._settings = settings
        self._spool: Spool | None = None
        # One thread: SQLite would make the threads of one process wait for each other anyway.
        self._executor = DaemonExecutor(1, name="steelyard-spool")
        self._news = asyncio.Event()
        self._failed = asyncio.Event()
        self._file: tuple[int, int] | None = None
        self._warn = WarnOnce(_log)
        self._leasing: Leasing[Leased | Undelivered] = Leasing(ahead=True)
        self._bringing: defaultdict[str, Leasing[Undelivered]] = defaultdict(Leasing)
        self._last: QueueCounts | None = None
        self.left_behind = 0

    @property
    def works(self) -> bool:
        return self._spool is not None

    @property
    def lease_seconds(self) -> float:
        return self._settings.lease_seconds

    def start(self) -> None:
        self._executor.start()

    async def open(self) -> None:
        settings = self._settings
        opening = self._executor.submit(
            Spool,
            settings.path,
            max_bytes=settings.max_bytes,
            durability=settings.durability,
            lease_seconds=settings.lease_seconds,
        )
        try:
            self._spool = await asyncio.wrap_future(opening)
            self._failed.clear()
            self.left_behind = 0
            # Kept, to notice a file that was removed or replaced: writing would go on into nothing.
            self._file = identity_of(settings.path)
        except _FAILURES as error:
            self._set_aside(error)
            raise QueueFailed(str(error)) from None

    async def failed(self) -> None:
        await self._failed.wait()

    async def room(self, most: int) -> int:
        """All of them: the file's bound is bytes, which `put` holds turns against."""
        return most

    async def put(self, turns: Sequence[Selected]) -> list[Stored]:
        stored = await self._call(Spool.put, turns)
        if "new" in stored:
            self._works_again()
        self._news.set()
        return stored

    async def lease(self, most: int) -> list[Leased | Undelivered]:
        """Results that a dead process has left behind, then turns.

        Waits a moment where there is nothing, since other processes store turns too.
        """
        # Cleared before asking, so that turns which are put in between end the wait below.
        self._news.clear()
        leased = await self._leasing.take(most, lambda most: self._call(Spool.lease, most))
        if not leased:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_LOOK):
                    await self._news.wait()
        return leased

    async def renew(self, held: Sequence[Leased | Undelivered]) -> None:
        await self._call(Spool.renew, [*held, *self._leasing.ready])

    async def finish(self, leased: Leased, evaluation: Evaluation) -> Undelivered | None:
        done = await self._call(Spool.finish, leased, evaluation)
        self._works_again()
        return done

    async def delivered(self, results: Sequence[Undelivered]) -> None:
        if results:
            await self._call(Spool.delivered, results)

    async def park(self, results: Sequence[Parking]) -> list[Parking]:
        """Keep results for the sinks that do not have them; all of them fit."""
        if results:
            await self._call(Spool.park, results)
        return []

    async def parked(self, sink: str, most: int) -> list[Undelivered]:
        return await self._bringing[sink].take(most, lambda most: self._call(Spool.parked, sink, most))

    async def release(self, held: Sequence[Leased | Undelivered]) -> None:
        held = [*held, *await self._leasing.left()]
        for bringing in self._bringing.values():
            held += await bringing.left()
        await self._call(Spool.release, held)

    def counts(self) -> QueueCounts | None:
        """The ledger over all processes, or as it was at `close`; None where there is no file that works."""
        spool = self._spool
        if spool is None:
            return self._last
        try:
            return spool.counts()
        except _FAILURES:
            return None

    async def watch(self, sinks: Collection[str]) -> None:
        """The file knows for which sinks it keeps results."""

    lease_turns = _in_its_thread(Spool.lease_turns)
    moved = _in_its_thread(Spool.moved)
    postpone = _in_its_thread(Spool.postpone)
    dead_letter = _in_its_thread(Spool.dead_letter)
    dead_letters = _in_its_thread(Spool.dead_letters)
    move = _in_its_thread(Spool.move)
    claim = _in_its_thread(Spool.claim)
    bill = _in_its_thread(Spool.bill)

    async def close(self) -> None:
        # At the end, where nobody waits for it; each start would otherwise find more to read.
        with contextlib.suppress(QueueFailed):
            await self._call(Spool.prune)
        self._last = self.counts()
        spool, self._spool = self._spool, None
        if spool is not None:
            await asyncio.wrap_future(self._executor.submit(spool.close))
        self._executor.shutdown()

    async def _call(
        self, method: Callable[Concatenate[Spool, _Args], _Result], *args: _Args.args, **kwargs: _Args.kwargs
    ) -> _Result:
        """Call a method of the spool in its thread; another process's lock is waited for."""
        deadline = time.monotonic() + _LOCKED_FOR
        if self._spool is not None and identity_of(self._settings.path) != self._file:
            self._set_aside(FileNotFoundError(errno.ENOENT, "it was removed or replaced"))
        while self._spool is not None:
            try:
                return await asyncio.wrap_future(self._executor.submit(method, self._spool, *args, **kwargs))
            except _FAILURES as error:
                locked = "locked" in str(error) or "busy" in str(error)
                if not locked or time.monotonic() > deadline:
                    self._set_aside(error)
        raise QueueFailed("the spool cannot be used any more")

    def _set_aside(self, error: Exception) -> None:
        """Use the file no more. A damaged one is renamed, so that the next start makes a new one."""
        spool = self._spool
        if spool is not None:
            # What is in it is counted while it can still be read: `flush` tells of it.
            if (counts := self.counts()) is not None:
                self.left_behind = counts.pending + counts.undelivered
            self._executor.submit(spool.close)
        self._spool = self._last = None
        self._leasing.ready.clear()
        self._failed.set()
        path = Path(self._settings.path)
        where = str(path)
        if type(error) is sqlite3.DatabaseError and _is_damaged(error) and self._is_ours(path):
            where = f"{path}.damaged-{os.getpid()}-{int(time.time())}"
            # The log and the index belong to the file; left behind, the next one would be taken for damaged.
            for suffix in ("", "-wal", "-shm"):
                with contextlib.suppress(OSError):
                    os.replace(f"{path}{suffix}", f"{where}{suffix}")
        problem = str(error) if isinstance(error, ConfigurationError) else error_words(error)
        self._warn(
            "failed",
            "the spool %s cannot be used: %s; it is tried again; turns recorded in this process go through "
            "its memory meanwhile",
            where,
            problem,
            level=logging.ERROR,
        )

    def _works_again(self) -> None:
        """Something was written: a disk that is full lets a file be opened and read."""
        if self._warn.over("failed"):
            _log.warning("the spool %s works again", self._settings.path)

    def _is_ours(self, path: Path) -> bool:
        """Whether what stands there is a spool, however damaged: what is not ours is never renamed."""
        try:
            check(path)
        except (ConfigurationError, OSError):
            return False
        return True


def _is_damaged(error: sqlite3.Error) -> bool:
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
