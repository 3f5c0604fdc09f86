"""Opening a results database: recognising our own, refusing all others, bringing old ones up to date."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import stat
from contextlib import closing
from pathlib import Path
from typing import Final

from steelyard._internal.redact import error_words
from steelyard._internal.sqlite import transaction
from steelyard.errors import ConfigurationError
from steelyard.sinks.sqlite._migrations import migrate
from steelyard.sinks.sqlite._schema import APPLICATION_ID, SQLITE_SCHEMA, check_version

MEMORY: Final = ":memory:"
_FIRST_COLUMNS: Final = {
    "evaluations": {"record_id", "evaluated_at", "record_status", "reasked", "json"},
    "scores": {"id", "record_id", "inclusion_probability", "prompt_version", "json"},
}
"""By these a database of schema 1 is known, which had no application id."""


def absolute(path: str | os.PathLike[str]) -> str:
    """The path, fixed now: the process may change its folder before the first write."""
    given = os.fspath(path)
    return given if given == MEMORY else os.path.abspath(given)


def check_folder(path: str | os.PathLike[str]) -> None:
    """See whether a file could be made here.

    Raises:
        ConfigurationError: If its folder is missing or cannot be written.
    """
    folder = os.path.dirname(os.path.abspath(path))
    if not os.path.isdir(folder) or not os.access(folder, os.W_OK | os.X_OK):
        raise ConfigurationError(
            f"results cannot be written to {os.fspath(path)!r}: its folder is missing or cannot be written; "
            "make the folder, or give a path in another one"
        )


def claim_file(path: str) -> None:
    """Make the file, private, where there is none; refuse what is not ours, without touching it.

    Raises:
        ConfigurationError: If there is something else at this path.
    """
    if path == MEMORY:
        return
    file = Path(path)
    try:
        # Following such a link would make a file somewhere else.
        if file.is_symlink() and not file.exists():
            raise ConfigurationError(f"{path!r} is a link to a file that does not exist; give another path")
        # Refuses what is there, in one step: a check before it could be overtaken by another process.
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    except FileExistsError:
        check_ours(path)
    except OSError as error:
        raise ConfigurationError(
            f"results cannot be written to {path!r}: {error.strerror}; "
            "give SQLiteSink a path in a folder that can be written"
        ) from None


def check_ours(path: str) -> None:
    """Refuse a file that is not a results database, an empty one apart; it is only read.

    Raises:
        ConfigurationError: If it is another program's, or no database at all.
    """
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            raise ConfigurationError(
                f"results cannot be written to {path!r}: it is not a file; name another path"
            )
        # An empty file is what a process leaves that ended between making it and its first table.
        if not os.stat(path).st_size:
            return
        # Through SQLite only: to open and close the file besides it would drop this process's locks on it.
        with closing(sqlite3.connect(f"{Path(path).as_uri()}?mode=ro", uri=True, timeout=5)) as connection:
            _check_identity(connection, path)
    except (OSError, sqlite3.Error) as error:
        if getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_NOTADB:
            raise ConfigurationError(
                f"{path!r} is not a database; it is left alone, give another path"
            ) from None
        if getattr(error, "sqlite_errorcode", 0) & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            raise ConfigurationError(f"{path!r} is locked by another program; try again later") from None
        raise ConfigurationError(
            f"{path!r} cannot be read as a database: {error_words(error)}; name another path"
        ) from None


def prepare(connection: sqlite3.Connection, path: str) -> None:
    """Make the tables in a new database, migrate those of an older version, leave present ones alone.

    Raises:
        ConfigurationError: If the file was written by a newer version, or belongs to something else.
    """
    _check_identity(connection, path)
    version = _pragma(connection, "user_version")
    if version != SQLITE_SCHEMA:
        _migrated(connection, path, version)


def bring_up_to_date(path: str) -> None:
    """Migrate a file of an older version, for somebody who only reads.

    Raises:
        ConfigurationError: If it cannot be written.
    """
    try:
        with closing(sqlite3.connect(path, timeout=10, isolation_level=None)) as connection:
            prepare(connection, path)
    except sqlite3.Error as error:
        raise ConfigurationError(
            f"{path!r} is of an earlier version and cannot be brought up to date: {error_words(error)}; "
            "copy it to where it can be written"
        ) from None


def _migrated(connection: sqlite3.Connection, path: str, version: int) -> None:
    """Make or migrate the tables."""
    # Before the first table, or SQLite ignores it until the next full vacuum.
    if version == 0:
        connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
    connection.execute("PRAGMA journal_mode = WAL")
    with transaction(connection):
        version = _pragma(connection, "user_version")  # another process may have been first
        if version != SQLITE_SCHEMA:
            migrate(connection, path, version)
    if version == 1:
        with contextlib.suppress(sqlite3.OperationalError):  # somebody reads: the space is free all the same
            connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
            connection.execute("VACUUM")
        # Files of schema 1 were made with the permissions of the process.
        if path != MEMORY:
            os.chmod(path, 0o600)


def _pragma(connection: sqlite3.Connection, name: str) -> int:
    (value,) = connection.execute(f"PRAGMA {name}").fetchone()
    return int(value)


def _check_identity(connection: sqlite3.Connection, path: str) -> None:
    # The identity comes last: it is written together with the tables, maybe by another process, just now.
    empty = connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone() is None
    first = _is_first(connection)
    version, identity = _pragma(connection, "user_version"), _pragma(connection, "application_id")
    if identity == APPLICATION_ID:
        check_version(version, path)
        return
    if identity == 0 and version == 0 and empty:
        return
    if identity == 0 and version == 1 and first:
        return
    raise ConfigurationError(
        f"{path!r} is a database of another program; it is left alone, give SQLiteSink another path"
    )


def _is_first(connection: sqlite3.Connection) -> bool:
    for table, columns in _FIRST_COLUMNS.items():
        found = {name for _, name, *_ in connection.execute(f"PRAGMA table_info({table})")}
        if not columns <= found:
            return False
    return True
