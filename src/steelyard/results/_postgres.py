"""One Postgres database with our tables: its connections, what is written, and what is read."""

from __future__ import annotations

import contextlib
import logging
import os
import re
import socket
import weakref
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache, partial
from typing import Any, Final, Literal

import psycopg
from psycopg import Cursor, sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg_pool import ConnectionPool

from steelyard._internal.forks import ForkLock
from steelyard._internal.text import error_words
from steelyard.errors import ConfigurationError
from steelyard.results._earlier import copy_results
from steelyard.results._schema import Execute, rows_of, schema, screened_rows, upsert
from steelyard.results._store import CHUNK, Row, Store, TurnQuery, conditions_of
from steelyard.results.queries import TurnFilter
from steelyard.scores import Evaluation

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
Connection = psycopg.Connection[tuple[Any, ...]]
_VERSION: Final = 8
"""Of the tables, in `schema_version`."""
_TYPES: Final = {
    **{"serial": "bigserial", "blob": "bytea", "real": "double precision", "json": "jsonb"},
    "compact": "",
}
_LOCK: Final = 0x53544C59
"""Of Postgres's advisory locks: "STLY". Who holds it writes bodies, so that their ids grow as they commit."""
# One colon alone: two of them are a cast.
_NAMED: Final = re.compile(r"(?<!:):([a-z][a-z0-9_]*)")


class Database:
    """One Postgres database with our schema in it; `read_only` makes no tables.

    Nothing is connected before the first use. A connection that has broken is replaced by the pool; a forked
    child makes a pool of its own. A password in an address that is none is not repeated.
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
        self._choosing = ForkLock()
        self._sockets: weakref.WeakSet[socket.socket] = weakref.WeakSet()

    @contextmanager
    def transaction(self) -> Iterator[Connection]:
        """One transaction, all or nothing."""
        with self._ready().connection(timeout=_CONNECT) as connection:
            if not self._prepared:
                with connection.transaction():
                    _prepare(connection, self.shown, create=not self._read_only)
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
        with self._choosing:
            if self._pool is not None and self._pid != os.getpid():
                _inherited.append(self._pool)
                self._pool = None
            pool = self._pool
        if pool is None:
            conninfo = make_conninfo("", **self._options)
            psycopg.connect(conninfo).close()  # says what is wrong, which the pool only logs
            with self._choosing:  # of threads that come at once, one makes the pool
                if self._pool is None:
                    self._pid = os.getpid()
                    self._pool = self._new_pool(conninfo)
                pool = self._pool
        pool.open()  # if it is not
        return pool

    def _new_pool(self, conninfo: str) -> ConnectionPool[Connection]:
        return ConnectionPool(
            conninfo,
            min_size=1,
            max_size=self._connections,
            open=False,
            configure=self._configure,
            check=ConnectionPool.check_connection,
            timeout=_CONNECT,
            reconnect_timeout=_CONNECT,
            name="steelyard-postgres",
        )

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


def _prepare(connection: Connection, shown: str, *, create: bool) -> None:
    """Make the tables, in the caller's transaction; processes may do so at once."""
    if create:
        take_turns(connection)
        if connection.execute("SELECT to_regnamespace(%s)", (SCHEMA,)).fetchone() == (None,):
            connection.execute(sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(SCHEMA)))
        connection.execute("CREATE TABLE IF NOT EXISTS schema_version (version integer NOT NULL)")
    version = 0
    if connection.execute("SELECT to_regclass('schema_version')").fetchone() != (None,):
        row = connection.execute("SELECT coalesce(max(version), 0) FROM schema_version").fetchone()
        version = row[0] if row else 0
    if version > _VERSION:
        raise ConfigurationError(
            f"the tables in {shown!r} have version {version}, newer than {_VERSION}; update steelyard"
        )
    if version < _VERSION and not create:
        raise ConfigurationError(
            f"the tables in {shown!r} are of an earlier version; start your application once with this one, "
            "and PostgresSink brings them up to date"
            if version
            else f"there are no results in {shown!r} yet; PostgresSink makes the tables; "
            "run your application first"
        )
    if version == 0:
        _make(connection)
    elif version < _VERSION:
        _bring_up_to_date(connection)
    if version < _VERSION:
        connection.execute("INSERT INTO schema_version VALUES (%s)", (_VERSION,))


def _make(connection: Connection) -> None:
    for statement in schema(**_TYPES):
        connection.execute(statement)


def _bring_up_to_date(connection: Connection) -> None:
    # What every old turn needs takes longer than a statement may otherwise.
    connection.execute("SET LOCAL statement_timeout = 0")
    for (name,) in connection.execute(
        "SELECT c.relname FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid "
        "WHERE c.relnamespace = %s::regnamespace "
        "AND NOT EXISTS (SELECT 1 FROM pg_constraint k WHERE k.conindid = i.indexrelid)",
        (SCHEMA,),
    ).fetchall():
        connection.execute(sql.SQL("DROP INDEX {}").format(sql.Identifier(name)))
    copy_results(
        executing(connection), columns=partial(_columns, connection), make=partial(_make, connection)
    )


def _columns(connection: Connection, table: str) -> list[str]:
    rows = connection.execute(
        "SELECT column_name FROM information_schema.columns WHERE table_schema = %s AND table_name = %s",
        (SCHEMA, table),
    ).fetchall()
    return [name for (name,) in rows]


