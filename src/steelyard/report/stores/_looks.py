"""Queries of the pages beside the first one, the same for every SQL database with our tables."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from typing import Any, Final

from steelyard.report.checks import StoredCheck, check_of_row
from steelyard.report.looks import GroupScore, Order, SessionRow, Spending
from steelyard.report.queries import Scope

_COURSE: Final = 40
_MOST_TURNS: Final = 5_000
_SHARED_OUT: Final = 20_000
_UNIT: Final = "coalesce(e.user_hash, e.session)"
_SESSIONS: Final = """SELECT e.session AS session, count(*) AS turns, min(e.happened_at) AS first,
    max(e.happened_at) AS last FROM evaluations e WHERE e.session IS NOT NULL GROUP BY e.session"""
_BAD: Final = """SELECT e.session AS session, count(DISTINCT e.record_id) AS bad
    FROM scores s JOIN evaluations e ON e.record_id = s.record_id
    WHERE s.passed = 0 AND {which} GROUP BY e.session"""


class Looks(ABC):
    """What a database of results is asked beside the figures of a report."""

    @abstractmethod
    def reading(self) -> AbstractContextManager[Any]:
        """A connection to read from; the database's errors become a ConfigurationError."""

    @abstractmethod
    def grouping(self, by: str) -> tuple[str, str, str]:
        """The column that holds the groups, what it is joined by, and the value of `:by`."""

    def statement(self, query: str) -> str:
        """A query as the database's driver takes it."""
        return query

    def _rows(self, query: str, values: Mapping[str, Any]) -> list[Any]:
        with self.reading() as connection:
            return list(connection.execute(self.statement(query), values).fetchall())

    def checks(self, *, limit: int = 200) -> list[StoredCheck]:
        """Checks of judges by probes, the latest first; unreadable ones are left out."""
        query = """SELECT checked_at, judge, figures FROM judge_checks
            ORDER BY checked_at DESC, id DESC LIMIT :limit"""
        rows = self._rows(query, {"limit": limit})
        return [found for row in rows if (found := check_of_row(*row)) is not None]

    def scored(self) -> dict[str, int]:
        """How many scores each metric has, by name."""
        query = "SELECT metric, count(*) FROM scores WHERE value IS NOT NULL GROUP BY metric ORDER BY metric"
        return dict(self._rows(query, {}))

    def judged(self, metric: str, *, limit: int) -> list[tuple[str, float, float]]:
        """The latest scores of a metric in 0..1 that a judge gave: record, value, inclusion probability.

        Values are turned so that higher is better.
        """
        query = """SELECT s.record_id, CASE s.direction WHEN 'lower' THEN 1 - s.value ELSE s.value END,
            s.inclusion_probability FROM scores s
            WHERE s.metric = :metric AND s.judge IS NOT NULL AND s.value BETWEEN 0 AND 1
            ORDER BY s.happened_at DESC LIMIT :limit"""
        return [tuple(row) for row in self._rows(query, {"metric": metric, "limit": limit})]

    def group_scores(self, metric: str, scope: Scope, *, by: str, value: str, limit: int) -> list[GroupScore]:
        """The latest scores of a metric in a time and a group.

        Args:
            metric: The metric.
            scope: Since and until when; nothing else of it counts.
            by: What groups are cut by: `judge`, `tag` or the name of a metadata field; empty for no group.
            value: The group.
            limit: At most so many.
        """
        where, join, named = "true", "", ""
        if by == "judge":
            where = "s.judge = :value"
        elif by:
            column, join, named = self.grouping(by)
            where = f"{column} = :value"
        for bound, sign in (("since", ">="), ("until", "<")):
            if getattr(scope, bound) is not None:
                where += f" AND s.happened_at {sign} :{bound}"
        query = f"""SELECT s.record_id, s.value, s.inclusion_probability, {_UNIT},
            substr(coalesce(e.question, ''), 1, 500), s.direction
            FROM scores s JOIN evaluations e ON e.record_id = s.record_id {join}
            WHERE s.metric = :metric AND s.status = 'scored' AND s.value IS NOT NULL AND {where}
            ORDER BY s.happened_at DESC, s.record_id LIMIT :limit"""
        values = {
            **{"metric": metric, "by": named, "value": value, "limit": limit},
            **{"since": scope.since, "until": scope.until},
        }
        return [
            # A metric of somebody's own may go beyond 0..1, which intervals do not.
            GroupScore(
                record_id=record,
                value=min(max(score, 0.0), 1.0),
                inclusion=inclusion,
                unit=unit,
                question=question,
                direction=direction,
            )
            for record, score, inclusion, unit, question, direction in self._rows(query, values)
        ]

    def groups_seen(self, by: str, *, limit: int = 40) -> list[str]:
        """The groups there are, those with the latest turns first; of judges those with the most scores."""
        if by == "judge":
            query = """SELECT judge, count(*) FROM scores WHERE judge IS NOT NULL
                GROUP BY judge ORDER BY 2 DESC, 1 LIMIT :limit"""
            return [row[0] for row in self._rows(query, {"limit": limit})]
        column, join, named = self.grouping(by)
        query = f"""SELECT {column}, max(e.happened_at) FROM evaluations e {join}
            WHERE {column} IS NOT NULL GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT :limit"""
        return [row[0] for row in self._rows(query, {"by": named, "limit": limit}) if row[0]]

    def spending(self) -> list[Spending]:
        """What judging cost, by the day (UTC) on which turns were judged."""
        query = """SELECT CAST(e.evaluated_at AS bigint) / 86400, count(*), sum(e.requests),
            sum(e.prompt_tokens + e.completion_tokens), sum(e.cost), count(e.cost)
            FROM evaluations e GROUP BY 1 ORDER BY 1"""
        return [
            Spending(
                name=f"{datetime.fromtimestamp(int(day) * 86400, UTC):%Y-%m-%d}",
                turns=turns,
                requests=int(requests),
                tokens=int(tokens),
                cost=cost,
                priced=priced,
            )
            for day, turns, requests, tokens, cost, priced in self._rows(query, {})
        ]

    def spending_by_metric(self) -> list[Spending]:
        """What each metric cost over the latest 20,000 turns, the dearest first.

        A request carries questions of several metrics, so that the cost of a turn is shared out evenly among
        its scores that a judge gave.
        """
        latest = (
            f"SELECT record_id FROM evaluations ORDER BY happened_at DESC, record_id DESC LIMIT {_SHARED_OUT}"
        )
        query = f"""SELECT s.metric, count(*), sum(e.cost / n.scores), count(e.cost)
            FROM scores s JOIN evaluations e ON e.record_id = s.record_id
            JOIN (SELECT record_id, count(*) AS scores FROM scores
                WHERE judge IS NOT NULL AND record_id IN ({latest}) GROUP BY record_id) n
            ON n.record_id = s.record_id
            WHERE s.judge IS NOT NULL GROUP BY s.metric
            ORDER BY coalesce(sum(e.cost / n.scores), 0) DESC, 1"""
        return [
            Spending(name=metric, turns=turns, requests=0, tokens=0, cost=cost, priced=priced)
            for metric, turns, cost, priced in self._rows(query, {})
        ]

    def sessions(self, order: Order, *, skip: int = 0, limit: int = 50) -> list[SessionRow]:
        """Conversations, the latest or those with the most turns that did not pass first."""
        values: dict[str, Any] = {"skip": skip, "limit": limit}
        if order == "latest":
            query = f"SELECT session, turns, first, last FROM ({_SESSIONS}) a ORDER BY last DESC, session"
        else:
            every = _BAD.format(which="e.session IS NOT NULL")
            query = f"""SELECT a.session, a.turns, a.first, a.last FROM ({_SESSIONS}) a
                LEFT JOIN ({every}) b ON b.session = a.session
                ORDER BY coalesce(b.bad, 0) DESC, a.last DESC, a.session"""
        found = self._rows(f"{query} LIMIT :limit OFFSET :skip", values)
        if not found:
            return []
        names = {f"s{place}": row[0] for place, row in enumerate(found)}
        which = f"e.session IN ({', '.join(f':{name}' for name in names)})"
        bad = dict(self._rows(_BAD.format(which=which), names))
        course, questions = self._courses(which, names)
        return [
            SessionRow(
                session=session,
                turns=turns,
                bad=bad.get(session, 0),
                first=first,
                last=last,
                question=questions.get(session, ""),
                course=tuple(course[session]),
            )
            for session, turns, first, last in found
        ]

    def _courses(
        self, which: str, names: Mapping[str, str]
    ) -> tuple[Mapping[str, Sequence[bool]], Mapping[str, str]]:
        """Of some conversations, how their first turns went, and their first question."""
        query = f"""SELECT e.session, substr(coalesce(e.question, ''), 1, 200),
            NOT EXISTS (SELECT 1 FROM scores s WHERE s.record_id = e.record_id AND s.passed = 0)
            FROM evaluations e WHERE {which} ORDER BY e.session, e.happened_at, e.record_id LIMIT :most"""
        course: defaultdict[str, list[bool]] = defaultdict(list)
        questions: dict[str, str] = {}
        for session, question, passed in self._rows(query, {**names, "most": _MOST_TURNS}):
            questions.setdefault(session, question)
            if len(course[session]) < _COURSE:
                course[session].append(bool(passed))
        return course, questions
