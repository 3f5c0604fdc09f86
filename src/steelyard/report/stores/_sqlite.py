"""The queries of a report over a file that `SQLiteSink` wrote."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from operator import methodcaller
from typing import Any, Final

import numpy as np

from steelyard._internal.redact import error_words
from steelyard.errors import ConfigurationError
from steelyard.report._sums import Adder
from steelyard.report.queries import (
    Aggregates,
    Missing,
    Scope,
    Totals,
    TurnFilter,
    attributes_of,
)
from steelyard.report.stores._sqlite_hours import (
    COLUMNS,
    TAGGED,
    Hours,
    add_hours,
    count_missing,
    count_scores,
    hours_of,
)
from steelyard.report.stores._sqlite_turns import VERSIONS, chosen, has_labels
from steelyard.report.stores._tables import CHUNK, SCORED, ResultsReader, owner_of, values_of, with_turns
from steelyard.report.stores._turns import COUNTED, Choice, evidence_of, totals_of
from steelyard.scores import Evaluation
from steelyard.sinks import connect_readonly, evaluation_of
from steelyard.sinks.sqlite.sums import has_keys, has_sums

_LATEST: Final = 1_000
_OF_TAG: Final = """FROM turn_keys k WHERE k.kind = 'tag' AND k.value = :tag
    AND k.happened_at >= coalesce(:since, -1e300) AND k.happened_at < coalesce(:until, 1e300)"""


def brief_totals(connection: sqlite3.Connection, scope: Scope, *, turns: str, scores: str) -> Totals:
    """How many turns, and when; whether they have content is asked of the latest 1,000."""
    found, first, last, *kinds = _extent(connection, scope, turns, scores)
    (content,) = connection.execute(
        "SELECT count(record_status) FROM (SELECT record_status FROM evaluations "
        f"ORDER BY happened_at DESC LIMIT {_LATEST})"
    ).fetchone()
    evidence = evidence_of(found, kinds) if kinds else {}
    return Totals(turns=found, with_content=content, first=first, last=last, evidence=evidence)


def _extent(connection: sqlite3.Connection, scope: Scope, turns: str, scores: str) -> Sequence[Any]:
    """How many turns, when the first and when the last; from the narrowest index that tells."""
    what = "count(*), min({0}.happened_at), max({0}.happened_at)"
    query = f"SELECT {what.format('e')}, {COUNTED} FROM evaluations e WHERE {turns}"
    if scope.evidence is not None:
        return tuple(connection.execute(query, values_of(scope)).fetchone())
    if scope.tag is not None and has_keys(connection) and (scope.metric is None or has_sums(connection)):
        if scope.metric is not None:
            return _extent_of_tag(connection, scope)
        query = f"SELECT {what.format('k')} {_OF_TAG}"
    elif scope.metric is not None and scope.tag is None:
        query = f"SELECT {what.format('s')} FROM scores s WHERE {scores}"
    found: Sequence[Any] = connection.execute(query, values_of(scope)).fetchone()
    return found


def _extent_of_tag(connection: sqlite3.Connection, scope: Scope) -> Sequence[Any]:
    """The turns of a tag that have a metric: counted by sums, the first and the last one looked up."""
    with hours_of(connection, scope) as hours:
        found = 0 if hours is None else count_scores(connection, hours)
    ends: list[float] = []
    # `+metric` keeps SQLite to the index by record; by metric it would go through all of its scores.
    for order in ("ASC", "DESC") if found else ():
        row = connection.execute(
            f"""SELECT k.happened_at {_OF_TAG} AND EXISTS
                (SELECT 1 FROM scores WHERE record_id = k.record_id AND +metric = :metric)
                ORDER BY k.happened_at {order} LIMIT 1""",
            values_of(scope),
        ).fetchone()
        ends += row or ()
    return (found, *ends) if len(ends) == 2 else (found, None, None)


def missing_of_tag(connection: sqlite3.Connection, hours: Hours) -> list[Missing]:
    """Counts of a tag's scores without a value, most frequent first."""
    counts = count_missing(connection, hours)
    return [
        Missing(
            metric=metric,
            status=status,
            cause=cause,
            explanation=explanation_of(connection, _example(connection, (metric, status, cause))),
            count=count,
        )
        for (metric, status, cause), count in sorted(counts.items(), key=lambda one: (-one[1], one[0]))
    ]