def take_turns(connection: Connection) -> None:
    """Wait for whoever else writes; then others wait until the caller's transaction ends."""
    connection.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))


@lru_cache
def named(query: str) -> str:
    """A query with its values named as psycopg names them: `%(since)s` for `:since`."""
    return _NAMED.sub(r"%(\1)s", query.replace("%", "%%"))


def executing(connection: Connection) -> Execute:
    """Runs statements whose values are named as in `:since`."""
    return lambda query, values: connection.execute(named(query), values)


def write_evaluations(connection: Connection, evaluations: Sequence[Evaluation]) -> None:
    """Insert Evaluations, or replace the rows of the same results; in the caller's transaction."""
    bodies, firsts, scores, screened = [], [], [], []
    for evaluation in {one.record_id: one for one in evaluations}.values():
        first, rows, packed = rows_of(evaluation)
        bodies.append((first["record_id"], packed))
        firsts.append(first)
        scores.append(rows)
        screened += screened_rows(evaluation, first)
    if not bodies:
        return
    # Who follows what is written must not pass over a number.
    take_turns(connection)
    with connection.cursor() as cursor:
        cursor.executemany(
            "INSERT INTO bodies (record_id, body) VALUES (%s, %s) RETURNING id", bodies, returning=True
        )
        numbers = _returned(cursor)
        cursor.executemany(
            named(f"{upsert('evaluations', 'record_id', firsts[0])} RETURNING turn"),
            [{**first, "body": number} for first, number in zip(firsts, numbers, strict=True)],
            returning=True,
        )
        turns = _returned(cursor)
        all_scores = [
            {**row, "turn": turn, "body": number}
            for rows, turn, number in zip(scores, turns, numbers, strict=True)
            for row in rows
        ]
        if all_scores:
            cursor.executemany(named(upsert("scores", "id", all_scores[0])), all_scores)
        if screened:
            cursor.executemany(named(upsert("screened", "record_id, metric", screened[0])), screened)
        cursor.execute(
            "DELETE FROM bodies b WHERE record_id = ANY(%(records)s) AND NOT id = ANY(%(new)s) "
            "AND NOT EXISTS (SELECT 1 FROM scores s WHERE s.record_id = b.record_id AND s.body = b.id)",
            {"records": [record for record, _ in bodies], "new": numbers},
        )


def _returned(cursor: Cursor[Any]) -> list[int]:
    found = []
    while True:
        found.append(cursor.fetchone()[0])  # type: ignore[index]
        if not cursor.nextset():
            return found


_TAGS = "jsonb_array_elements_text(CASE jsonb_typeof(e.tags) WHEN 'array' THEN e.tags ELSE '[]' END) t(value)"
_OF_TURN = {
    "tag": f"EXISTS (SELECT 1 FROM {_TAGS} WHERE t.value {{}})",
    "version": "e.metadata ->> 'version' {}",
    "route": "e.metadata ->> 'route' {}",
    "text": "(e.question ILIKE :text ESCAPE '!' OR e.answer ILIKE :text ESCAPE '!')",
}


class PostgresStore(Store):
    """A `Store` over a Postgres database; every look is a transaction that only reads."""

    tagged = "e.tags @> jsonb_build_array(:tag::text)"
    among = "= ANY(:records)"
    tags = f"CROSS JOIN {_TAGS}"
    versions = """SELECT metadata ->> 'version', min(happened_at) FROM evaluations
        WHERE metadata ->> 'version' IS NOT NULL GROUP BY 1 ORDER BY 2 DESC LIMIT 400"""

    def __init__(self, address: str) -> None:
        self._address, self._database = address, Database(address, read_only=True)
        self.name = self._database.shown
        try:
            with self.reading():
                pass
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        self._database.close()

    @contextmanager
    def reading(self) -> Iterator[Execute]:
        with _transaction(self._database, "cannot be read") as connection:
            yield executing(connection)

    @contextmanager
    def writing(self) -> Iterator[Execute]:
        database = Database(self._address, connections=1)
        try:
            with _transaction(database, "cannot be used for labels") as connection:
                yield executing(connection)
        finally:
            database.close()

    def chunks(self, query: str, values: Mapping[str, Any]) -> Iterator[Sequence[Row]]:
        # A named cursor stays in the server.
        with (
            _transaction(self._database, "cannot be read") as connection,
            connection.cursor(name="chunks") as cursor,
        ):
            cursor.execute(named(query), values)
            while chunk := cursor.fetchmany(CHUNK):
                yield chunk

    def chosen(self, execute: Execute, wanted: TurnFilter) -> TurnQuery:
        """What is asked for as it is: Postgres itself knows by what index to find it."""
        return TurnQuery(where=conditions_of(wanted, _OF_TURN), values=wanted.parameters())

    def given(self, records: Sequence[str]) -> list[str]:
        return list(records)

    def field(self, by: str) -> tuple[str, str]:
        return "e.metadata ->> :by::text", by


@contextmanager
def _transaction(database: Database, fails: str) -> Iterator[psycopg.Connection[Any]]:
    try:
        with database.transaction() as connection:
            yield connection
    except psycopg.Error as error:
        raise ConfigurationError(
            f"{database.shown!r} {fails}: {problem_of(error)}; check its address and rights"
        ) from None
