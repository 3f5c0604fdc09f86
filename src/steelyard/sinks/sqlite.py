"""Results in one SQLite file: the default, for people and dashboards alike."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import time
from collections.abc import Sequence
from typing import Final

from steelyard.errors import ConfigurationError
from steelyard.scores import Evaluation
from steelyard.sinks._sqlite_schema import create_tables, evaluation_row, score_row, upsert

__all__ = ["SQLiteSink"]

_LOCKED: Final = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
_inherited: list[sqlite3.Connection] = []
"""Connections of a parent process. SQLite forbids using and even closing them here, so they are only kept."""


class SQLiteSink:
    """Writes Evaluations into one SQLite file, which others may read meanwhile.

    The file has two tables, `evaluations` (one row per record) and `scores` (one row per result id); writing
    the same results again replaces their rows. It is in WAL mode with `synchronous=NORMAL`: a crash of the
    process loses nothing, a power cut may lose the last moments but never damages the file. Several processes
    may write to the same file.
    """

    def __init__(self, path: str | os.PathLike[str] = "steelyard.db", *, lock_timeout: float = 10.0) -> None:
        """Nothing is opened yet; that happens at the first write, or with `open`.

        Args:
            path: The file; it is created where it is missing, its folder is not.
            lock_timeout: Seconds to wait for another writer before a write fails.

        Raises:
            ConfigurationError: If `lock_timeout` is negative.
        """
        if lock_timeout < 0:
            raise ConfigurationError(f"lock_timeout must not be negative, not {lock_timeout!r}")
        self.path = os.fspath(path)
        self.name = f"sqlite:{self.path}"
        self._lock_timeout = lock_timeout
        self._connection: sqlite3.Connection | None = None
        self._pid = 0

    def open(self) -> None:
        """Open the file now, to find out whether results can be written there.

        Raises:
            ConfigurationError: If they cannot; the message names the path and the reason.
        """
        self._connected()

    async def write(self, evaluations: Sequence[Evaluation]) -> None:
        """Write them in one transaction, all or none.

        Raises:
            ConfigurationError: If the file cannot be opened.
            sqlite3.Error: If it cannot be written, e.g. because the disk is full.
        """
        rows = [("evaluations", "record_id", evaluation_row(one)) for one in evaluations]
        rows += [
            ("scores", "id", score_row(score, one, position))
            for one in evaluations
            for position, score in enumerate(one.scores)
        ]
        deadline = time.monotonic() + self._lock_timeout
        while True:
            try:
                self._write(rows)
                return
            except sqlite3.OperationalError as error:
                # Waiting here rather than inside SQLite leaves the event loop to the judges.
                if (
                    getattr(error, "sqlite_errorcode", 0) & 0xFF not in _LOCKED
                    or time.monotonic() >= deadline
                ):
                    raise
                await asyncio.sleep(0.02)

    def _write(self, rows: list[tuple[str, str, dict[str, object]]]) -> None:
        connection = self._connected()
        connection.execute("BEGIN IMMEDIATE")
        try:
            for table, key, row in rows:
                connection.execute(upsert(table, key, row), row)
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise

    async def aclose(self) -> None:
        """Close the file; a later write opens it again."""
        connection, self._connection = self._connection, None
        if connection is None:
            return
        if self._pid != os.getpid():
            _inherited.append(connection)
            return
        connection.close()

    def _connected(self) -> sqlite3.Connection:
        if self._connection is not None and self._pid != os.getpid():
            _inherited.append(self._connection)
            self._connection = None
        if self._connection is None:
            self._connection = self._connect()
            self._pid = os.getpid()
        return self._connection

    def _connect(self) -> sqlite3.Connection:
        connection = None
        try:
            # The Monitor may open a sink in one thread and write in another, never in two at once.
            connection = sqlite3.connect(
                self.path, timeout=0.05, isolation_level=None, check_same_thread=False
            )
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = NORMAL")
            create_tables(connection, self.path)
        except sqlite3.Error as error:
            if connection is not None:
                connection.close()
            if getattr(error, "sqlite_errorcode", 0) & 0xFF in _LOCKED:
                raise
            raise ConfigurationError(
                f"results cannot be written to {self.path!r}: {error}; "
                "give SQLiteSink a path in a folder that can be written"
            ) from error
        except ConfigurationError:
            if connection is not None:
                connection.close()
            raise
        return connection
