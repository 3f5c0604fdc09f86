"""The queries of a report over a database that `PostgresSink` writes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import psycopg

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
from steelyard.report.stores._postgres_turns import Rows, turns_of
from steelyard.report.stores._rows import totals_of
from steelyard.report.turns import TurnFilter, TurnRow
from steelyard.scores import Evaluation
from steelyard.sinks.postgres import Database, evaluation_in, problem_of

_CHUNK = 50_000
_TAGGED = "e.tags @> jsonb_build_array(%(tag)s::text)"
_BY = {
    "framework": ("e.framework", ""),
    "tag": (
        "t.value",
        "CROSS JOIN jsonb_array_elements_text("
        "CASE jsonb_typeof(e.tags) WHEN 'array' THEN e.tags ELSE '[]' END) t(value)",
    ),
}


class PostgresResults:
    """A `ResultsReader` over a Postgres database; every call is a transaction that only reads."""

    def __init__(self, address: str) -> None:
        """Connect for reading.

        Raises:
            ConfigurationError: If the database cannot be reached, or holds no results of this version.
        """
        self._database = Database(address, read_only=True)
        try:
            with self._reading():
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
        """All turns of a scope together; `brief` leaves out what is added up over every turn."""
        where, values = _turns(scope)
        with self._reading() as connection:
            if brief:
                columns = "count(*), count(e.record_status), min(e.evaluated_at), max(e.evaluated_at)"
                found = connection.execute(
                    f"SELECT {columns} FROM evaluations e WHERE {where}", values
                ).fetchone()
                assert found is not None  # a count is one row, also of nothing
                return Totals(turns=found[0], with_content=found[1], first=found[2], last=found[3])
            row = connection.execute(
                f"""SELECT count(*), count(e.record_status), min(e.evaluated_at), max(e.evaluated_at),
                    coalesce(sum(e.requests), 0), coalesce(sum(e.prompt_tokens), 0),
                    coalesce(sum(e.completion_tokens), 0), sum(e.cost), count(e.cost),
                    coalesce(sum(e.seconds), 0),
                    percentile_disc(ARRAY[0.5, 0.95]) WITHIN GROUP (ORDER BY e.duration)
                    FROM evaluations e WHERE {where}""",
                values,
            ).fetchone()
        assert row is not None  # a sum is one row, also over nothing
        return totals_of(row, row[10] or ())

    def sums(self, scope: Scope, *, start: float, width: float, by: str | None = None) -> Aggregates:
        """Running sums for each metric and piece of time, and for each metric and group, in one pass."""
        where, values = _scores(scope)
        owner = "NULL" if by is None else "s.judge" if by == "judge" else "s.record_id"
        with self._reading() as connection:
            groups = self._groups(connection, scope, by) if by != "judge" else None
            adder = Adder(start=start, width=width, groups=groups)
            # A named cursor stays in the server: the scores of a year do not fit into memory.
            with connection.cursor(name="sums") as cursor:
                cursor.execute(
                    f"""SELECT s.metric, s.evaluated_at, s.value, s.passed, s.inclusion_probability,
                        s.threshold, (s.direction = 'lower')::integer, {owner}
                        FROM scores s {_with_turns(scope)}
                        WHERE s.status = 'scored' AND s.value IS NOT NULL AND {where}""",
                    values,
                )
                while chunk := cursor.fetchmany(_CHUNK):
                    adder.add(chunk)
            return adder.found()

    def _groups(
        self, connection: psycopg.Connection[Any], scope: Scope, by: str | None
    ) -> dict[str, tuple[str, ...]]:
        """The groups of each turn."""
        if by is None:
            return {}
        group, join = _BY.get(by, ("e.metadata ->> %(by)s::text", ""))
        where, values = _turns(scope)
        query = f"SELECT e.record_id, {group} FROM evaluations e {join} WHERE {where}"
        return groups_of(connection.execute(query, {**values, "by": by}))

    def missing(self, scope: Scope) -> list[Missing]:
        """Counts of scores without a value, most frequent first."""
        where, values = _scores(scope)
        with self._reading() as connection:
            rows = connection.execute(
                f"""SELECT s.metric, s.status, coalesce(s.cause, 'unknown'), min(s.explanation), count(*)
                    FROM scores s {_with_turns(scope)} WHERE s.status <> 'scored' AND {where}
                    GROUP BY s.metric, s.status, s.cause ORDER BY count(*) DESC, s.metric""",
                values,
            ).fetchall()
        return [
            Missing(metric=metric, status=status, cause=cause, explanation=said, count=count)
            for metric, status, cause, said, count in rows
        ]

    def made(self, scope: Scope) -> list[Made]:
        """How the scores were made, most frequent first."""
        where, values = _scores(scope)
        with self._reading() as connection:
            rows = connection.execute(
                f"""SELECT s.judge, coalesce(s.embedder, ''), coalesce(s.prompt_version, ''),
                    coalesce(s.calibrated, 0), count(*)
                    FROM scores s {_with_turns(scope)} WHERE s.judge IS NOT NULL AND {where}
                    GROUP BY 1, 2, 3, 4 ORDER BY 5 DESC""",
                values,
            ).fetchall()
        return [
            Made(judge=judge, embedder=embedder, prompt_version=prompt, calibrated=bool(known), scores=count)
            for judge, embedder, prompt, known, count in rows
        ]

    def funnel(self, scope: Scope) -> Funnel | None:
        """What became of every turn, in runs that touch the period; None where no Monitor stored it."""
        with self._reading() as connection:
            return funnel_of(
                connection.execute(
                    "SELECT started_at, updated_at, counts FROM ledger "
                    "WHERE updated_at >= coalesce(%s, updated_at) AND started_at < coalesce(%s, 1e300)",
                    (scope.since, scope.until),
                )
            )

    def runs(self, *, limit: int) -> list[MonitorRun]:
        """The Monitors that stored their counts, the one that did so last first."""
        with self._reading() as connection:
            rows = connection.execute(
                "SELECT run, host, pid, started_at, updated_at, counts FROM ledger "
                "ORDER BY updated_at DESC, run LIMIT %s",
                (limit,),
            ).fetchall()
        return [found for row in rows if (found := run_of(*row)) is not None]

    def evaluation(self, record_id: str) -> Evaluation | None:
        """One turn with all its scores; None where there is none of this id."""
        with self._reading() as connection:
            return evaluation_in(connection, record_id)

    def turns(
        self,
        wanted: TurnFilter,
        *,
        before: tuple[float, str] | None = None,
        after: tuple[float, str] | None = None,
        limit: int = 50,
    ) -> list[TurnRow]:
        """A page of turns, newest first."""
        with self._reading() as connection:
            return turns_of(connection, wanted, before=before, after=after, limit=limit)

    def position(self) -> int:
        """Where writing has got to."""
        with self._reading() as connection:
            row = connection.execute("SELECT coalesce(max(id), 0) FROM bodies").fetchone()
            return int(row[0]) if row else 0

    def written_after(self, position: int, *, limit: int) -> list[tuple[int, Evaluation]]:
        """What was written after a position, in order of writing."""
        found: list[tuple[int, Evaluation]] = []
        with self._reading() as connection:
            while len(found) < limit:
                rows = connection.execute(
                    "SELECT b.id, b.record_id FROM bodies b "
                    "JOIN evaluations e ON e.record_id = b.record_id AND e.body = b.id "
                    "WHERE b.id > %s ORDER BY b.id LIMIT %s",
                    (position, limit - len(found)),
                ).fetchall()
                if not rows:
                    break
                position = rows[-1][0]
                found += [(at, one) for at, record in rows if (one := _readable(connection, record))]
        return found

    def worst(self, scope: Scope, metric: str, *, limit: int) -> list[Evaluation]:
        """The worst turns by a metric, worst first."""
        where, values = _scores(scope)
        with self._reading() as connection:
            rows = connection.execute(
                f"""SELECT s.record_id FROM scores s {_with_turns(scope)}
                    WHERE s.metric = %(worst)s AND s.status = 'scored' AND s.value IS NOT NULL AND {where}
                    ORDER BY CASE s.direction WHEN 'lower' THEN -s.value ELSE s.value END,
                    s.evaluated_at DESC, s.record_id LIMIT %(limit)s""",
                {**values, "worst": metric, "limit": limit},
            ).fetchall()
            return [one for (record,) in rows if (one := _readable(connection, record))]

    def sample(self, scope: Scope, metric: str, *, limit: int) -> list[SampledScore]:
        """The latest scores of a metric, in order of time."""
        where, values = _scores(scope)
        with self._reading() as connection:
            rows = connection.execute(
                f"""SELECT s.value, s.inclusion_probability, s.evaluated_at,
                    left(coalesce(e.question, ''), 500), e.tags, e.framework, e.metadata
                    FROM scores s JOIN evaluations e ON e.record_id = s.record_id
                    WHERE s.metric = %(sampled)s AND s.status = 'scored' AND s.value IS NOT NULL AND {where}
                    ORDER BY s.evaluated_at DESC LIMIT %(limit)s""",
                {**values, "sampled": metric, "limit": limit},
            ).fetchall()
        return [_sampled(row) for row in reversed(rows)]

    @contextmanager
    def _reading(self) -> Iterator[psycopg.Connection[Any]]:
        """One transaction; Postgres's errors become one that says which database cannot be read."""
        try:
            with self._database.transaction() as connection:
                yield connection
        except psycopg.Error as error:
            raise ConfigurationError(f"{self.name!r} cannot be read: {problem_of(error)}") from None


