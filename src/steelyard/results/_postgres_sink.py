"""The sink that writes to Postgres."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import psycopg

from steelyard._internal.logs import SafeLogger
from steelyard._internal.threads import DaemonExecutor
from steelyard.errors import ConfigurationError, InvalidRecord, SinkError
from steelyard.results._postgres import (
    Connection,
    Database,
    cause_of,
    executing,
    named,
    problem_of,
    take_turns,
    write_evaluations,
)
from steelyard.results._schema import STORE_COUNTS, Execute
from steelyard.results._table_sink import Pruned, Retention, TablesSink, oldest_beyond, retention_from
from steelyard.scores import Evaluation

_log = SafeLogger("steelyard.sinks")
_REFUSED = (
    InvalidRecord,
    OverflowError,
    psycopg.DataError,
    psycopg.IntegrityError,
    psycopg.NotSupportedError,
)
_SPARES = 4


class PostgresSink(TablesSink):
    """Writes Evaluations into a Postgres database that many machines share.

    The tables are those of `SQLiteSink`, in a schema named `steelyard`, which is made at the first write.
    Writing the same results again replaces their rows. A batch is one transaction; one Evaluation that cannot
    be stored is refused alone, and counted.
    """

    _failures = (ConfigurationError, psycopg.Error)

    def __init__(self, dsn: str = "", *, keep: str | int | Retention | None = None) -> None:
        """Nothing is connected yet; that happens at the first write, or with `open`.

        Args:
            dsn: `postgresql://USER@HOST:PORT/DATABASE`; what is not in it comes from libpq's own variables
                (`PGHOST`, `PGUSER`, `PGPASSWORD`, `PGDATABASE`) and `~/.pgpass`.
            keep: What to keep: an age (`"30d"`, `"12h"`), a number of turns (`100_000`), or both
                (`"30d, 100000 turns"`). The oldest turns beyond it are deleted while the sink writes, at most
                200 at a time; their space is used again. Everything is kept by default.

        Raises:
            ConfigurationError: If this is not an address, or `keep` means nothing here. A password in the
                address is never shown.
        """
        limits = None if keep is None else _limits(keep)
        self._dsn = dsn
        self._database = Database(dsn, connections=2)
        super().__init__(f"postgres:{self._database.shown.removeprefix('postgresql://')}", limits)
        self._executor = DaemonExecutor(1, name="steelyard-postgres", spares=_SPARES)

    def open(self) -> None:
        """Connect now and make the tables, to find out whether results can be written there.

        Raises:
            ConfigurationError: If the tables are of a newer version.
            SinkError: If the database cannot be used.
        """
        self._write([])

    async def check(self) -> None:
        """Connect and make the tables, as `open` does.

        Raises:
            ConfigurationError: If the tables are of a newer version.
            SinkError: If the database cannot be used.
        """
        await self._executor.run(self.open)

    @contextmanager
    def _reading(self) -> Iterator[Execute]:
        with self._database.transaction() as connection:
            yield executing(connection)

    def _alone(self, work: Callable[[Execute], bool]) -> bool:
        with self._database.transaction() as connection:
            take_turns(connection)
            return work(executing(connection))

    async def write(self, evaluations: Sequence[Evaluation]) -> None:
        """Write them in one transaction: all, or none if the database fails.

        Raises:
            ConfigurationError: If the tables are of a newer version.
            SinkError: If the database cannot be used.
        """
        try:
            refused = await self._executor.run(self._write, evaluations)
        except SinkError as error:
            self._ledger.settle_evaluations(evaluations, "lost", error.cause)
            raise
        except asyncio.CancelledError:
            # Its thread would wait for a server that has gone without a word until the program ends.
            self._database.interrupt()
            raise
        self._settle(evaluations, refused)

    def prune(self) -> Pruned:
        """Delete now what exceeds the limits of `keep`, and close the connections; blocks.

        Raises:
            ConfigurationError: If there are no results.
            SinkError: If the database cannot be used.
        """
        reading = Database(self._dsn, read_only=True, connections=1)
        try:
            with reading.transaction() as connection:
                before = _stored_bytes(connection)
            turns = 0
            while self._keep and (deleted := self._delete_oldest(self._keep, time.time())):
                turns += deleted
            with self._database.transaction() as connection:
                left, after = _count_turns(connection), _stored_bytes(connection)
            return Pruned(turns=turns, left=left, bytes_before=before, bytes_after=after)
        except psycopg.Error as error:
            raise SinkError(f"{self.name}: {problem_of(error)}", cause=cause_of(error)) from None
        finally:
            reading.close()
            self._database.close()

    async def aclose(self) -> None:
        """Store the last counts and close the connections; a later write opens others."""
        await self._executor.run(self._end)
        self._executor.shutdown()

    def _write(self, evaluations: Sequence[Evaluation]) -> list[Evaluation]:
        """Returns those that cannot be stored."""
        refused: list[Evaluation] = []
        try:
            try:
                with self._database.transaction() as connection:
                    write_evaluations(connection, evaluations)
            except _REFUSED:
                # Only now: a transaction for each would take many times as long for the many that are well.
                refused = self._write_singly(evaluations)
        except psycopg.Error as error:
            raise SinkError(f"{self.name}: {problem_of(error)}", cause=cause_of(error)) from None
        self._see_to_the_rest()
        return refused

    def _write_singly(self, evaluations: Sequence[Evaluation]) -> list[Evaluation]:
        """One of them cannot be stored: find out which."""
        refused, problem = list[Evaluation](), ""
        with self._database.transaction() as connection:
            for evaluation in evaluations:
                try:
                    with connection.transaction():
                        write_evaluations(connection, [evaluation])
                except _REFUSED as error:
                    refused.append(evaluation)
                    problem = type(error).__name__
        self._say_unstorable(refused, problem)
        return refused

    def _delete_in_passing(self, keep: Retention, now: float) -> int:
        try:
            return self._delete_oldest(keep, now)
        except psycopg.Error as error:
            # What was to be written is written: old results must not make it look lost.
            _log.warning(
                "%s: old results cannot be deleted: %s; give its user the right to delete",
                self.name,
                problem_of(error),
            )
            return 0

    def _delete_oldest(self, keep: Retention, now: float) -> int:
        with self._database.transaction() as connection:
            take_turns(connection)
            records = oldest_beyond(executing(connection), keep, now=now, turns=_count_turns(connection))
            for table in ("scores", "screened", "bodies", "evaluations") if records else ():
                connection.execute(f"DELETE FROM {table} WHERE record_id = ANY(%s)", (records,))
            return len(records)

    def _put_counts(self, rows: Sequence[Mapping[str, Any]]) -> None:
        with self._database.transaction() as connection, connection.cursor() as cursor:
            cursor.executemany(named(STORE_COUNTS), rows)

    def _end(self) -> None:
        self._store_counts()
        self._database.close()


def _limits(keep: str | int | Retention) -> Retention:
    limits = retention_from(keep)
    if limits.bytes is not None:
        raise ConfigurationError(
            "keep: Postgres does not give the space of deleted rows back, so that a size says nothing there; "
            "give an age ('30d') or a number of turns"
        )
    return limits


def _count_turns(connection: Connection) -> int:
    row = connection.execute("SELECT count(*) FROM evaluations").fetchone()
    return int(row[0]) if row else 0


def _stored_bytes(connection: Connection) -> int:
    """Size of the tables, with what is free in them."""
    row = connection.execute(
        "SELECT sum(pg_total_relation_size(name::regclass))::bigint "
        "FROM unnest(ARRAY['bodies', 'evaluations', 'scores', 'screened']) AS name"
    ).fetchone()
    return int(row[0]) if row else 0
