"""The file that keeps what alarms know, and what has still to be told.

A turn is taken into account and what follows from it is put into the outbox in one transaction, so that a
crash neither loses nor repeats an alarm, and several processes can share one file.
"""

from __future__ import annotations

import json
import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from steelyard._internal.forks import FileConnection, transaction
from steelyard._internal.text import error_words
from steelyard.errors import ConfigurationError

# "STLA" in ASCII; by it a file of another program is known and left alone.
_APPLICATION_ID: Final = 0x53544C41
_SCHEMA: Final = 1
# Seconds that another process's transaction on the same file is waited for.
_WAIT: Final = 10.0
_KEPT: Final = 1_000
"""Messages kept after they were told or given up."""
_PAUSES: Final = (2.0, 10.0, 60.0, 300.0, 1800.0)
"""Seconds between attempts to tell; after the last the message is given up."""
_TABLES: Final = """
CREATE TABLE IF NOT EXISTS watches (name TEXT PRIMARY KEY, state TEXT NOT NULL, updated REAL NOT NULL);
CREATE TABLE IF NOT EXISTS messages (
    event TEXT NOT NULL,
    target TEXT NOT NULL,
    name TEXT NOT NULL,
    created REAL NOT NULL,
    due REAL,
    attempts INTEGER NOT NULL DEFAULT 0,
    told REAL,
    problem TEXT NOT NULL DEFAULT '',
    body TEXT NOT NULL,
    PRIMARY KEY (event, target)
);
CREATE INDEX IF NOT EXISTS messages_due ON messages (due) WHERE due IS NOT NULL;
CREATE TABLE IF NOT EXISTS cursors (source TEXT PRIMARY KEY, position INTEGER NOT NULL);
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class Notice:
    """One thing to tell one target."""

    event: str
    """Id of the event."""
    target: str
    """The target, as it may be shown."""
    name: str
    """The alarm's name."""
    created: float
    """When the event happened, as Unix time."""
    attempts: int
    """How often it was tried."""
    told: float | None
    """When it was told; None if it was not yet."""
    problem: str
    """What kept it from being told the last time."""
    body: dict[str, Any]
    """The event."""


