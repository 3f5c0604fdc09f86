"""Sums over time out of the sums of hours that a results file keeps: few scores are read one by one."""

from __future__ import annotations

import math
import sqlite3
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from steelyard._internal.redact import error_words
from steelyard.errors import ConfigurationError
from steelyard.report._sums import Adder
from steelyard.report.queries import Scope, Sums
from steelyard.report.stores._tables import CHUNK, SCORED
from steelyard.scores import Outcome
from steelyard.sinks import connect_readonly
from steelyard.sinks.sqlite.sums import (
    ALL,
    BARS,
    SUM_COLUMNS,
    has_keys,
    has_sums,
    metrics_of,
    prepare_sums,
    refresh_sums,
    summed_since,
)
from steelyard.stats import Moments

COLUMNS: Final = """s.metric, s.happened_at, s.value, s.passed, s.inclusion_probability, s.threshold,
    s.direction = 'lower', {owner}"""
"""What an `Adder` takes of a score."""
TAGGED: Final = (
    "EXISTS (SELECT 1 FROM json_each(CASE WHEN json_valid(e.tags) THEN e.tags ELSE '[]' END) "
    "WHERE value = :tag)"
)
_HAS_TAG: Final = f"EXISTS (SELECT 1 FROM evaluations e WHERE e.record_id = s.record_id AND {TAGGED})"
_HOUR: Final = 3600.0
# An hour that no time reaches, and that a float still holds exactly.
_LAST: Final = 2**53
_Missing = tuple[str, Outcome, str]


@dataclass(frozen=True, slots=True)
class Hours:
    """Which hours of a scope are read from their sums, and which times score by score."""

    tag: str | None
    """The tag, where the scope has one."""
    metrics: tuple[str, ...]
    """The metrics of the scope."""
    low: int
    """The first hour of the sums."""
    high: int
    """The hour after the last one."""
    stale: frozenset[int]
    """Hours within these whose sums do not count."""
    times: tuple[tuple[float, float], ...]
    """Times whose scores are read one by one: from, and until before."""
    by_turn: bool
    """Whether these are found by the turns of a rare tag rather than by time."""

    def kept(self, connection: sqlite3.Connection, table: str, columns: str, metric: str) -> Iterator[Any]:
        """The hour, and some columns, of what one table keeps of a metric; without stale hours."""
        rows = connection.execute(
            f"SELECT hour, {columns} FROM {table} WHERE tag = ? AND metric = ? AND hour >= ? AND hour < ? "
            "ORDER BY hour",
            (ALL if self.tag is None else self.tag, metric, self.low, self.high),
        )
        return (row for row in rows if row[0] not in self.stale)


@contextmanager
def hours_of(connection: sqlite3.Connection, scope: Scope) -> Iterator[Hours | None]:
    """The hours of a scope; None where the file keeps nothing that helps.

    Within, all is read in one transaction: a score that is written meanwhile is in both or in neither.
    """
    connection.execute("BEGIN")
    try:
        yield _hours(connection, scope)
    finally:
        connection.execute("COMMIT")


def _hours(connection: sqlite3.Connection, scope: Scope) -> Hours | None:
    if (
        scope.evidence is not None
        or not has_sums(connection)
        or (scope.tag is not None and not has_keys(connection))
    ):
        return None
    since = -math.inf if scope.since is None else scope.since
    until = math.inf if scope.until is None else scope.until
    metrics = tuple(metrics_of(connection)) if scope.metric is None else (scope.metric,)
    begun = summed_since(connection, ALL if scope.tag is None else scope.tag)
    if begun is None:
        return Hours(scope.tag, metrics, 0, 0, frozenset(), ((since, until),), by_turn=True)
    low = max(0 if scope.since is None else math.ceil(scope.since / _HOUR), begun, 0)
    high = _LAST if scope.until is None else max(math.floor(scope.until / _HOUR), low)
    stale = frozenset(
        hour
        for (hour,) in connection.execute(
            "SELECT hour FROM stale_hours WHERE hour >= ? AND hour < ?", (low, high)
        )
    )
    times = tuple(_times(since, until, low, high, stale))
    return Hours(scope.tag, metrics, low, high, stale, times, by_turn=False)


def _times(
    since: float, until: float, low: int, high: int, stale: Iterable[int]
) -> Iterator[tuple[float, float]]:
    """Stale hours, and what lies before and after whole hours."""
    before = min(low * _HOUR, until)
    if low and since < before:
        yield since, before
    if high != _LAST and high * _HOUR < until:
        yield max(high * _HOUR, since, before), until
    for hour in sorted(stale):
        yield (hour * _HOUR if hour else -math.inf), (hour + 1) * _HOUR


def add_hours(connection: sqlite3.Connection, hours: Hours, adder: Adder) -> None:
    """Add up the scores of some hours: whole hours by their sums, the rest one by one."""
    for metric in hours.metrics:
        _add_kept(connection, hours, metric, adder)
    for rows in _one_by_one(connection, hours, COLUMNS.format(owner="NULL"), SCORED):
        while chunk := rows.fetchmany(CHUNK):
            adder.add(chunk)


