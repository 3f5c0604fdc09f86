"""Sums over time out of the sums of hours that a results file keeps: few scores are read one by one."""

from __future__ import annotations

import math
import sqlite3
import time
from collections import defaultdict
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import numpy as np

from steelyard._internal.redact import error_words
from steelyard.errors import ConfigurationError
from steelyard.report._sums import Adder
from steelyard.report.queries import Scope, Sums
from steelyard.sinks import connect_readonly
from steelyard.sinks.sqlite.sums import BARS, SUM_COLUMNS, metrics_of, prepare_sums, refresh_sums
from steelyard.stats import Moments

SCORES: Final = """SELECT s.metric, s.evaluated_at, s.value, s.passed, s.inclusion_probability, s.threshold,
    s.direction = 'lower', {owner} FROM scores s"""
"""What an `Adder` takes of a score."""
SCORED: Final = "s.status = 'scored' AND s.value IS NOT NULL"
_HOUR: Final = 3600.0
_CHUNK: Final = 50_000
_LAST: Final = 2**53


def add_hours(connection: sqlite3.Connection, scope: Scope, adder: Adder) -> None:
    """Add up the scores of a scope without a tag: whole hours by their sums, the rest one by one.

    Read in one transaction: a score that is written meanwhile is in both or in neither.
    """
    connection.execute("BEGIN")
    try:
        metrics = metrics_of(connection) if scope.metric is None else [scope.metric]
        low = 0 if scope.since is None else max(math.ceil(scope.since / _HOUR), 0)
        high = _LAST if scope.until is None else max(math.floor(scope.until / _HOUR), low)
        stale = {hour for (hour,) in connection.execute("SELECT hour FROM stale_hours")}
        for metric in metrics:
            _add_kept(connection, adder, metric, low, high, stale)
        for first, last in _ranges(scope, low, high, stale):
            for metric in metrics:
                _add_scores(connection, adder, (metric, first, last))
    finally:
        connection.execute("COMMIT")


def _add_kept(
    connection: sqlite3.Connection, adder: Adder, metric: str, low: int, high: int, stale: set[int]
) -> None:
    values = (metric, low, high)
    bars: defaultdict[int, Any] = defaultdict(lambda: np.zeros(BARS))
    for hour, bar, weight in connection.execute(
        "SELECT hour, bar, weight FROM score_bars WHERE metric = ? AND hour >= ? AND hour < ?", values
    ):
        bars[hour][bar] = weight
    for hour, threshold, direction, *sums in connection.execute(
        f"SELECT hour, threshold, direction, {', '.join(SUM_COLUMNS)} FROM score_sums "
        "WHERE metric = ? AND hour >= ? AND hour < ? ORDER BY hour",
        values,
    ):
        if hour not in stale:
            part = Sums(metric=metric, bucket=0, group=None, threshold=threshold, direction=direction)
            part.values, part.passes = _moments(dict(zip(SUM_COLUMNS, sums, strict=True)))
            part.bars = bars[hour]
            adder.add_sums(metric, hour, part)


def _moments(sums: dict[str, float]) -> tuple[Moments, Moments]:
    values = Moments(
        n=round(sums["n"]),
        ends=round(sums["ends"]),
        **{name: sums[name] for name in _MOMENTS},
        square_value_value=sums["square_value_value"],
    )
    count = round(sums["passes_n"])
    passes = Moments(
        n=count,
        ends=count,
        **{name: sums[f"passes_{name}"] for name in _MOMENTS},
        square_value_value=sums["passes_square_value"],  # of zeros and ones the square is the value
    )
    return values, passes


_MOMENTS: Final = ("weight", "value", "square", "square_value", "fourth", "least")


def _ranges(scope: Scope, low: int, high: int, stale: set[int]) -> Iterable[tuple[float, float]]:
    """The times whose scores are read one by one: stale hours, and the parts of hours at both ends."""
    since = -math.inf if scope.since is None else scope.since
    until = math.inf if scope.until is None else scope.until
    if scope.since is not None:
        yield since, min(low * _HOUR, until)
    if scope.until is not None and high * _HOUR < until and (scope.since is None or high >= low):
        yield max(high * _HOUR, since, low * _HOUR), until
    for hour in sorted(stale):
        if low <= hour < high:
            yield (hour * _HOUR if hour else -math.inf), (hour + 1) * _HOUR


def _add_scores(connection: sqlite3.Connection, adder: Adder, which: tuple[str, float, float]) -> None:
    rows = connection.execute(
        f"{SCORES.format(owner='NULL')} WHERE {SCORED} AND s.metric = ? AND s.evaluated_at >= ? "
        "AND s.evaluated_at < ?",
        which,
    )
    while chunk := rows.fetchmany(_CHUNK):
        adder.add(chunk)


def refresh_sqlite(path: str) -> None:
    """Add up stale hours again; an older file gets its sums.

    Raises:
        ConfigurationError: If the file is not there or cannot be written.
    """
    connect_readonly(path).close()  # refuses what is not a results file
    try:
        uri = f"{Path(path).absolute().as_uri()}?mode=rw"
        with closing(sqlite3.connect(uri, uri=True, timeout=5, isolation_level=None)) as connection:
            if connection.execute("PRAGMA user_version").fetchone()[0] == 1:
                return  # `SQLiteSink` brings such a file up to date, and with it the sums
            prepare_sums(connection)
            while refresh_sums(connection):
                time.sleep(0.01)  # leaves the file to writers in between
    except sqlite3.Error as error:
        raise ConfigurationError(f"{path!r} cannot be written: {error_words(error)}") from None
