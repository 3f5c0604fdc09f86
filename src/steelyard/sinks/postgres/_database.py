"""Connections to one Postgres database, never shown with a password, and what deletes old results there."""

from __future__ import annotations

import contextlib
import logging
import os
import socket
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final, Literal

import psycopg
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg_pool import ConnectionPool

from steelyard._internal.redact import error_words
from steelyard.errors import ConfigurationError
from steelyard.sinks._retention import Retention
from steelyard.sinks.postgres._schema import prepare, take_turns

SCHEMA: Final = "steelyard"
"""The schema our tables are in, beside whatever else is in the database."""
# Seconds; a database that is away must not hold up the sink for libpq's minutes.
_CONNECT: Final = 5
# Seconds; a lock that somebody has left would otherwise hold a statement for ever.
_STATEMENT: Final = 60
_inherited: list[object] = []
"""Pools of a parent process: their sockets are the parent's, and must not be closed here."""
# It logs each failed attempt with what the server says; we say once what it means for results.
logging.getLogger("psycopg.pool").addHandler(logging.NullHandler())
logging.getLogger("psycopg.pool").propagate = False
Row = tuple[Any, ...]
Connection = psycopg.Connection[Row]
_STEP: Final = 200
"""Turns deleted in one transaction: some milliseconds, so that writers and readers hardly notice."""


class Database:
    """One Postgres database with our schema in it.

    Nothing is connected before the first use. A connection that has broken is replaced by the pool; a forked
    child makes a pool of its own.

    Args:
        dsn: `postgresql://USER@HOST/DATABASE` or `key=value` words; what is not in it comes from libpq's own
            variables (`PGHOST`, `PGPASSWORD` and others) and files (`~/.pgpass`).
        read_only: Whether transactions may not write; tables are then not made.
        connections: How many there are at most.

    Raises:
        ConfigurationError: If this is not such an address. A password in it is not repeated.
    """

    def __init__(self, dsn: str, *, read_only: bool = False, connections: int = 4) -> None:
        try:
            parts = conninfo_to_dict(dsn)
        except psycopg.Error:
            raise ConfigurationError(
                "the Postgres address cannot be read; write postgresql://USER@HOST:PORT/DATABASE"
            ) from None
        host, port, name = (str(parts.get(key) or "") for key in ("host", "port", "dbname"))
        self.shown = f"postgresql://{host}{':' if port else ''}{port}/{name}"
        self._options = {"connect_timeout": _CONNECT, "application_name": "steelyard", **parts}
        self._read_only = read_only
        self._connections = connections
        self._pool: ConnectionPool[Connection] | None = None
        self._prepared = False
        self._pid = 0
        self._sockets: weakref.WeakSet[socket.socket] = weakref.WeakSet()

    @contextmanager
    def transaction(self) -> Iterator[Connection]:
        """One transaction, all or nothing.

        Raises:
            ConfigurationError: If the tables are of a newer version, or are not there and nobody may write.
            psycopg.Error: If the database cannot be reached or used.
        """
        with self._ready().connection(timeout=_CONNECT) as connection:
            if not self._prepared:
                with connection.transaction():
                    prepare(connection, SCHEMA, shown=self.shown, create=not self._read_only)
                self._prepared = True
            with connection.transaction():
                yield connection

    def interrupt(self) -> None:
        """End every wait for the server's answer, from any thread: one that never comes has no other end."""
        for shared in tuple(self._sockets):
            with contextlib.suppress(OSError):
                shared.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Close the connections; a later use opens others."""
        pool, self._pool = self._pool, None
        # In a forked child the sockets are the parent's.
        if pool is not None and self._pid == os.getpid():
            with contextlib.suppress(psycopg.Error):
                pool.close(timeout=1)

    def _ready(self) -> ConnectionPool[Connection]:
        if self._pool is not None and self._pid != os.getpid():
            _inherited.append(self._pool)
            self._pool = None
        if self._pool is None:
            self._pid = os.getpid()
            conninfo = make_conninfo("", **self._options)
            psycopg.connect(conninfo).close()  # says what is wrong, which the pool only logs
            self._pool = ConnectionPool(
                conninfo,
                min_size=1,
                max_size=self._connections,
                open=True,
                configure=self._configure,
                check=ConnectionPool.check_connection,
                timeout=_CONNECT,
                reconnect_timeout=_CONNECT,
                name="steelyard-postgres",
            )
        return self._pool

    def _configure(self, connection: Connection) -> None:
        # A number of our own for it: libpq's may mean another file by the time that it is shut.
        shared = socket.socket(fileno=os.dup(connection.fileno()))
        weakref.finalize(connection, shared.close)
        self._sockets.add(shared)
        connection.execute(sql.SQL("SET search_path = {}").format(sql.Identifier(SCHEMA)))
        connection.execute(f"SET statement_timeout = '{_STATEMENT}s'")
        if self._read_only:
            connection.execute("SET default_transaction_read_only = on")
            # What a page asks takes less time than to compile it, or, up to some 100,000 turns, than to start
            # workers for it.
            connection.execute("SET jit = off")
            connection.execute("SET parallel_setup_cost = 20000")
        connection.commit()


def cause_of(error: BaseException) -> Literal["unreachable", "unauthorized", "refused"]:
    """Whether the database is away, does not let us in, or refuses what was asked."""
    state = str(getattr(error, "sqlstate", None) or "")
    text = str(error)
    if state.startswith("28") or (not state and ("authentication failed" in text or "no password" in text)):
        return "unauthorized"
    if isinstance(error, psycopg.OperationalError) and (not state or state.startswith(("08", "57P"))):
        return "unreachable"
    return "refused"


def problem_of(error: BaseException) -> str:
    """What went wrong, by type and state, never in the server's words: they may quote a text."""
    if cause_of(error) != "refused":
        return {"unreachable": "it cannot be reached", "unauthorized": "it refuses the credentials"}[
            cause_of(error)
        ]
    state = getattr(error, "sqlstate", None)
    return f"{error_words(error)} {state}" if state else error_words(error)


