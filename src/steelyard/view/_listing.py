"""The turns of a results database, filtered, newest first, paged by key."""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from contextlib import closing
from dataclasses import dataclass
from operator import methodcaller
from typing import Any, Final, Literal

from steelyard._internal.redact import error_words
from steelyard.errors import ConfigurationError
from steelyard.sinks import connect_readonly

Status = Literal["", "passed", "not_passed", "failed", "not_applicable"]
STATUSES: Final[tuple[Status, ...]] = ("passed", "not_passed", "failed", "not_applicable")
_STATUS = {
    "passed": "+s.passed = 1",
    "not_passed": "+s.passed = 0",
    "failed": "s.status = 'failed'",
    "not_applicable": "s.status = 'not_applicable'",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class TurnFilter:
    """Which turns are meant; an empty field asks nothing."""

    metric: str = ""
    """Turns with a score of this metric; `status` and `judge` are then asked of that score."""
    status: Status = ""
    """Turns with a score that passed, did not pass, failed or was not applicable."""
    judge: str = ""
    """Turns with a score by this judge."""
    tag: str = ""
    """Turns with this tag."""
    version: str = ""
    """Turns whose metadata has this `version`."""
    route: str = ""
    """Turns whose metadata has this `route`."""
    text: str = ""
    """Turns with these words in the question or the answer, whatever their case (of ASCII letters)."""
    trace: str = ""
    """Turns of this trace."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TurnRow:
    """One turn in the list."""

    record_id: str
    """The record's id."""
    evaluated_at: float
    """Unix time."""
    question: str
    """The start of the question; empty where content was not stored."""
    scores: tuple[tuple[str, float | None, bool | None, str], ...]
    """Metric, value, whether it passed, and status of each score."""

    @property
    def key(self) -> tuple[float, str]:
        """Its place in the list: time, then id."""
        return self.evaluated_at, self.record_id


def list_turns(
    path: str,
    wanted: TurnFilter,
    *,
    before: tuple[float, str] | None = None,
    after: tuple[float, str] | None = None,
    limit: int = 50,
) -> list[TurnRow]:
    """A page of turns, newest first.

    Args:
        path: A file that `SQLiteSink` wrote.
        wanted: Which turns.
        before: Only turns older than the one with this key.
        after: Only turns newer than the one with this key; the oldest of these are given.
        limit: At most so many.

    Raises:
        ConfigurationError: If the file is not there, cannot be read, or has an older schema.
    """
    where, values = _conditions(wanted)
    if key := before or after:
        where.append(f"(e.evaluated_at, e.record_id) {'<' if before else '>'} (:time, :id)")
        values |= {"time": key[0], "id": key[1]}
    order = "ASC" if after and not before else "DESC"
    query = f"""SELECT e.record_id, e.evaluated_at, substr(e.question, 1, 400) FROM evaluations e
        WHERE {" AND ".join(where) or "1"}
        ORDER BY e.evaluated_at {order}, e.record_id {order} LIMIT :limit"""
    try:
        with closing(connect_readonly(path)) as connection:
            connection.text_factory = methodcaller("decode", "utf-8", "replace")
            if connection.execute("PRAGMA user_version").fetchone()[0] == 1:
                raise ConfigurationError(f"{path!r} has schema 1; `SQLiteSink` brings it up to date")
            found = connection.execute(query, {**values, "limit": limit}).fetchall()
            scores = _scores(connection, [row[0] for row in found])
    except sqlite3.Error as error:
        raise ConfigurationError(f"{path!r} cannot be read: {error_words(error)}") from None
    rows = [
        TurnRow(record_id=row[0], evaluated_at=row[1], question=row[2] or "", scores=tuple(scores[row[0]]))
        for row in found
    ]
    return rows[::-1] if order == "ASC" else rows


def _conditions(wanted: TurnFilter) -> tuple[list[str], dict[str, Any]]:
    # The plus keeps SQLite from looking a metric up for every turn: a turn has few scores, a metric many.
    of_score = [
        text
        for text, given in (
            ("+s.metric = :metric", wanted.metric),
            (_STATUS.get(wanted.status, ""), wanted.status),
            ("s.judge = :judge", wanted.judge),
        )
        if given
    ]
    where = [
        text
        for text, given in (
            (
                "EXISTS (SELECT 1 FROM scores s WHERE s.record_id = e.record_id AND "
                + " AND ".join(of_score)
                + ")",
                of_score,
            ),
            ("EXISTS (SELECT 1 FROM json_each(e.tags) WHERE value = :tag)", wanted.tag),
            ("CAST(json_extract(e.metadata, '$.version') AS TEXT) = :version", wanted.version),
            ("CAST(json_extract(e.metadata, '$.route') AS TEXT) = :route", wanted.route),
            ("(e.question LIKE :text ESCAPE '!' OR e.answer LIKE :text ESCAPE '!')", wanted.text),
            ("e.trace_id = :trace", wanted.trace),
        )
        if given
    ]
    escaped = wanted.text.replace("!", "!!").replace("%", "!%").replace("_", "!_")
    return where, {
        "metric": wanted.metric,
        "judge": wanted.judge,
        "tag": wanted.tag,
        "version": wanted.version,
        "route": wanted.route,
        "text": f"%{escaped}%",
        "trace": wanted.trace,
    }


def _scores(
    connection: sqlite3.Connection, ids: list[str]
) -> defaultdict[str, list[tuple[str, float | None, bool | None, str]]]:
    found: defaultdict[str, list[tuple[str, float | None, bool | None, str]]] = defaultdict(list)
    marks = ", ".join("?" * len(ids))
    for record_id, metric, value, passed, status in connection.execute(
        f"SELECT record_id, metric, value, passed, status FROM scores WHERE record_id IN ({marks}) "
        "ORDER BY record_id, position",
        ids,
    ):
        found[record_id].append((metric, value, None if passed is None else bool(passed), status))
    return found