def _readable(connection: psycopg.Connection[Any], record: str) -> Evaluation | None:
    try:
        return evaluation_in(connection, record)
    except InvalidRecord:
        return None


def _with_turns(scope: Scope) -> str:
    return "JOIN evaluations e ON e.record_id = s.record_id" if scope.tag else ""


def _turns(scope: Scope) -> tuple[str, Rows]:
    conditions = {
        "e.evaluated_at >= %(since)s": scope.since,
        "e.evaluated_at < %(until)s": scope.until,
        _TAGGED: scope.tag,
        "e.record_id IN (SELECT record_id FROM scores WHERE metric = %(metric)s)": scope.metric,
    }
    return _given(conditions, scope)


def _scores(scope: Scope) -> tuple[str, Rows]:
    conditions = {
        "s.evaluated_at >= %(since)s": scope.since,
        "s.evaluated_at < %(until)s": scope.until,
        _TAGGED: scope.tag,
        "s.metric = %(metric)s": scope.metric,
    }
    return _given(conditions, scope)


def _given(conditions: Mapping[str, Any], scope: Scope) -> tuple[str, Rows]:
    where = " AND ".join(text for text, value in conditions.items() if value is not None) or "true"
    return where, {"since": scope.since, "until": scope.until, "tag": scope.tag, "metric": scope.metric}


def _sampled(row: Sequence[Any]) -> SampledScore:
    value, inclusion, when, question, tags, framework, metadata = row
    return SampledScore(
        value=min(max(value, 0.0), 1.0),
        inclusion=inclusion,
        evaluated_at=when,
        question=question,
        attributes=attributes_of(tags, framework, metadata),
    )
