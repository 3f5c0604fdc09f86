"""Transactions of SQLite, on connections that begin none by themselves (`isolation_level=None`)."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[sqlite3.Connection]:
    """Write alone, and all or nothing: what ends with an error, whatever error, has written nothing.

    Raises:
        sqlite3.Error: If the file is locked by others for too long, or cannot be written.
    """
    # At once: a transaction that reads first and writes then may find that others have written meanwhile,
    # and fail however long it waits.
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield connection
        connection.execute("COMMIT")
    except BaseException:
        # SQLite has rolled some errors back itself, a full disk among them.
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
