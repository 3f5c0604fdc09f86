"""The tables of a spool file."""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path
from typing import Literal

from steelyard.online.queue._spool_file import APPLICATION_ID, VERSION, claim
from steelyard.online.selection import _shared_budget

Durability = Literal["normal", "full"]
"""SQLite's `synchronous`: `normal` survives a crash of the process, `full` also one of the machine."""

_TABLES = """
CREATE TABLE IF NOT EXISTS turns (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    record_id TEXT NOT NULL UNIQUE,
    state TEXT NOT NULL DEFAULT 'waiting',
    body TEXT,
    size INTEGER NOT NULL,
    attempts INTEGER NOT NULL DEFAULT 0,
    postponed INTEGER NOT NULL DEFAULT 0,
    not_before REAL NOT NULL DEFAULT 0,
    lease TEXT,
    lease_until REAL,
    cause TEXT
) STRICT;
CREATE INDEX IF NOT EXISTS turns_by_state ON turns (state, seq);
CREATE TABLE IF NOT EXISTS results (
    seq INTEGER PRIMARY KEY,
    body TEXT NOT NULL,
    lease TEXT,
    lease_until REAL
) STRICT;
CREATE TABLE IF NOT EXISTS parked (
    sink TEXT NOT NULL,
    seq INTEGER NOT NULL,
    lease TEXT,
    lease_until REAL NOT NULL,
    PRIMARY KEY (sink, seq)
) STRICT, WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS parked_by_result ON parked (seq);
CREATE TABLE IF NOT EXISTS totals (
    state TEXT NOT NULL,
    reason TEXT NOT NULL DEFAULT '',
    count INTEGER NOT NULL,
    PRIMARY KEY (state, reason)
) STRICT;
INSERT OR IGNORE INTO totals SELECT 'undelivered', '', COUNT(*) FROM results;
INSERT OR IGNORE INTO totals SELECT 'result_bytes', '', IFNULL(SUM(LENGTH(CAST(body AS BLOB))), 0)
    FROM results
    WHERE NOT EXISTS (SELECT 1 FROM totals WHERE state = 'result_bytes');
"""


def connect(path: Path, *, durability: Durability, busy_seconds: float) -> sqlite3.Connection:
    """Open a spool file, readable by its owner only, and create what is not there.

    Raises:
        ConfigurationError: If it is not a spool, or was made by a newer version.
        sqlite3.Error: If it cannot be opened.
        OSError: If it cannot be made.
    """
    claim(path)
    connection = sqlite3.connect(path, timeout=busy_seconds, isolation_level=None, check_same_thread=False)
    try:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute(f"PRAGMA synchronous = {durability.upper()}")
        connection.execute("PRAGMA secure_delete = ON")
        connection.executescript(_TABLES + _shared_budget.TABLES)
        _add_cause(connection)
        for name, value in (("application_id", APPLICATION_ID), ("user_version", VERSION)):
            # Only once: setting it waits for whoever writes, each time that a file is opened again.
            if connection.execute(f"PRAGMA {name}").fetchone() != (value,):
                connection.execute(f"PRAGMA {name} = {value}")
    except BaseException:
        connection.close()
        raise
    return connection


def _add_cause(connection: sqlite3.Connection) -> None:
    """Files of earlier versions do not know what their turns have died of."""
    if "cause" not in {name for _, name, *_ in connection.execute("PRAGMA table_info(turns)")}:
        # Another process may be quicker.
        with contextlib.suppress(sqlite3.OperationalError):
            connection.execute("ALTER TABLE turns ADD COLUMN cause TEXT")


def add(db: sqlite3.Connection, state: str, reason: str = "", *, count: int = 1) -> None:
    """Add to a total."""
    db.execute(
        "INSERT INTO totals VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET count = count + excluded.count",
        (state, reason, count),
    )