def count_scores(connection: sqlite3.Connection, hours: Hours) -> int:
    """Scores of a tag, with a value and without."""
    found: float = sum(
        n
        for metric in hours.metrics
        for table in ("hour_sums", "hour_missing")
        for _, n in hours.kept(connection, table, "n", metric)
    )
    for rows in _one_by_one(connection, hours, "count(*)", "1"):
        found += sum(count for (count,) in rows)
    return round(found)


def count_missing(connection: sqlite3.Connection, hours: Hours) -> Counter[_Missing]:
    """Scores of a tag without a value, by metric, status and cause."""
    found: Counter[_Missing] = Counter()
    for metric in hours.metrics:
        for _, status, cause, count in hours.kept(connection, "hour_missing", "status, cause, n", metric):
            found[metric, status, cause] += count
    columns = "s.metric, s.status, coalesce(s.cause, 'unknown')"
    for rows in _one_by_one(connection, hours, columns, "s.status != 'scored'"):
        found.update((metric, status, cause) for metric, status, cause in rows)
    return found


def _one_by_one(
    connection: sqlite3.Connection, hours: Hours, columns: str, which: str
) -> Iterator[sqlite3.Cursor]:
    """The scores that no sum tells of, piece by piece."""
    within = f"{which} AND s.happened_at >= :start AND s.happened_at < :stop"
    values: dict[str, Any] = {"tag": hours.tag}
    if hours.by_turn:
        values["start"], values["stop"] = hours.times[0]
        values["metric"] = hours.metrics[0] if len(hours.metrics) == 1 else None
        yield connection.execute(
            f"""SELECT {columns} FROM turn_keys k CROSS JOIN scores s ON s.record_id = k.record_id
                WHERE k.kind = 'tag' AND k.value = :tag AND {within}
                AND +s.metric = coalesce(:metric, s.metric)""",
            values,
        )
        return
    query = f"SELECT {columns} FROM scores s WHERE s.metric = :metric AND {within}"
    if hours.tag is not None:
        query += f" AND {_HAS_TAG}"
    for start, stop in hours.times:
        for metric in hours.metrics:
            yield connection.execute(query, {**values, "metric": metric, "start": start, "stop": stop})


def _add_kept(connection: sqlite3.Connection, hours: Hours, metric: str, adder: Adder) -> None:
    bars: defaultdict[int, Any] = defaultdict(lambda: np.zeros(BARS))
    for hour, bar, weight in hours.kept(connection, "hour_bars", "bar, weight", metric):
        bars[hour][bar] = weight
    columns = f"threshold, direction, {', '.join(SUM_COLUMNS)}"
    for hour, threshold, direction, *sums in hours.kept(connection, "hour_sums", columns, metric):
        part = Sums(metric=metric, bucket=0, group=None, threshold=threshold, direction=direction)
        part.values, part.passes = _moments(dict(zip(SUM_COLUMNS, sums, strict=True)))
        part.bars = bars[hour]
        adder.add_sums(metric, hour, part)


def _moments(sums: dict[str, float]) -> tuple[Moments, Moments]:
    values = Moments(
        n=round(sums["n"]),
        ends=round(sums["ends"]),
        **{name: sums[name] for name in (*_MOMENTS, *_POWERS)},
    )
    count = round(sums["passes_n"])
    passes = Moments(
        n=count,
        ends=count,
        **{name: sums[f"passes_{name}"] for name in _MOMENTS},
        # Of zeros and ones every power is the value.
        value_value=sums["passes_value"],
        value_value_value=sums["passes_value"],
        square_value_value=sums["passes_square_value"],
    )
    return values, passes


_MOMENTS: Final = ("weight", "value", "square", "square_value", "fourth", "least")
_POWERS: Final = ("value_value", "value_value_value", "square_value_value")


def refresh_sqlite(path: str) -> None:
    """Add up what is stale again, and bring an older file up to date.

    Raises:
        ConfigurationError: If the file is not there or cannot be written.
    """
    with writing(path) as connection:
        prepare_sums(connection)
        while refresh_sums(connection):
            time.sleep(0.01)  # leaves the file to writers in between


@contextmanager
def writing(path: str) -> Iterator[sqlite3.Connection]:
    """A connection that may write to a results file that is there; it begins no transaction by itself."""
    connect_readonly(path).close()  # refuses what is not a results file
    try:
        uri = f"{Path(path).absolute().as_uri()}?mode=rw"
        with closing(sqlite3.connect(uri, uri=True, timeout=5, isolation_level=None)) as connection:
            yield connection
    except sqlite3.Error as error:
        raise ConfigurationError(
            f"{path!r} cannot be written: {error_words(error)}; "
            "give it the right to be written, and its folder too"
        ) from None