def _example(connection: sqlite3.Connection, like: tuple[str, str, str]) -> int:
    row = connection.execute(
        "SELECT rowid FROM scores WHERE metric = :metric AND status = :status AND status != 'scored' "
        "AND (cause = :cause OR cause IS NULL AND :cause = 'unknown') LIMIT 1",
        dict(zip(("metric", "status", "cause"), like, strict=True)),
    ).fetchone()
    return row[0] if row else 0


def explanation_of(connection: sqlite3.Connection, row: int) -> str:
    """What was said of a score; empty where it is gone."""
    found = connection.execute("SELECT explanation FROM scores WHERE rowid = ?", (row,)).fetchone()
    return str(found[0]) if found else ""


_BY = {
    "cause": ("e.diagnosis", ""),
    "framework": ("e.framework", ""),
    "tenant": ("e.tenant", ""),
    "tag": ("t.value", "JOIN json_each(CASE WHEN json_valid(e.tags) THEN e.tags ELSE '[]' END) t"),
}


class SQLiteResults(ResultsReader):
    """A `ResultsReader` over a results file, which may still be written to."""

    tagged = TAGGED
    among = "e.turn IN (SELECT value FROM json_each(:turns))"
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
                return brief_totals(connection, scope, turns=where, scores=self.of_scores(scope)[0])
            row = connection.execute(
                f"""SELECT count(*), count(e.record_status), min(e.happened_at), max(e.happened_at),
                    total(e.requests), total(e.prompt_tokens), total(e.completion_tokens), sum(e.cost),
                    count(e.cost), total(e.seconds), {COUNTED} FROM evaluations e WHERE {where}""",
                values,
            ).fetchone()
            return totals_of(row, self._durations(scope))

    def _durations(self, scope: Scope) -> list[float]:
        """Seconds that evaluations took, in the median and at most for 95 %; none of no turns."""
        where, values = self.of_turns(scope)
        rows = self._connection.execute(f"SELECT e.duration FROM evaluations e WHERE {where}", values)
        taken = np.sort(np.array([took for (took,) in rows], float))
        return [float(taken[len(taken) * share // 100]) for share in (50, 95)] if len(taken) else []

    def sums(self, scope: Scope, *, start: float, width: float, by: str | None = None) -> Aggregates:
        where, values = self.of_scores(scope)
        with self.reading() as connection:
            groups = self.groups(connection, scope, by) if by != "judge" else None
            adder = Adder(start=start, width=width, groups=groups)
            if by is None and start % 3600 == width % 3600 == 0:
                with hours_of(connection, scope) as hours:
                    if hours is not None:
                        add_hours(connection, hours, adder)
                        return adder.found()
            rows = connection.execute(
                f"SELECT {COLUMNS.format(owner=owner_of(by))} FROM scores s {with_turns(scope)} "
                f"WHERE {SCORED} AND {where}",
                values,
            )
            while chunk := rows.fetchmany(CHUNK):
                adder.add(chunk)
            return adder.found()

    def missing(self, scope: Scope) -> list[Missing]:
        if scope.tag is not None:
            with self.reading() as connection, hours_of(connection, scope) as hours:
                if hours is not None:
                    return missing_of_tag(connection, hours)
        return super().missing(scope)

    def explained(self, connection: sqlite3.Connection, example: Any) -> str:
        """What was said of a score, by the number of its row."""
        return explanation_of(connection, example)

    def chosen(self, connection: sqlite3.Connection, wanted: TurnFilter, *, is_after: bool) -> Choice | None:
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

    def given(self, turns: Sequence[int]) -> str:
        return json.dumps(list(turns))

    def has_labels(self, connection: sqlite3.Connection) -> bool:
        return has_labels(connection)

    def versions(self, connection: sqlite3.Connection) -> Sequence[tuple[str, float | None]]:
        return connection.execute(VERSIONS).fetchall() if has_keys(connection) else []

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
