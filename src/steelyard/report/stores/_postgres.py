"""The queries of a report over a database that `PostgresSink` writes."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import psycopg

from steelyard.errors import ConfigurationError
from steelyard.report.queries import Scope, Totals, TurnFilter
from steelyard.report.stores._tables import CHUNK, ResultsReader
from steelyard.report.stores._turns import (
    COUNTED,
    Row,
    TurnQuery,
    attributes_of,
    conditions_of,
    evidence_of,
    totals_of,
)
from steelyard.scores import Evaluation
from steelyard.sinks.postgres import Database, evaluation_in, problem_of

# One colon alone: two of them are a cast.
_NAMED = re.compile(r"(?<!:):([a-z][a-z0-9]*)")
_BY = {
    "cause": ("e.diagnosis", ""),
    "framework": ("e.framework", ""),
    "tenant": ("e.tenant", ""),
    "tag": (
        "t.value",
        "CROSS JOIN jsonb_array_elements_text("
        "CASE jsonb_typeof(e.tags) WHEN 'array' THEN e.tags ELSE '[]' END) t(value)",
    ),
}
_TAGGED = "e.tags @> jsonb_build_array(:tag::text)"
_OF_TURN = {
    "tag": "EXISTS (SELECT 1 FROM jsonb_array_elements_text("
    "CASE jsonb_typeof(e.tags) WHEN 'array' THEN e.tags ELSE '[]' END) t(value) WHERE t.value {})",
    "version": "e.metadata ->> 'version' {}",
    "route": "e.metadata ->> 'route' {}",
    "text": "(e.question ILIKE :text ESCAPE '!' OR e.answer ILIKE :text ESCAPE '!')",
}

_VERSIONS = """SELECT metadata ->> 'version', min(happened_at) FROM evaluations
    WHERE metadata ->> 'version' IS NOT NULL GROUP BY 1 ORDER BY 2 DESC LIMIT 400"""


class PostgresResults(ResultsReader):
    """A `ResultsReader` over a Postgres database; every call is a transaction that only reads."""

    tagged = _TAGGED
    among = "= ANY(:records)"

    def __init__(self, address: str) -> None:
        """Connect for reading.

        Raises:
            ConfigurationError: If the database cannot be reached, or holds no results of this version.
        """
        self._database = Database(address, read_only=True)
        try:
            with self.reading():
                pass
        except BaseException:
            self._database.close()
            raise

    @property
    def name(self) -> str:
        """The address, without user and password."""
        return self._database.shown

    def close(self) -> None:
        """Close the connections."""
        self._database.close()

    def totals(self, scope: Scope, *, brief: bool = False) -> Totals:
        where, values = self.of_turns(scope)
        columns = "count(*), count(e.record_status), min(e.happened_at), max(e.happened_at)"
        if not brief:
            columns += """, coalesce(sum(e.requests), 0), coalesce(sum(e.prompt_tokens), 0),
                coalesce(sum(e.completion_tokens), 0), sum(e.cost), count(e.cost),
                coalesce(sum(e.seconds), 0),
                percentile_disc(ARRAY[0.5, 0.95]) WITHIN GROUP (ORDER BY e.duration)"""
        query = f"SELECT {columns}, {COUNTED} FROM evaluations e WHERE {where}"
        with self.reading() as connection:
            row = connection.execute(self.statement(query), values).fetchone()
        assert row is not None  # a count is one row, also of nothing
        if brief:
            found = evidence_of(row[0], row[-4:])
            return Totals(turns=row[0], with_content=row[1], first=row[2], last=row[3], evidence=found)
        return totals_of(row, row[10] or ())

    def chunks(
        self, connection: psycopg.Connection[Any], query: str, values: Mapping[str, Any]
    ) -> Iterator[Sequence[Row]]:
        # A named cursor stays in the server.
        with connection.cursor(name="chunks") as cursor:
            cursor.execute(self.statement(query), values)
            while chunk := cursor.fetchmany(CHUNK):
                yield chunk

    def chosen(self, _connection: Any, wanted: TurnFilter, *, is_after: bool) -> TurnQuery:
        """What is asked for as it is: Postgres itself knows by what index to find it."""
        return TurnQuery(where=conditions_of(wanted, _OF_TURN), values=wanted.parameters())

    @contextmanager
    def reading(self) -> Iterator[psycopg.Connection[Any]]:
        """One transaction; Postgres's errors become one that says which database cannot be read."""
        try:
            with self._database.transaction() as connection:
                yield connection
        except psycopg.Error as error:
            raise ConfigurationError(
                f"{self.name!r} cannot be read: {problem_of(error)}; check its address and rights"
            ) from None

    def stored(self, connection: psycopg.Connection[Any], record_id: str) -> Evaluation | None:
        return evaluation_in(connection, record_id)

    def statement(self, query: str) -> str:
        """A query with its values named as psycopg names them."""
        return _NAMED.sub(r"%(\1)s", query.replace("%", "%%"))

    def grouping(self, by: str) -> tuple[str, str, str]:
        """A column or an entry of the metadata."""
        return (*_BY.get(by, ("e.metadata ->> :by::text", "")), by)

    def given(self, records: Sequence[str]) -> list[str]:
        return list(records)

    def versions(self, connection: Any) -> Sequence[tuple[str, float | None]]:
        return list(connection.execute(_VERSIONS).fetchall())

    def attributes_reader(self) -> Callable[[Any, Any, Any], dict[str, list[str]]]:
        """Tags and metadata come as Python's own lists and mappings."""
        return attributes_of