def delete_oldest(connection: Connection, keep: Retention, *, now: float) -> int:
    """Delete the oldest turns that exceed a limit, at most 200, in the caller's transaction.

    Several processes may do so at once, beside others that write.

    Returns:
        How many were deleted; 0 where nothing exceeds a limit.

    Raises:
        psycopg.Error: If the database cannot be used.
    """
    take_turns(connection)
    records = _oldest(connection, keep, now)
    for table in ("scores", "screened", "bodies", "evaluations") if records else ():
        connection.execute(f"DELETE FROM {table} WHERE record_id = ANY(%s)", (records,))
    return len(records)


def stored_bytes(connection: Connection) -> int:
    """Size of the tables, with what is free in them."""
    row = connection.execute(
        "SELECT sum(pg_total_relation_size(name::regclass))::bigint "
        "FROM unnest(ARRAY['bodies', 'evaluations', 'scores', 'screened']) AS name"
    ).fetchone()
    return int(row[0]) if row else 0


def _oldest(connection: Connection, keep: Retention, now: float) -> list[str]:
    """Ids of the oldest turns that exceed a limit, at most a step of them."""
    excess = 0
    if keep.turns is not None:
        (turns,) = connection.execute("SELECT count(*) FROM evaluations").fetchone() or (0,)
        excess = min(_STEP, max(0, turns - keep.turns))
    before = float("-inf") if keep.seconds is None else now - keep.seconds
    oldest = connection.execute(
        "SELECT record_id, happened_at FROM evaluations ORDER BY happened_at, record_id LIMIT %s", (_STEP,)
    ).fetchall()
    return [record for place, (record, at) in enumerate(oldest) if place < excess or at < before]