class AlarmStore:
    """States and messages in one SQLite file, private to its owner."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.path.abspath(os.fspath(path))
        self._file = FileConnection(self.path, self._connect)
        try:
            # SQLite would make the file by the umask, and follow a link that somebody put there.
            with os.fdopen(os.open(self.path, os.O_CREAT | os.O_RDWR | os.O_NOFOLLOW, 0o600)):
                pass
            with closing(self._connect()) as connection:
                self._prepare(connection)
        except (OSError, sqlite3.Error) as error:
            raise ConfigurationError(
                f"alarms cannot be kept in {self.path!r}: {error_words(error)}; "
                "name another file as alarm_file"
            ) from None

    def _connect(self) -> sqlite3.Connection:
        # Never `rwc`: a file that was taken away is an error, not an empty file that others can read.
        uri = f"{Path(self.path).as_uri()}?mode=rw"
        return sqlite3.connect(
            # `FileConnection` gives it to one thread at a time; transactions are begun explicitly.
            uri,
            uri=True,
            timeout=_WAIT,
            isolation_level=None,
            check_same_thread=False,
        )

    def _prepare(self, connection: sqlite3.Connection) -> None:
        # One transaction for all that is read: processes that start together make the file at the same time.
        connection.execute("BEGIN")
        (identity,) = connection.execute("PRAGMA application_id").fetchone()
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        empty = connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone() is None
        connection.execute("ROLLBACK")
        if identity == _APPLICATION_ID and version == _SCHEMA:
            return
        if identity or version or not empty:
            raise ConfigurationError(
                f"{self.path!r} is not a file of alarms of this version; it is left alone, "
                "name another one as alarm_file"
            )
        _write_ahead(connection)
        connection.executescript(
            f"BEGIN IMMEDIATE; {_TABLES} PRAGMA application_id = {_APPLICATION_ID};"
            f"PRAGMA user_version = {_SCHEMA}; COMMIT;"
        )

    def close(self) -> None:
        """Let go of the file; a later transaction opens it again."""
        self._file.close()

    @contextmanager
    def transaction(self) -> Iterator[Transaction]:
        """Read and write alone; nothing is written where it ends with an error."""
        with self._file.use() as opened, transaction(opened) as connection:
            yield Transaction(connection)


@dataclass(frozen=True, slots=True)
class Transaction:
    """What can be done with the file, alone."""

    connection: sqlite3.Connection

    def state(self, name: str) -> dict[str, Any] | None:
        """The state of an alarm; None where there is none that can be read."""
        row = self.connection.execute("SELECT state FROM watches WHERE name = ?", (name,)).fetchone()
        try:
            found = json.loads(row[0]) if row else None
        except (ValueError, RecursionError):
            return None
        return found if isinstance(found, dict) else None

    def put_state(self, name: str, state: dict[str, Any], now: float) -> None:
        self.connection.execute(
            "INSERT INTO watches VALUES (?, ?, ?) "
            "ON CONFLICT (name) DO UPDATE SET state = excluded.state, updated = excluded.updated",
            (name, json.dumps(state), now),
        )

    def position(self, source: str) -> int | None:
        """How far a source of results has been read."""
        row = self.connection.execute("SELECT position FROM cursors WHERE source = ?", (source,)).fetchone()
        return None if row is None else int(row[0])

    def put_position(self, source: str, position: int) -> None:
        self.connection.execute(
            "INSERT INTO cursors VALUES (?, ?) "
            "ON CONFLICT (source) DO UPDATE SET position = excluded.position",
            (source, position),
        )

    def put_message(self, event: str, target: str, name: str, body: dict[str, Any], now: float) -> None:
        """Have something told."""
        self.connection.execute(
            # A target that an alarm names twice is told once.
            "INSERT OR IGNORE INTO messages (event, target, name, created, due, body) "
            "VALUES (?, ?, ?, ?, ?, ?)",
            (event, target, name, now, now, json.dumps(body)),
        )
        self.connection.execute(
            # Only what is told or given up: what is still to be told stays, however much it is.
            "DELETE FROM messages WHERE due IS NULL AND rowid NOT IN "
            "(SELECT rowid FROM messages ORDER BY created DESC LIMIT ?)",
            (_KEPT,),
        )

    def claim(self, targets: list[str], now: float, *, hold: float) -> list[Notice]:
        """Messages for these targets whose time has come; nobody else gets them for `hold` seconds."""
        marks = ", ".join("?" * len(targets))
        rows = self.connection.execute(
            f"SELECT {_COLUMNS} FROM messages WHERE (due <= ? OR due > ?) AND target IN ({marks}) "
            "ORDER BY created",
            # Further away than any pause: the clock was set back meanwhile.
            (now, now + _PAUSES[-1], *targets),
        ).fetchall()
        self.connection.executemany(
            # Counted before it is made: an attempt that ends the process must not be repeated for ever.
            "UPDATE messages SET due = ?, attempts = attempts + 1 WHERE event = ? AND target = ?",
            [(now + hold, row[0], row[1]) for row in rows],
        )
        return [_message(row) for row in rows]

    def settle(self, message: Notice, now: float, problem: str | None) -> bool:
        """Note how an attempt ended; returns whether there will be another one."""
        # The message was read before `claim` counted this attempt.
        attempts = message.attempts + 1
        again = problem is not None and attempts <= len(_PAUSES)
        due = now + _PAUSES[attempts - 1] if again else None
        self.connection.execute(
            "UPDATE messages SET due = ?, told = ?, problem = ? WHERE event = ? AND target = ?",
            (due, now if problem is None else None, problem or "", message.event, message.target),
        )
        return again

    def next_due(self, targets: list[str]) -> float | None:
        """When the next attempt for one of these targets is due."""
        marks = ", ".join("?" * len(targets))
        (due,) = self.connection.execute(
            f"SELECT min(due) FROM messages WHERE due IS NOT NULL AND target IN ({marks})", targets
        ).fetchone()
        return None if due is None else float(due)

    def messages(self, name: str) -> list[Notice]:
        """The last twenty messages of an alarm, newest first."""
        rows = self.connection.execute(
            f"SELECT {_COLUMNS} FROM messages WHERE name = ? ORDER BY created DESC LIMIT 20", (name,)
        )
        return [_message(row) for row in rows]


_COLUMNS: Final = "event, target, name, created, attempts, told, problem, body"


def _write_ahead(connection: sqlite3.Connection) -> None:
    """Keep a write-ahead log from now on, however many processes begin to at the same time."""
    end = time.monotonic() + _WAIT
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            # SQLite does not wait here where another connection is writing, whatever its timeout.
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > end:
                raise
        time.sleep(0.01)


def _message(row: tuple[Any, ...]) -> Notice:
    *told, body = row
    try:
        read = json.loads(body)
    except (ValueError, RecursionError):
        read = {}
    names = _COLUMNS.split(", ")[:-1]
    return Notice(**dict(zip(names, told, strict=True)), body=read if isinstance(read, dict) else {})
