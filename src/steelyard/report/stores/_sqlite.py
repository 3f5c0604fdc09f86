"""The queries of a report over a file that `SQLiteSink` wrote."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from operator import methodcaller
from typing import Any

import numpy as np

from steelyard._internal.redact import error_words
from steelyard.errors import ConfigurationError, InvalidRecord
from steelyard.report._funnel import funnel_of, run_of
from steelyard.report._sums import Adder, groups_of
from steelyard.report.queries import (
    Aggregates,
    Funnel,
    Made,
    Missing,
    MonitorRun,
    SampledScore,
    Scope,
    Totals,
    attributes_of,
)
from steelyard.report.stores._rows import totals_of
from steelyard.report.stores._sqlite_counts import brief_totals, explanation_of, missing_of_tag
from steelyard.report.stores._sqlite_hours import (
    COLUMNS,
    SCORED,
    TAGGED,
    add_hours,
    hours_of,
)
from steelyard.report.stores._sqlite_turns import turns_of
from steelyard.report.turns import TurnFilter, TurnRow
from steelyard.scores import Evaluation
from steelyard.sinks import connect_readonly, evaluation_of

_CHUNK = 50_000
_P = "s.inclusion_probability"
_METADATA_IN_SCHEMA_1 = "CASE WHEN json_valid(e.json) THEN json_extract(e.json, '$.record.metadata') END"
_BY = {
    "framework": ("e.framework", ""),
    "tag": ("t.value", "JOIN json_each(CASE WHEN json_valid(e.tags) THEN e.tags ELSE '[]' END) t"),
}


class SQLiteResults:
    """A `ResultsReader` over a results file, which may still be written to."""

    def __init__(self, path: str | os.PathLike[str] = "steelyard.db") -> None:
        """Open a file for reading.

        Raises:
            ConfigurationError: If there is no such file, or it holds no results of this version.
        """
        self._path = os.fspath(path)
        self._connection = connect_readonly(path)
        # A stored text may hold anything; a byte that is not UTF-8 must not end the report.
        self._connection.text_factory = methodcaller("decode", "utf-8", "replace")
        (version,) = self._connection.execute("PRAGMA user_version").fetchone()
        self._is_first_schema = version == 1
        self._metadata = _METADATA_IN_SCHEMA_1 if self._is_first_schema else "e.metadata"

    @property
    def name(self) -> str:
        """The file's path."""
        return self._path

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def totals(self, scope: Scope, *, brief: bool = False) -> Totals:
        """All turns of a scope together; briefly, how many and when."""
        where, values = _turns(scope)
        with self._readable():
            if brief:
                return brief_totals(self._connection, scope, turns=where, scores=_scores(scope)[0])
            row = self._connection.execute(
                f"""SELECT count(*), count(e.record_status), min(e.evaluated_at), max(e.evaluated_at),
                    total(e.requests), total(e.prompt_tokens), total(e.completion_tokens), sum(e.cost),
                    count(e.cost), total(e.seconds) FROM evaluations e WHERE {where}""",
                values,
            ).fetchone()
            return totals_of(row, self._durations(scope))

    def _durations(self, scope: Scope) -> list[float]:
        """Seconds that evaluations took, in the median and at most for 95 %; none of no turns."""
        where, values = _turns(scope)
        rows = self._connection.execute(f"SELECT e.duration FROM evaluations e WHERE {where}", values)
        taken = np.sort(np.array([took for (took,) in rows], float))
        return [float(taken[len(taken) * share // 100]) for share in (50, 95)] if len(taken) else []

    def sums(self, scope: Scope, *, start: float, width: float, by: str | None = None) -> Aggregates:
        """Running sums for each metric and piece of time, and for each metric and group, in one pass."""
        where, values = _scores(scope)
        owner = "NULL" if by is None else "s.judge" if by == "judge" else "s.record_id"
        with self._readable():
            adder = Adder(start=start, width=width, groups=self._groups(scope, by) if by != "judge" else None)
            if by is None and start % 3600 == width % 3600 == 0:
                with hours_of(self._connection, scope) as hours:
                    if hours is not None:
                        add_hours(self._connection, hours, adder)
                        return adder.found()
            rows = self._connection.execute(
                f"SELECT {COLUMNS.format(owner=owner)} FROM scores s {_with_turns(scope)} "
                f"WHERE {SCORED} AND {where}",
                values,
            )
            while chunk := rows.fetchmany(_CHUNK):
                adder.add(chunk)
            return adder.found()

    def _groups(self, scope: Scope, by: str | None) -> dict[str, tuple[str, ...]]:
        """The groups of each turn."""
        if by is None:
            return {}
        group, join = _grouping(by, self._metadata)
        where, values = _turns(scope)
        query = f"SELECT e.record_id, {group} FROM evaluations e {join} WHERE {where}"
        return groups_of(self._connection.execute(query, {**values, "by": f'$."{by}"'}))

    def missing(self, scope: Scope) -> list[Missing]:
        """Counts of scores without a value, most frequent first."""
        where, values = _scores(scope)
        with self._readable():
            if scope.tag is not None:
                with hours_of(self._connection, scope) as hours:
                    if hours is not None:
                        return missing_of_tag(self._connection, hours)
            # The number of a row is in every index, its explanation in none; schema 1 has no such numbers.
            example = "min(s.explanation)" if self._is_first_schema else "min(s.rowid)"
            rows = self._connection.execute(
                f"""SELECT s.metric, s.status, coalesce(s.cause, 'unknown'), {example}, count(*)
                    FROM scores s {_with_turns(scope)} WHERE s.status != 'scored' AND {where}
                    GROUP BY s.metric, s.status, s.cause ORDER BY count(*) DESC, s.metric""",
                values,
            )
            return [
                Missing(
                    metric=metric,
                    status=status,
                    cause=cause,
                    explanation=said if self._is_first_schema else explanation_of(self._connection, said),
                    count=count,
                )
                for metric, status, cause, said, count in rows.fetchall()
            ]

    def made(self, scope: Scope) -> list[Made]:
        """How the scores were made, most frequent first."""
        where, values = _scores(scope)
        with self._readable():
            rows = self._connection.execute(
                f"""SELECT s.judge, coalesce(s.embedder, ''), coalesce(s.prompt_version, ''),
                    coalesce(s.calibrated, 0), count(*)
                    FROM scores s {_with_turns(scope)} WHERE s.judge IS NOT NULL AND {where}
                    GROUP BY 1, 2, 3, 4 ORDER BY 5 DESC""",
                values,
            )
            return [
                Made(
                    judge=judge,
                    embedder=embedder,
                    prompt_version=prompt,
                    calibrated=bool(known),
                    scores=count,
                )
                for judge, embedder, prompt, known, count in rows
            ]

    def funnel(self, scope: Scope) -> Funnel | None:
        """What became of every turn, in runs that touch the period; None where no Monitor stored it."""
        with self._readable():
            if not self._has_ledger():
                return None
            return funnel_of(
                self._connection.execute(
                    "SELECT started_at, updated_at, counts FROM ledger "
                    "WHERE updated_at >= coalesce(?, updated_at) AND started_at < coalesce(?, 1e300)",
                    (scope.since, scope.until),
                )
            )

    def _has_ledger(self) -> bool:
        found = self._connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'ledger'").fetchone()
        return found is not None

    def runs(self, *, limit: int) -> list[MonitorRun]:
        """The Monitors that stored their counts, the one that did so last first."""
        with self._readable():
            if not self._has_ledger():
                return []
            rows = self._connection.execute(
                "SELECT run, host, pid, started_at, updated_at, counts FROM ledger "
                "ORDER BY updated_at DESC, run LIMIT ?",
                (limit,),
            )
            return [found for row in rows if (found := run_of(*row)) is not None]

    def evaluation(self, record_id: str) -> Evaluation | None:
        """One turn with all its scores; None where there is none of this id."""
        with self._readable():
            return evaluation_of(self._connection, record_id)

    def turns(
        self,
        wanted: TurnFilter,
        *,
        before: tuple[float, str] | None = None,
        after: tuple[float, str] | None = None,
        limit: int = 50,
    ) -> list[TurnRow]:
        """A page of turns, newest first."""
        self._check_schema()
        with self._readable():
            return turns_of(self._connection, wanted, before=before, after=after, limit=limit)

    def position(self) -> int:
        """Where writing has got to."""
        self._check_schema()
        with self._readable():
            return int(self._connection.execute("SELECT coalesce(max(id), 0) FROM bodies").fetchone()[0])

    def written_after(self, position: int, *, limit: int) -> list[tuple[int, Evaluation]]:
        """What was written after a position, in order of writing."""
        self._check_schema()
        with self._readable():
            rows = self._connection.execute(
                "SELECT b.id, b.record_id FROM bodies b "
                "JOIN evaluations e ON e.record_id = b.record_id AND e.body = b.id "
                "WHERE b.id > ? ORDER BY b.id",
                (position,),
            )
            readable = ((at, found) for at, record in rows if (found := self._evaluation(record)) is not None)
            return list(islice(readable, limit))

    def _check_schema(self) -> None:
        if self._is_first_schema:
            raise ConfigurationError(f"{self._path!r} has schema 1; `SQLiteSink` brings it up to date")

    def worst(self, scope: Scope, metric: str, *, limit: int) -> list[Evaluation]:
        """The worst turns by a metric, worst first."""
        where, values = _scores(scope)
        with self._readable():
            rows = self._connection.execute(
                f"""SELECT s.record_id FROM scores s {_with_turns(scope)}
                    WHERE s.metric = :worst AND s.status = 'scored' AND s.value IS NOT NULL AND {where}
                    ORDER BY CASE s.direction WHEN 'lower' THEN -s.value ELSE s.value END,
                    s.evaluated_at DESC, s.record_id LIMIT :limit""",
                {**values, "worst": metric, "limit": limit},
            ).fetchall()
            return [found for (record,) in rows if (found := self._evaluation(record)) is not None]

    def _evaluation(self, record: str) -> Evaluation | None:
        try:
            return evaluation_of(self._connection, record)
        except InvalidRecord:
            return None

    def sample(self, scope: Scope, metric: str, *, limit: int) -> list[SampledScore]:
        """The latest scores of a metric, in order of time."""
        where, values = _scores(scope)
        with self._readable():
            rows = self._connection.execute(
                f"""SELECT s.value, {_P}, s.evaluated_at, substr(coalesce(e.question, ''), 1, 500), e.tags,
                    e.framework,
                    {self._metadata}
                    FROM scores s JOIN evaluations e ON e.record_id = s.record_id
                    WHERE s.metric = :sampled AND s.status = 'scored' AND s.value IS NOT NULL AND {where}
                    ORDER BY s.evaluated_at DESC LIMIT :limit""",
                {**values, "sampled": metric, "limit": limit},
            )
            known: dict[tuple[str | None, ...], dict[str, list[str]]] = {}
            found = []
            for *first, tags, framework, metadata in rows:
                key = (tags, framework, metadata)  # the same for many turns, and slow to parse
                if key not in known:
                    known[key] = attributes_of(_parsed(tags), framework, _parsed(metadata))
                found.append(_sampled(first, known[key]))
            return found[::-1]

    @contextmanager
    def _readable(self) -> Iterator[None]:
        """Turn SQLite's errors into one that says which file cannot be read."""
        try:
            yield
        except sqlite3.Error as error:
            raise ConfigurationError(f"{self._path!r} cannot be read: {error_words(error)}") from None


def _with_turns(scope: Scope) -> str:
    return "" if scope.tag is None else "JOIN evaluations e ON e.record_id = s.record_id"


def _turns(scope: Scope) -> tuple[str, dict[str, Any]]:
    conditions = {
        "e.evaluated_at >= :since": scope.since,
        "e.evaluated_at < :until": scope.until,
        TAGGED: scope.tag,
        "e.record_id IN (SELECT record_id FROM scores WHERE metric = :metric)": scope.metric,
    }
    return _given(conditions, scope)


def _scores(scope: Scope) -> tuple[str, dict[str, Any]]:
    conditions = {
        "s.evaluated_at >= :since": scope.since,
        "s.evaluated_at < :until": scope.until,
        TAGGED: scope.tag,
        "s.metric = :metric": scope.metric,
    }
    return _given(conditions, scope)


def _given(conditions: dict[str, Any], scope: Scope) -> tuple[str, dict[str, Any]]:
    where = " AND ".join(text for text, value in conditions.items() if value is not None) or "1"
    return where, {"since": scope.since, "until": scope.until, "tag": scope.tag, "metric": scope.metric}


def _grouping(by: str, metadata: str) -> tuple[str, str]:
    if by in _BY:
        return _BY[by]
    if '"' in by:
        raise ConfigurationError(
            f"{by!r} cannot be the name of a metadata field here: it holds a quotation mark"
        )
    return f"CASE WHEN json_valid({metadata}) THEN CAST(json_extract({metadata}, :by) AS TEXT) END", ""


def _sampled(row: Sequence[Any], attributes: Mapping[str, Sequence[str]]) -> SampledScore:
    value, inclusion, when, question = row
    return SampledScore(
        value=min(max(value, 0.0), 1.0),
        inclusion=inclusion,
        evaluated_at=when,
        question=question,
        attributes=attributes,
    )


def _parsed(text: str | None) -> Any:
    try:
        return json.loads(text) if text else None
    except (ValueError, RecursionError):
        return None
