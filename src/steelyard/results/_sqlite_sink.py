"""Results in one SQLite file: the default, for people and dashboards alike."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from typing import Any, Final
from weakref import WeakValueDictionary

from steelyard._internal.forks import FileConnection, transaction
from steelyard._internal.logs import SafeLogger
from steelyard._internal.text import error_words
from steelyard.errors import ConfigurationError, InvalidRecord
from steelyard.results._schema import STORE_COUNTS, Execute
from steelyard.results._sqlite_file import (
    MEMORY,
    absolute,
    check_folder,
    check_ours,
    claim_file,
    connect_readonly,
    prepare,
    write_evaluation,
)
from steelyard.results._table_sink import Pruned, Retention, TablesSink, oldest_beyond, retention_from
from steelyard.scores import Evaluation

_log = SafeLogger("steelyard.sinks")
_LOCKED: Final = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
_UNSTORABLE: Final = (
    InvalidRecord,
    OverflowError,
    sqlite3.InterfaceError,
    sqlite3.ProgrammingError,
    sqlite3.DataError,
    sqlite3.IntegrityError,
)


class SQLiteSink(TablesSink):
    """Writes Evaluations into one SQLite file, which others may read meanwhile.

    The file has two tables for queries, `evaluations` (one row per record) and `scores` (one row per result
    id), and `ledger` with the counts of each Monitor, which also tell of turns that were not judged. Writing
    the same results again replaces their rows. The file is in WAL mode with `synchronous=NORMAL`: a crash of
    the process loses nothing, a power cut may lose the last moments but never damages the file. Several
    processes may write to the same file.

    A new file can be read and written by its owner alone. A file that Steelyard did not make is refused and
    never changed. An Evaluation with a value that cannot be stored is refused alone, and counted.
    """

    _failures = (ConfigurationError, sqlite3.Error)

    def __init__(
        self,
        path: str | os.PathLike[str] = "steelyard.db",
        *,
        keep: str | int | Retention | None = None,
        lock_timeout: float = 10.0,
    ) -> None:
        """Nothing is opened yet; that happens at the first write, or with `open`.

        Args:
            path: The file, seen from the folder the process is in now; it is created if it is missing, its
                folder is not.
            keep: What to keep: an age (`"30d"`, `"12h"`), a size (`"2GB"`), a number of turns (`100_000`), or
                several (`"30d, 2GB"`). The oldest turns beyond it are deleted while the sink writes, at most
                200 at a time. Everything is kept by default.
            lock_timeout: Seconds to wait for another writer before a write fails.

        Raises:
            ConfigurationError: If `lock_timeout` is negative, or `keep` means nothing.
        """
        if lock_timeout < 0:
            raise ConfigurationError(f"lock_timeout must not be negative, not {lock_timeout!r}")
        super().__init__(f"sqlite:{os.fspath(path)}", None if keep is None else retention_from(keep))
        self.path = absolute(path)
        self._lock_timeout = lock_timeout
        self._file = _StoreFile(self.path)
        if self.path != MEMORY:
            self._file = _files.setdefault(self.path, self._file)
        self._used = False

    def open(self) -> None:
        """Open the file now, to find out whether results can be written there.

        Raises:
            ConfigurationError: If they cannot; the message names the path and the reason.
        """
        with self._opened():
            pass

    async def check(self) -> None:
        """See whether results could be written; a file that is not there yet is not made.

        Raises:
            ConfigurationError: If they could not; the message names the path and the reason.
        """
        await asyncio.to_thread(self._check)

    def _check(self) -> None:
        if self.path == MEMORY or os.path.exists(self.path):
            self.open()
        else:
            check_folder(self.path)

    @contextmanager
    def _reading(self) -> Iterator[Execute]:
        with closing(connect_readonly(self.path)) as connection:
            yield connection.execute

    def _alone(self, work: Callable[[Execute], bool]) -> bool:
        deadline = time.monotonic() + self._lock_timeout
        while True:
            try:
                with self._opened() as connection, transaction(connection):
                    return work(connection.execute)
            except sqlite3.OperationalError as error:
                if not _is_locked(error) or time.monotonic() >= deadline:
                    raise
                time.sleep(0.02)

    async def write(self, evaluations: Sequence[Evaluation]) -> None:
        """Write them in one transaction: all, or none if the file fails.

        Raises:
            ConfigurationError: If the file cannot be opened.
            sqlite3.Error: If it cannot be written, e.g. because the disk is full.
        """
        deadline = time.monotonic() + self._lock_timeout
        while True:
            try:
                unstorable = self._write(evaluations)
                break
            except sqlite3.OperationalError as error:
                # Waiting here rather than inside SQLite leaves the event loop to the judges.
                if not _is_locked(error) or time.monotonic() >= deadline:
                    self._ledger.settle_evaluations(evaluations, "lost", error_words(error))
                    raise
                await asyncio.sleep(0.02)
        self._settle(evaluations, unstorable)
        self._see_to_the_rest()

    async def aclose(self) -> None:
        """Close the file; a later write opens it again."""
        if self._used:
            # There is no next time, and children that end together write at the same time.
            deadline = time.monotonic() + self._lock_timeout
            while True:
                problem = self._store_counts()
                if not _is_locked(problem) or time.monotonic() >= deadline:
                    break
                await asyncio.sleep(0.02)
            self._used = False
            self._file.let_go()

    def _write(self, evaluations: Sequence[Evaluation]) -> list[Evaluation]:
        """Returns those that cannot be stored."""
        unstorable, problem = list[Evaluation](), ""
        with self._opened() as connection, transaction(connection):
            for evaluation in evaluations:
                # Of its own, so that one that cannot be stored takes nothing of the others along.
                connection.execute("SAVEPOINT one")
                try:
                    write_evaluation(connection, evaluation)
                except _UNSTORABLE as error:
                    connection.execute("ROLLBACK TO one")
                    unstorable.append(evaluation)
                    problem = str(error)
                connection.execute("RELEASE one")
        self._say_unstorable(unstorable, problem)
        return unstorable

    def _put_counts(self, rows: Sequence[Mapping[str, Any]]) -> None:
        with self._opened() as connection:
            connection.executemany(STORE_COUNTS, rows)

    def _delete_in_passing(self, keep: Retention, now: float) -> int:
        try:
            with self._opened() as connection:
                return _delete_oldest(connection, keep, now=now)
        except sqlite3.Error as error:
            if not _is_locked(error):
                _log.warning(
                    "%s: old results cannot be deleted: %s; see that the file can be written",
                    self.name,
                    error_words(error),
                )
            return 0

    @contextmanager
    def _opened(self) -> Iterator[sqlite3.Connection]:
        if self._file.moved:
            _log.warning("%s was removed or replaced while it was written to; it is opened anew", self.name)
            self._file.close()
        with self._file.use() as connection:
            if not self._used:
                self._used = True
                self._file.users += 1
            yield connection


class _StoreFile(FileConnection):
    """The one connection of this process to a file of results, whose sinks take turns at it.

    A thousand that waited for each other in SQLite would lose results to its timeout.
    """

    def __init__(self, path: str) -> None:
        super().__init__(path, self._opened)
        self.users = 0

    def let_go(self) -> None:
        """One of the sinks needs it no more; the last one closes it."""
        with self:
            self.users -= 1
        if self.users <= 0:
            self.close()

    def _opened(self) -> sqlite3.Connection:
        connection = None
        try:
            claim_file(self.path)
            # Sinks write in threads of their own, and never two at once.
            connection = sqlite3.connect(
                self.path, timeout=0.05, isolation_level=None, check_same_thread=False
            )
            prepare(connection, self.path)
            connection.execute("PRAGMA synchronous = NORMAL")
        except BaseException as error:
            if connection is not None:
                connection.close()
            if not isinstance(error, sqlite3.Error) or _is_locked(error):
                raise
            raise ConfigurationError(
                f"results cannot be written to {self.path!r}: {error_words(error)}; "
                "give SQLiteSink a path in a folder that can be written"
            ) from error
        return connection


_files: WeakValueDictionary[str, _StoreFile] = WeakValueDictionary()


def _is_locked(error: Exception | None) -> bool:
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in _LOCKED


def prune_file(path: str | os.PathLike[str], limits: Retention) -> Pruned:
    """Delete the oldest results that exceed a limit, and give their space back; see `prune`."""
    file = absolute(path)
    if not os.path.isfile(file):
        raise ConfigurationError(f"there is no results file {os.fspath(path)!r}; check its name")
    check_ours(file)
    with closing(sqlite3.connect(file, timeout=10, isolation_level=None)) as connection:
        prepare(connection, file)
        before = _used_bytes(connection)
        turns, left = 0, _count_turns(connection)
        while deleted := _delete_oldest(connection, limits, now=time.time(), turns=left):
            turns += deleted
            left -= deleted
        left = _count_turns(connection)
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        return Pruned(turns=turns, left=left, bytes_before=before, bytes_after=_used_bytes(connection))


def _count_turns(connection: sqlite3.Connection) -> int:
    """How many turns there are; of a million it takes as long as deleting a few hundred."""
    return int(connection.execute("SELECT COUNT(*) FROM evaluations").fetchone()[0])


def _used_bytes(connection: sqlite3.Connection) -> int:
    """Size of the database without what is free in it."""
    pages, free, size = (
        connection.execute(f"PRAGMA {name}").fetchone()[0]
        for name in ("page_count", "freelist_count", "page_size")
    )
    return int((pages - free) * size)


def _delete_oldest(
    connection: sqlite3.Connection, keep: Retention, *, now: float, turns: int | None = None
) -> int:
    """Delete the oldest turns that exceed a limit, at most 200, in one transaction; returns how many."""
    with transaction(connection):
        turns, used = _count_turns(connection) if turns is None else turns, _used_bytes(connection)
        records = oldest_beyond(connection.execute, keep, now=now, turns=turns, used=used)
        for table in ("turn_keys", "scores", "screened", "bodies", "evaluations"):
            connection.executemany(
                f"DELETE FROM {table} WHERE record_id = ?", ((record,) for record in records)
            )
    if records:
        connection.executescript("PRAGMA incremental_vacuum")  # `execute` would free a single page
    return len(records)
