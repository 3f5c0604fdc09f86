"""A results file as it is read, which may still be written to."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from functools import cache
from operator import methodcaller
from pathlib import Path
from typing import Any, Final

from steelyard._internal.forks import transaction
from steelyard._internal.logs import SafeLogger
from steelyard._internal.text import error_words
from steelyard.errors import ConfigurationError, InvalidRecord
from steelyard.results._schema import Execute, evaluation_of_row
from steelyard.results._sqlite_file import connect_readonly
from steelyard.results._store import CHUNK, Attributes, Row, Store, TurnQuery, attributes_of, conditions_of
from steelyard.results.queries import TurnFilter
from steelyard.scores import Evaluation

_log = SafeLogger("steelyard.sinks")
_OF_INDEX: Final = {
    "not_passed": "passed = 0",
    "failed": "status = 'failed' AND status != 'scored'",
    "not_applicable": "status = 'not_applicable' AND status != 'scored'",
}
"""How an index finds the scores of a status; that they passed has none, as most do."""
# By a jump through the index from each to the next.
_METRICS: Final = """WITH RECURSIVE names (name) AS (SELECT min(metric) FROM scores UNION ALL
    SELECT (SELECT min(metric) FROM scores WHERE metric > name) FROM names WHERE name IS NOT NULL)
    SELECT name FROM names WHERE name IS NOT NULL"""
_KEYED: Final = ("tag", "version", "route", "judge")
_FEW: Final = 2_000
"""So many are looked up one by one; of more, one is near the newest turn."""
_LOOKED_UP: Final = """EXISTS (SELECT 1 FROM turn_keys WHERE kind = '{kind}' AND value {}
    AND happened_at = e.happened_at AND record_id = e.record_id)"""
_TAGS: Final = "json_each(CASE WHEN json_valid(e.tags) THEN e.tags ELSE '[]' END) t"
_OF_TURN: Final = {
    "tag": f"EXISTS (SELECT 1 FROM {_TAGS} WHERE value {{}})",
    "version": "CAST(json_extract(e.metadata, '$.version') AS TEXT) {}",
    "route": "CAST(json_extract(e.metadata, '$.route') AS TEXT) {}",
    "text": "(e.question LIKE :text ESCAPE '!' OR e.answer LIKE :text ESCAPE '!')",
}


class SQLiteStore(Store):
    """A `Store` over a results file."""

    tagged = "{table}.turn IN (SELECT turn FROM turn_keys WHERE kind = 'tag' AND value = :tag {part})"
    tagged_alone = True
    among = "IN (SELECT value FROM json_each(:records))"
    tags = f"JOIN {_TAGS}"
    # From each to the next by the index: what a version has does not matter, only how many there are.
    versions = """WITH RECURSIVE version(name) AS (
            SELECT min(value) FROM turn_keys WHERE kind = 'version'
            UNION ALL SELECT (SELECT min(value) FROM turn_keys WHERE kind = 'version' AND value > name)
            FROM version WHERE name IS NOT NULL LIMIT 400)
        SELECT name, (SELECT min(happened_at) FROM turn_keys WHERE kind = 'version' AND value = name)
        FROM version WHERE name IS NOT NULL"""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.name = os.fspath(path)
        self._connection = connect_readonly(path)
        # A stored text may hold anything; a byte that is not UTF-8 must not end the report.
        self._connection.text_factory = methodcaller("decode", "utf-8", "replace")

    def close(self) -> None:
        self._connection.close()

    @contextmanager
    def reading(self) -> Iterator[Execute]:
        try:
            yield self._connection.execute
        except sqlite3.Error as error:
            raise ConfigurationError(
                f"{self.name!r} cannot be read: {error_words(error)}; check that it is a results file"
            ) from None

    @contextmanager
    def writing(self) -> Iterator[Execute]:
        try:
            uri = f"{Path(self.name).absolute().as_uri()}?mode=rw"
            with (
                closing(sqlite3.connect(uri, uri=True, timeout=5, isolation_level=None)) as connection,
                transaction(connection),
            ):
                yield connection.execute
        except sqlite3.Error as error:
            said, mend = error_words(error), "give it the right to be written, and its folder too"
            if "SQLITE_BUSY" in said:
                mend = "another program has locked it: try again"
            raise ConfigurationError(f"{self.name!r} cannot be written: {said}; {mend}") from None

    def chunks(self, query: str, values: Mapping[str, Any]) -> Iterator[Sequence[Row]]:
        with self.reading() as execute:
            rows = execute(query, values)
            while chunk := rows.fetchmany(CHUNK):
                yield chunk

    def given(self, records: Sequence[str]) -> str:
        return json.dumps(list(records))

    def attributes(self) -> Attributes:
        return cache(attributes_of)

    def field(self, by: str) -> tuple[str, str]:
        if '"' in by:
            raise ConfigurationError(
                f"{by!r} cannot be the name of a metadata field here: it holds a quotation mark; "
                "choose another field"
            )
        value = "CAST(json_extract(e.metadata, :by) AS TEXT)"
        return f"CASE WHEN json_valid(e.metadata) THEN {value} END", f'$."{by}"'

    def chosen(self, execute: Execute, wanted: TurnFilter) -> TurnQuery | None:
        """By what the turns are found fastest; None where it is sure that no turn fits."""
        asked = wanted.chosen("metric")
        metrics = [one for (one,) in execute(_METRICS, {}) if not asked or one in asked]
        few, keys = _few(execute, wanted, metrics), _keys(execute, wanted)
        if keys is None or (wanted.metric and not metrics):
            return None
        of_turn = _OF_TURN | {kind: _LOOKED_UP.format("{}", kind=kind) for kind in keys}
        values = wanted.parameters() | {"metrics": json.dumps(metrics)}
        # The plus keeps SQLite from looking a metric up for every turn: a turn has few scores, a metric many.
        if not keys or len(wanted.chosen(keys[0])) > 1:
            return TurnQuery(where=conditions_of(wanted, of_turn, plus="+") + few, values=values)
        first = keys[0]  # leads to the turns
        leads = f"k.kind = '{first}' AND k.value = :{first}0"
        return TurnQuery(
            where=[*conditions_of(wanted, of_turn | {first: ""}, plus="+"), *few, leads],
            values=values,
            source="turn_keys k CROSS JOIN evaluations e ON e.record_id = k.record_id",
            ordered="k",
        )


def _keys(execute: Execute, wanted: TurnFilter) -> Sequence[str] | None:
    """What is filtered by that has an index, rarest first; None if no turn has one of them.

    One value leads to its turns in order of time, so that what has several comes last.
    """
    counts: dict[str, tuple[bool, int]] = {}
    for kind in _KEYED:
        if not (values := wanted.chosen(kind)):
            continue
        some = f"SELECT 1 FROM turn_keys WHERE kind = ? AND value IN ({', '.join('?' * len(values))})"
        (found,) = execute(f"SELECT count(*) FROM ({some} LIMIT {_FEW})", (kind, *values)).fetchone()
        if not found:
            return None
        counts[kind] = len(values) > 1, found
    return sorted(counts, key=counts.__getitem__)


def _few(execute: Execute, wanted: TurnFilter, metrics: list[str]) -> list[str]:
    """A condition that finds the turns of a rare outcome by its index."""
    statuses = wanted.chosen("status")
    if len(statuses) != 1 or statuses[0] not in _OF_INDEX:
        return []
    which = f"metric IN (SELECT value FROM json_each(:metrics)) AND {_OF_INDEX[statuses[0]]}"
    rare = f"SELECT record_id FROM scores WHERE {which}"
    count = f"SELECT count(*) FROM ({rare} LIMIT {_FEW + 1})"
    (found,) = execute(count, {"metrics": json.dumps(metrics)}).fetchone()
    return [f"e.record_id IN ({rare})"] if found <= _FEW else []


def read_evaluations(
    path: str | os.PathLike[str] = "steelyard.db",
    *,
    metric: str | None = None,
    trace_id: str | None = None,
    since: float | None = None,
    until: float | None = None,
    newest_first: bool = False,
    limit: int | None = None,
) -> Iterator[Evaluation]:
    """Evaluations from a file that `SQLiteSink` wrote, while it may still be written to.

    Args:
        path: The file.
        metric: Only records with a Score of this instance name, and only that Score.
        trace_id: Only records of this trace.
        since: Only turns that began at or after this Unix time.
        until: Only turns that began before this Unix time.
        newest_first: The latest first instead of the earliest.
        limit: At most so many.

    Raises:
        ConfigurationError: If there is no such file, or it holds no results of this version.
    """
    wanted: list[tuple[str, Any]] = [
        ("trace_id = ?", trace_id),
        ("happened_at >= ?", since),
        ("happened_at < ?", until),
        ("record_id IN (SELECT record_id FROM scores WHERE metric = ?)", metric),
    ]
    given = [(condition, value) for condition, value in wanted if value is not None]
    where = " AND ".join(condition for condition, _ in given) or "1"
    order = "DESC" if newest_first else "ASC"
    query = f"SELECT * FROM evaluations WHERE {where} ORDER BY happened_at {order}, record_id {order} LIMIT ?"
    values = [value for _, value in given]
    bad = 0
    with closing(connect_readonly(path)) as connection:
        rows = connection.execute(query, [*values, -1 if limit is None else limit])
        names = [column[0] for column in rows.description]
        for row in rows:
            try:
                found = dict(zip(names, row, strict=True))
                evaluation = evaluation_of_row(connection.execute, found, metric=metric)
            except InvalidRecord:
                bad += 1
            else:
                yield evaluation
    if bad:
        _log.warning("%s: %d evaluations cannot be read and were left out", os.fspath(path), bad)
