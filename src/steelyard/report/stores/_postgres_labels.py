"""Labels in a table of their own beside the results in Postgres."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Final

import psycopg

from steelyard.errors import ConfigurationError
from steelyard.probing import JudgeCheck
from steelyard.report.checks import row_of_check
from steelyard.report.labels import COLUMNS, Label
from steelyard.sinks.postgres import Database, problem_of

_PUT: Final = """INSERT INTO labels AS l (record_id, metric, claim, value, note, who, labelled_at, drawn)
    VALUES (%s, %s, %s, %s, %s, %s, %s, %s)
    ON CONFLICT (record_id, coalesce(metric, ''), coalesce(claim, -1), who) DO UPDATE
    SET value = excluded.value, note = excluded.note, labelled_at = excluded.labelled_at,
        drawn = coalesce(excluded.drawn, l.drawn)
    WHERE excluded.labelled_at >= l.labelled_at"""


class PostgresLabels:
    """A `LabelStore` in a Postgres database."""

    def __init__(self, address: str) -> None:
        """Name the database; nothing is connected yet.

        Raises:
            ConfigurationError: If this is not an address.
        """
        self._database = Database(address, connections=2)

    def put(self, labels: Iterable[Label]) -> int:
        with self._connected() as connection:
            return sum(connection.execute(_PUT, label.row()).rowcount for label in labels)

    def remove(self, record_id: str, *, metric: str | None, claim: int | None, who: str) -> None:
        with self._connected() as connection:
            connection.execute(
                "DELETE FROM labels WHERE record_id = %s AND metric IS NOT DISTINCT FROM %s::text "
                "AND claim IS NOT DISTINCT FROM %s::integer AND who = %s",
                (record_id, metric, claim, who),
            )

    def put_check(self, check: JudgeCheck, *, checked_at: float) -> None:
        with self._connected() as connection:
            connection.execute(
                "INSERT INTO judge_checks (checked_at, judge, figures) VALUES (%s, %s, %s)",
                row_of_check(check, checked_at),
            )

    def of(self, record_id: str) -> list[Label]:
        return self._read("WHERE record_id = %s", record_id)

    def __iter__(self) -> Iterator[Label]:
        return iter(self._read(""))

    def _read(self, where: str, *values: str) -> list[Label]:
        with self._connected() as connection:
            rows = connection.execute(
                f"SELECT {', '.join(COLUMNS)} FROM labels {where} ORDER BY labelled_at, seq", values
            ).fetchall()
        return [Label.of_row(row) for row in rows]

    @contextmanager
    def _connected(self) -> Iterator[psycopg.Connection[Any]]:
        """One transaction, on a connection that is closed at its end: nobody closes a `LabelStore`."""
        try:
            with self._database.transaction() as connection:
                yield connection
        except psycopg.Error as error:
            shown = self._database.shown
            raise ConfigurationError(
                f"{shown!r} cannot be used for labels: {problem_of(error)}; check its address and rights"
            ) from None
        finally:
            self._database.close()
