"""The queries of a report over a file that `SQLiteSink` wrote."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from operator import methodcaller
from typing import Any

import numpy as np

from steelyard._internal.redact import error_words
from steelyard.errors import ConfigurationError
from steelyard.report._sums import Adder
from steelyard.report.queries import (
    Aggregates,
    Missing,
    Scope,
    Totals,
    attributes_of,
)
from steelyard.report.stores._rows import COUNTED, totals_of
from steelyard.report.stores._sqlite_counts import brief_totals, explanation_of, missing_of_tag
from steelyard.report.stores._sqlite_hours import COLUMNS, TAGGED, add_hours, hours_of
from steelyard.report.stores._sqlite_turns import chosen
from steelyard.report.stores._tables import CHUNK, SCORED, TableReader, owner_of, with_turns
from steelyard.report.stores._turns import Choice
from steelyard.report.turns import TurnFilter
from steelyard.scores import Evaluation
from steelyard.sinks import connect_readonly, evaluation_of

_BY = {
    "framework": ("e.framework", ""),
    "tag": ("t.value", "JOIN json_each(CASE WHEN json_valid(e.tags) THEN e.tags ELSE '[]' END) t"),
}


class SQLiteResults(TableReader):
    """A `ResultsReader` over a results file, which may still be written to."""

    tagged = TAGGED
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
            raise ConfigurationError(f"{self._path!r} cannot be read: {error_words(error)}") from None

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
                f"{by!r} cannot be the name of a metadata field here: it holds a quotation mark"
            )
        value = f"CAST(json_extract({self.metadata}, :by) AS TEXT)"
        return f"CASE WHEN json_valid({self.metadata}) THEN {value} END", "", f'$."{by}"'

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
