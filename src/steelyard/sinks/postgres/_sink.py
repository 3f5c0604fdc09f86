"""The sink that writes to Postgres."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Sequence

import psycopg

from steelyard._internal.logs import SafeLogger
from steelyard._internal.threads import DaemonExecutor
from steelyard.errors import ConfigurationError, InvalidRecord, SinkError
from steelyard.scores import Evaluation, Score
from steelyard.sinks._retention import Pruned, Retention, retention_from
from steelyard.sinks._tables import COUNT_REPLAY, EARLIER, TablesSink, bar_of, values_of
from steelyard.sinks.postgres._database import Database, cause_of, delete_oldest, problem_of, stored_bytes
from steelyard.sinks.postgres._schema import take_turns, write_evaluations

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

    def baseline(self, like: Score, *, now: float) -> float | None:
        """The bar of `Metric(threshold="baseline")`: what 95 % of earlier turns reached, if that is known."""
        try:
            with self._database.transaction() as connection:
                rows = connection.execute(_named(EARLIER), values_of(like, now=now)).fetchall()
        except (ConfigurationError, psycopg.Error):
            return None
        return bar_of(rows, lower_is_better=like.direction == "lower")

    def count_replay(self, day: str, *, most: int) -> bool:
        """Count one more call of an experiment on a day; False if all processes together made `most`.

        Raises:
            ConfigurationError: If the tables are of a newer version.
            psycopg.Error: If the database cannot be used.
        """
        with self._database.transaction() as connection:
            take_turns(connection)
            connection.execute(COUNT_REPLAY[0])
            found = connection.execute(_named(COUNT_REPLAY[1]), {"day": day, "most": most}).fetchone()
        return found is not None

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
        self._ledger.settle_evaluations(refused, "refused", "unstorable")
        self._ledger.settle_evaluations(evaluations, "written")

    def prune(self) -> Pruned:
        """Delete now what exceeds the limits of `keep`, and close the connections; blocks.

        Raises:
            ConfigurationError: If there are no results.
            SinkError: If the database cannot be used.
        """
        reading = Database(self._dsn, read_only=True, connections=1)
        try:
            with reading.transaction() as connection:
                before = stored_bytes(connection)
            turns = 0
            while self._keep and (deleted := self._delete_oldest(self._keep, time.time())):
                turns += deleted
            with self._database.transaction() as connection:
                (left,) = connection.execute("SELECT count(*) FROM evaluations").fetchone() or (0,)
                return Pruned(
                    turns=turns, left=left, bytes_before=before, bytes_after=stored_bytes(connection)
                )
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
            if self._monitors.is_due:
                self._store_counts()
        except psycopg.Error as error:
            raise SinkError(f"{self.name}: {problem_of(error)}", cause=cause_of(error)) from None
        self._delete_what_exceeds(self._delete_in_passing)
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
            return delete_oldest(connection, keep, now=now)

    def _store_counts(self) -> None:
        with self._database.transaction() as connection, connection.cursor() as cursor:
            cursor.executemany(
                "INSERT INTO ledger (run, host, pid, started_at, updated_at, counts) "
                "VALUES (%s, %s, %s, %s, %s, %s) ON CONFLICT (run) "
                "DO UPDATE SET updated_at = excluded.updated_at, counts = excluded.counts",
                self._monitors.rows(),
            )

    def _end(self) -> None:
        try:
            if self._monitors.rows():
                self._store_counts()
        except Exception as error:  # noqa: BLE001 - results are written; counts must not make them look lost
            _log.debug("%s: a Monitor's counts were not stored: %s", self.name, problem_of(error))
        self._database.close()


def _limits(keep: str | int | Retention) -> Retention:
    limits = retention_from(keep)
    if limits.bytes is not None:
        raise ConfigurationError(
            "keep: Postgres does not give the space of deleted rows back, so that a size says nothing there; "
            "give an age ('30d') or a number of turns"
        )
    return limits


def _named(query: str) -> str:
    """A query with its values as psycopg names them."""
    return re.sub(r":([a-z]+)", r"%(\1)s", query)
