"""The journal: acknowledged spans, until their turns are stored elsewhere or nothing can come of them.

A SQLite file in WAL mode, held by one process. Each row is what one request held of one trace.
"""

from __future__ import annotations

import os
import sqlite3
import stat
import threading
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Final

from steelyard._internal.forks import transaction
from steelyard._internal.text import error_words
from steelyard.errors import ConfigurationError, SteelyardError

APPLICATION_ID: Final = 0x53744C63
_VERSION: Final = 1
_TABLES = """
CREATE TABLE IF NOT EXISTS pieces (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    trace_id TEXT NOT NULL,
    body BLOB NOT NULL
) STRICT;
CREATE INDEX IF NOT EXISTS pieces_by_trace ON pieces (trace_id);
"""
_AT_ONCE = 500


class JournalFull(SteelyardError):
    """The journal holds as much as it may; what is in it has to be worked off first."""


class SpanJournal:
    """Acknowledged spans in a file. May be used from any thread.

    Args:
        path: The file; made, private to its owner, if it is not there.
        max_bytes: How many bytes of spans may be in it.
    """

    def __init__(self, path: str | os.PathLike[str], *, max_bytes: int = 1024**3) -> None:
        if not max_bytes > 0:
            raise ConfigurationError(f"max_bytes of the journal must be more than 0, not {max_bytes!r}")
        self.path = Path(path).absolute()
        self._max_bytes = max_bytes
        self.bytes = 0
        """Size of the spans in it."""
        self._lock = threading.Lock()
        try:
            self._db = _connect(self.path)
            sums = self._db.execute("SELECT COALESCE(SUM(LENGTH(body)), 0) FROM pieces").fetchone()
            self.bytes = int(sums[0])
        except (sqlite3.Error, OSError) as error:
            raise ConfigurationError(
                f"the journal {str(path)!r} cannot be used: {_problem(error)}; "
                "name another with --journal, or free its disk"
            ) from None

    def room_for(self, size: int) -> bool:
        """Whether so many bytes more may be stored."""
        return self.bytes + size <= self._max_bytes

    def add(self, exports: Sequence[Mapping[str, bytes]]) -> None:
        """Store what some requests hold, in one transaction; all of it is safe when this returns."""
        rows = [row for pieces in exports for row in pieces.items()]
        with self._lock:
            with transaction(self._db) as db:
                db.executemany("INSERT INTO pieces (trace_id, body) VALUES (?, ?)", rows)
            self.bytes += sum(len(body) for _, body in rows)

    def after(self, seq: int, most: int = _AT_ONCE) -> list[tuple[int, str, bytes]]:
        """The next pieces after a number: the number, the trace id and the spans of each."""
        with self._lock:
            return self._db.execute(
                "SELECT seq, trace_id, body FROM pieces WHERE seq > ? ORDER BY seq LIMIT ?", (seq, most)
            ).fetchall()

    def forget(self, trace_ids: Collection[str], *, upto: int) -> None:
        """Delete what is stored of some traces, up to a number: it is settled."""
        with self._lock:
            delete = "DELETE FROM pieces WHERE trace_id = ? AND seq <= ? RETURNING LENGTH(body)"
            with transaction(self._db) as db:
                gone = sum(
                    size
                    for trace_id in trace_ids
                    for (size,) in db.execute(delete, (trace_id, upto)).fetchall()
                )
            self.bytes -= gone

    def __len__(self) -> int:
        with self._lock:
            (count,) = self._db.execute("SELECT COUNT(*) FROM pieces").fetchone()
        return int(count)

    def close(self) -> None:
        with self._lock:
            self._db.close()


def _connect(path: Path) -> sqlite3.Connection:
    _claim(path)
    connection = sqlite3.connect(path, timeout=1.0, isolation_level=None, check_same_thread=False)
    try:
        # Held for as long as the process lives: two that work off the same spans would tell turns twice.
        connection.execute("PRAGMA locking_mode = EXCLUSIVE")
        _check(connection, path)
        connection.execute("PRAGMA journal_mode = WAL")
        # Survives a crash of the process.
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute("PRAGMA secure_delete = ON")
        connection.execute("BEGIN EXCLUSIVE")
        for statement in _TABLES.split(";"):
            connection.execute(statement)
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {_VERSION}")
        connection.execute("COMMIT")
    except BaseException:
        connection.close()
        raise
    return connection


def _claim(path: Path) -> None:
    """Make the file, readable by its owner alone, where there is none."""
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    except FileExistsError:
        if path.is_symlink() or not stat.S_ISREG(path.stat().st_mode):
            raise ConfigurationError(
                f"the journal {str(path)!r} is not a file of its own; give another path"
            ) from None


def _check(connection: sqlite3.Connection, path: Path) -> None:
    """Refuse a database that is not a journal, or one of a newer version."""
    (identity,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    tables = connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone()
    if identity != APPLICATION_ID and (tables or identity or version):
        raise ConfigurationError(
            f"{str(path)!r} is a file of another program; it is left alone, give the journal another path"
        )
    if version > _VERSION:
        raise ConfigurationError(
            f"the journal {str(path)!r} is of schema {version}, newer than {_VERSION}; update steelyard"
        )


def _problem(error: Exception) -> str:
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return "another process has it open; each `steelyard collect` needs a journal of its own"
    return "it is not a journal; give another path" if code == sqlite3.SQLITE_NOTADB else error_words(error)
