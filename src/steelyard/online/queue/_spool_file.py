"""Which file may be a spool: our own are recognised, and what is not ours is refused and never changed."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import stat
from contextlib import closing
from pathlib import Path
from typing import Final

from steelyard.errors import ConfigurationError

APPLICATION_ID: Final = 0x53744C71
"""In the header of every spool file since schema 3."""
VERSION: Final = 3
_OLD_COLUMNS: Final = {"seq", "record_id", "state", "body", "lease_until"}


def claim(path: Path) -> None:
    """Make the file, private, where there is none; make ours private; refuse what is not ours.

    Raises:
        ConfigurationError: If there is something else at this path, or a spool of a newer version.
        OSError: If it cannot be made.
    """
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    except FileExistsError:
        check(path)
        for suffix in ("", "-wal", "-shm"):
            with contextlib.suppress(OSError):
                os.chmod(f"{path}{suffix}", 0o600)


def check(path: Path) -> None:
    """Refuse a file that is not a spool, an empty one apart; it is only read.

    A spool of ours that is damaged is not refused here: SQLite says so when it is opened.

    Raises:
        ConfigurationError: If it is another program's, no database at all, or of a newer version.
    """
    if path.is_symlink() or not stat.S_ISREG(path.stat().st_mode):
        raise ConfigurationError(f"the spool {str(path)!r} is not a file of its own; give another path")
    if not path.stat().st_size:
        return
    try:
        # Through SQLite only: to open and close the file besides it would drop this process's locks on it.
        address = f"{path.absolute().as_uri()}?mode=ro"
        with closing(sqlite3.connect(address, uri=True, timeout=5)) as connection:
            # The identity comes last: it is written together with the tables, maybe just now.
            tables = connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone()
            columns = {name for _, name, *_ in connection.execute("PRAGMA table_info(turns)")}
            (version,) = connection.execute("PRAGMA user_version").fetchone()
            (identity,) = connection.execute("PRAGMA application_id").fetchone()
    except sqlite3.DatabaseError as error:
        if getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_NOTADB:
            raise _foreign(path) from None
        return
    if identity == APPLICATION_ID:
        if version > VERSION:
            raise ConfigurationError(
                f"the spool {str(path)!r} is of schema {version}, newer than {VERSION}; update steelyard"
            )
        return
    if identity or version not in (0, 1, 2) or (tables and not columns >= _OLD_COLUMNS):
        raise _foreign(path)


def _foreign(path: Path) -> ConfigurationError:
    return ConfigurationError(
        f"{str(path)!r} is a file of another program; it is left alone, give the spool another path"
    )
