"""The sink that writes to Postgres."""

from __future__ import annotations

import logging
from collections.abc import Sequence

import psycopg

from steelyard._internal.threads import DaemonExecutor
from steelyard.errors import InvalidRecord, SinkError
from steelyard.scores import Evaluation
from steelyard.sinks._counts import ScoreCounts, ScoreLedger, State, key_of
from steelyard.sinks._monitor_ledger import MonitorLedger
from steelyard.sinks._sink import Monitored
from steelyard.sinks.postgres._database import Database, cause_of, problem_of
from steelyard.sinks.postgres._schema import write_evaluations

_log = logging.getLogger("steelyard.sinks")
_REFUSED = (
    InvalidRecord,
    OverflowError,
    psycopg.DataError,
    psycopg.IntegrityError,
    psycopg.NotSupportedError,
)
_SPARES = 4


class PostgresSink:
    """Writes Evaluations into a Postgres database that many machines share.

    The tables are those of `SQLiteSink`, in a schema named `steelyard`, which is made at the first write.
    Writing the same results again replaces their rows. A batch is one transaction; one Evaluation that cannot
    be stored is refused alone, and counted.
    """

    def __init__(self, dsn: str = "") -> None:
        """Nothing is connected yet; that happens at the first write, or with `open`.

        Args:
            dsn: `postgresql://USER@HOST:PORT/DATABASE`; what is not in it comes from libpq's own variables
                (`PGHOST`, `PGUSER`, `PGPASSWORD`, `PGDATABASE`) and `~/.pgpass`.

        Raises:
            ConfigurationError: If this is no address. A password in it is never shown.
        """
        self._database = Database(dsn, connections=2)
        self.name = f"postgres:{self._database.shown.removeprefix('postgresql://')}"
        self._executor = DaemonExecutor(1, name="steelyard-postgres", spares=_SPARES)
        self._ledger = ScoreLedger(self.name)
        self._monitors = MonitorLedger()

    @property
    def counts(self) -> ScoreCounts:
        """What became of the Scores this sink was given."""
        return self._ledger.counts

    def observe(self, monitor: Monitored) -> None:
        """Store what the Monitor says of turns that were not judged, in the `ledger` table."""
        self._monitors.observe(monitor)

    def open(self) -> None:
        """Connect now and make the tables, to find out whether results can be written there.

        Raises:
            ConfigurationError: If the tables are of a newer version.
            SinkError: If the database cannot be used.
        """
        self._write([])

    async def write(self, evaluations: Sequence[Evaluation]) -> None:
        """Write them in one transaction: all, or where the database fails none.

        Raises:
            ConfigurationError: If the tables are of a newer version.
            SinkError: If the database cannot be used.
        """
        try:
            refused = await self._executor.run(self._write, evaluations)
        except SinkError as error:
            self._settle(evaluations, "lost", error.cause)
            raise
        self._settle(refused, "refused", "unstorable")
        self._settle(evaluations, "written")

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
                refused = self._write_singly(evaluations)
            if self._monitors.is_due:
                self._store_counts()
        except psycopg.Error as error:
            raise SinkError(f"{self.name}: {problem_of(error)}", cause=cause_of(error)) from None
        return refused

    def _write_singly(self, evaluations: Sequence[Evaluation]) -> list[Evaluation]:
        """One of them cannot be stored: find out which."""
        refused = []
        with self._database.transaction() as connection:
            for evaluation in evaluations:
                try:
                    with connection.transaction():
                        write_evaluations(connection, [evaluation])
                except _REFUSED as error:
                    refused.append(evaluation)
                    problem = type(error).__name__
        if refused and not self.counts.refused:
            _log.warning(
                "%s: an evaluation cannot be stored (%s); further ones are only counted", self.name, problem
            )
        return refused

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

    def _settle(self, evaluations: Sequence[Evaluation], state: State, reason: str = "") -> None:
        """Give a state to the Scores that have none yet."""
        keys = [key_of(score, evaluation) for evaluation in evaluations for score in evaluation.scores]
        self._ledger.settle_all([key for key in keys if not self._ledger.is_settled(key)], state, reason)
