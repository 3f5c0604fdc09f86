"""SQLite: transactions on connections that begin none by themselves (`isolation_level=None`), and files."""

from __future__ import annotations

import os
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


def identity_of(path: str | os.PathLike[str]) -> tuple[int, int] | None:
    """Which file stands at a path now; None where there is none.

    A file that is removed or replaced while it is open can still be written, and nobody ever reads that.
    """
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino
