"""Results in one SQLite file: the default, for people and dashboards alike."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from typing import Final
from weakref import WeakValueDictionary

from steelyard._internal.forks import FileConnection
from steelyard._internal.logs import SafeLogger
from steelyard._internal.redact import error_words
from steelyard._internal.sqlite import transaction
from steelyard.errors import ConfigurationError, InvalidRecord
from steelyard.scores import Evaluation, Score
from steelyard.sinks._retention import Retention, retention_from
from steelyard.sinks._tables import COUNT_REPLAY, EARLIER, TablesSink, bar_of, store_counts, values_of
from steelyard.sinks.sqlite._file import MEMORY, absolute, check_folder, claim_file, prepare
from steelyard.sinks.sqlite._read import connect_readonly
from steelyard.sinks.sqlite._retention import delete_oldest
from steelyard.sinks.sqlite._rows import write_evaluation

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
        self._file = _StoreFile(self.path) if self.path == MEMORY else _store_file(self.path)
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

    def baseline(self, like: Score, *, now: float) -> float | None:
        """The bar of `Metric(threshold="baseline")`: what 95 % of earlier turns reached, if that is known."""
        try:
            with closing(connect_readonly(self.path)) as connection:
                rows = connection.execute(EARLIER, values_of(like, now=now)).fetchall()
        except (ConfigurationError, sqlite3.Error):
            return None
        return bar_of(rows, lower_is_better=like.direction == "lower")

    def count_replay(self, day: str, *, most: int) -> bool:
        """Count one more call of an experiment on a day; False if all processes together made `most`.

        Raises:
            ConfigurationError: If the file cannot be opened.
            sqlite3.Error: If it cannot be written.
        """
        deadline = time.monotonic() + self._lock_timeout
        while True:
            try:
                with self._opened() as connection, transaction(connection):
                    connection.execute(COUNT_REPLAY[0])
                    found = connection.execute(COUNT_REPLAY[1], {"day": day, "most": most}).fetchone()
                return found is not None
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
        self._ledger.settle_evaluations(unstorable, "refused", "unstorable")
        self._ledger.settle_evaluations(evaluations, "written")
        if self._monitors.is_due:
            self._store_counts()
        self._delete_what_exceeds(self._delete_oldest)

    async def aclose(self) -> None:
        """Close the file; a later write opens it again."""
        if self._used:
            self._store_counts()
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

    def _store_counts(self) -> None:
        """Store the Monitors' counts; where it fails, the next time does it."""
        try:
            # First: a Monitor looks into its spool to count, and a fork waits for one file after another.
            rows = self._monitors.rows()
            with self._opened() as connection:
                store_counts(connection, rows)
        except Exception as error:  # noqa: BLE001 - results are written; counts must not make them look lost
            _log.debug("%s: a Monitor's counts were not stored: %s", self.name, error_words(error))

    def _delete_oldest(self, keep: Retention, now: float) -> int:
        try:
            with self._opened() as connection:
                return delete_oldest(connection, keep, now=now)
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
        except sqlite3.Error as error:
            if connection is not None:
                connection.close()
            if _is_locked(error):
                raise
            raise ConfigurationError(
                f"results cannot be written to {self.path!r}: {error_words(error)}; "
                "give SQLiteSink a path in a folder that can be written"
            ) from error
        except BaseException:
            if connection is not None:
                connection.close()
            raise
        return connection


_files: WeakValueDictionary[str, _StoreFile] = WeakValueDictionary()


def _store_file(path: str) -> _StoreFile:
    file = _files.get(path)
    if file is None:
        file = _files[path] = _StoreFile(path)
    return file


def _is_locked(error: sqlite3.Error) -> bool:
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in _LOCKED
