"""The queries of a report over a file that `SQLiteSink` wrote."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from operator import methodcaller
from typing import Any, Final

import numpy as np

from steelyard._internal.redact import error_words
from steelyard.errors import ConfigurationError
from steelyard.report.queries import Scope, Totals, TurnFilter
from steelyard.report.stores._sqlite_turns import VERSIONS, chosen, has_labels
from steelyard.report.stores._tables import CHUNK, ResultsReader, values_of
from steelyard.report.stores._turns import COUNTED, Row, TurnQuery, attributes_of, evidence_of, totals_of
from steelyard.scores import Evaluation
from steelyard.sinks import connect_readonly, evaluation_of

_LATEST: Final = 1_000


_BY = {
    "cause": ("e.diagnosis", ""),
    "framework": ("e.framework", ""),
    "tenant": ("e.tenant", ""),
    "tag": ("t.value", "JOIN json_each(CASE WHEN json_valid(e.tags) THEN e.tags ELSE '[]' END) t"),
}


class SQLiteResults(ResultsReader):
    """A `ResultsReader` over a results file, which may still be written to."""

    tagged = "{table}.turn IN (SELECT turn FROM turn_keys WHERE kind = 'tag' AND value = :tag {part})"
    tagged_alone = True
    among = "IN (SELECT value FROM json_each(:records))"
    # The number of a row is in every index, its explanation in none.
    example = "min(s.rowid)"

    def __init__(self, path: str | os.PathLike[str] = "steelyard.db") -> None:
        """Open a file for reading.

        Raises:
            ConfigurationError: If there is no such file, or it holds no results of this version.
        """
        self._path = os.fspath(path)
        self._connection = connect_readonly(path)
        # A stored text may hold anything; a byte that is not UTF-8 must not end the report.
        self._connection.text_factory = methodcaller("decode", "utf-8", "replace")

    @property
    def name(self) -> str:
        """The file's path."""
        return self._path

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def totals(self, scope: Scope, *, brief: bool = False) -> Totals:
        where, values = self.of_turns(scope)
        with self.reading() as connection:
            if brief:
                return self._brief_totals(connection, scope)
            row = connection.execute(
                f"""SELECT count(*), count(e.record_status), min(e.happened_at), max(e.happened_at),
                    total(e.requests), total(e.prompt_tokens), total(e.completion_tokens), sum(e.cost),
                    count(e.cost), total(e.seconds), {COUNTED} FROM evaluations e WHERE {where}""",
                values,
            ).fetchone()
            return totals_of(row, self._durations(scope))

    def _brief_totals(self, connection: sqlite3.Connection, scope: Scope) -> Totals:
        """How many turns, and when; whether they have content is asked of the latest 1,000."""
        what, where = "count(*), min({0}.happened_at), max({0}.happened_at)", self.of_turns(scope)[0]
        query = f"SELECT {what.format('e')}, {COUNTED} FROM evaluations e WHERE {where}"
        # From the narrowest index that tells.
        if scope.evidence is None and scope.metric is not None:
            scores = self.of_scores(scope)[0]
            query = f"SELECT {what.format('s')} FROM scores s {self.with_turns(scope)} WHERE {scores}"
        elif scope.evidence is None and scope.tag is not None:
            query = f"""SELECT {what.format("k")} FROM turn_keys k WHERE kind = 'tag' AND value = :tag
                AND happened_at >= coalesce(:since, -1e300) AND happened_at < coalesce(:until, 1e300)"""
        found, first, last, *kinds = connection.execute(query, values_of(scope)).fetchone()
        (content,) = connection.execute(
            "SELECT count(record_status) FROM (SELECT record_status FROM evaluations "
            f"ORDER BY happened_at DESC LIMIT {_LATEST})"
        ).fetchone()
        evidence = evidence_of(found, kinds) if kinds else {}
        return Totals(turns=found, with_content=content, first=first, last=last, evidence=evidence)

    def _durations(self, scope: Scope) -> list[float]:
        """Seconds that evaluations took, in the median and at most for 95 %; none of no turns."""
        where, values = self.of_turns(scope)
        rows = self._connection.execute(f"SELECT e.duration FROM evaluations e WHERE {where}", values)
        taken = np.sort(np.array([took for (took,) in rows], float))
        return [float(taken[len(taken) * share // 100]) for share in (50, 95)] if len(taken) else []

    def chunks(
        self, connection: sqlite3.Connection, query: str, values: Mapping[str, Any]
    ) -> Iterator[Sequence[Row]]:
        rows = connection.execute(query, values)
        while chunk := rows.fetchmany(CHUNK):
            yield chunk

    def explained(self, connection: sqlite3.Connection, example: Any) -> str:
        """What was said of a score, by the number of its row."""
        found = connection.execute("SELECT explanation FROM scores WHERE rowid = ?", (example,)).fetchone()
        return str(found[0]) if found else ""

    def chosen(
        self, connection: sqlite3.Connection, wanted: TurnFilter, *, is_after: bool
    ) -> TurnQuery | None:
        return chosen(connection, wanted, is_after=is_after)

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """The one connection; SQLite's errors become one that says which file cannot be read."""
        try:
            yield self._connection
        except sqlite3.Error as error:
            raise ConfigurationError(
                f"{self._path!r} cannot be read: {error_words(error)}; check that it is a results file"
            ) from None

    def stored(self, connection: sqlite3.Connection, record_id: str) -> Evaluation | None:
        return evaluation_of(connection, record_id)

    def grouping(self, by: str) -> tuple[str, str, str]:
        """A column or an entry of the metadata.

        Raises:
            ConfigurationError: If a path of SQLite's JSON functions cannot name the entry.
        """
        if by in _BY:
            return (*_BY[by], by)
        if '"' in by:
            raise ConfigurationError(
                f"{by!r} cannot be the name of a metadata field here: it holds a quotation mark; "
                "choose another field"
            )
        value = f"CAST(json_extract({self.metadata}, :by) AS TEXT)"
        return f"CASE WHEN json_valid({self.metadata}) THEN {value} END", "", f'$."{by}"'

    def given(self, records: Sequence[str]) -> str:
        return json.dumps(list(records))

    def has_labels(self, connection: sqlite3.Connection) -> bool:
        return has_labels(connection)

    def versions(self, connection: sqlite3.Connection) -> Sequence[tuple[str, float | None]]:
        return connection.execute(VERSIONS).fetchall()

    def attributes_reader(self) -> Callable[[Any, Any, Any], dict[str, list[str]]]:
        """Tags and metadata come as JSON, the same for many turns, and slow to parse."""
        return cache(
            lambda tags, framework, metadata: attributes_of(_parsed(tags), framework, _parsed(metadata))
        )


def _parsed(text: str | None) -> Any:
    try:
        return json.loads(text) if text else None
    except (ValueError, RecursionError):
        return None
