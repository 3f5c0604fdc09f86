"""What the pages beside the first one ask of stored results: conversations, money, groups to compare."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import Any, Final, Literal

from steelyard._internal.typed import read
from steelyard.errors import InvalidRecord
from steelyard.record import whole
from steelyard.results._store import UNIT, Store, parsed
from steelyard.results.labels import StoredCheck, check_of_row
from steelyard.results.queries import Funnel, Scope, StoredCanaries, StoredRun
from steelyard.scores import Direction

Order = Literal["latest", "worst"]
ORDERS: Final[tuple[Order, ...]] = ("latest", "worst")
"""How conversations are put in order."""
_COURSE: Final = 40
_MOST_TURNS: Final = 5_000
_SHARED_OUT: Final = 20_000
# Ids of sessions are the application's: two tenants may have the same.
_SESSIONS: Final = """SELECT e.session AS session, coalesce(e.tenant, '') AS tenant, count(*) AS turns,
    min(e.happened_at) AS first, max(e.happened_at) AS last
    FROM evaluations e WHERE e.session IS NOT NULL GROUP BY 1, 2"""
_BAD: Final = """SELECT e.session AS session, coalesce(e.tenant, '') AS tenant,
    count(DISTINCT e.record_id) AS bad
    FROM scores s JOIN evaluations e ON e.record_id = s.record_id
    WHERE s.passed = 0 AND {which} GROUP BY 1, 2"""
_PLAIN = ("seen", "accepted", "evaluated", "pending", "spooled", "abandoned")


@dataclass(frozen=True, slots=True)
class SessionRow:
    """One conversation in the list."""

    session: str
    tenant: str
    """Whose it is; empty where nothing says."""
    turns: int
    bad: int
    """Of those, with a score that did not pass."""
    first: float
    """When its first turn began, as Unix time."""
    last: float
    """When its last turn began."""
    question: str = field(repr=False)
    """How its first question begins; empty where content was not stored."""
    course: tuple[bool, ...]
    """Of its first 40 turns, in order, whether every score passed."""


@dataclass(frozen=True, slots=True)
class Spending:
    """What judging cost in one day, or for one metric."""

    name: str
    """The day as `2026-11-01` (UTC), or the metric."""
    turns: int
    requests: int
    """Judge and embedding requests; of a metric 0, since requests carry questions of several."""
    tokens: int
    """Tokens in and out; of a metric 0."""
    cost: float | None
    """US dollars; None where no price is known."""
    priced: int
    """Turns whose cost is known."""


@dataclass(frozen=True, slots=True)
class GroupScore:
    """One score of a group that is compared."""

    record_id: str
    value: float
    inclusion: float
    """The probability with which the turn was picked."""
    unit: str | None
    """Its user, or else its session; None where neither is known."""
    question: str = field(repr=False)
    direction: Direction


class Looks:
    """What a database of results is asked beside the figures of a report."""

    def __init__(self, store: Store) -> None:
        self.store = store

    def _rows(self, query: str, values: Mapping[str, Any]) -> list[Any]:
        with self.store.reading() as execute:
            return list(execute(query, values).fetchall())

    def checks(self) -> list[StoredCheck]:
        """The latest 200 checks of judges by probes, newest first; unreadable ones are left out."""
        query = """SELECT checked_at, judge, figures FROM judge_checks
            ORDER BY checked_at DESC, id DESC LIMIT 200"""
        rows = self._rows(query, {})
        return [found for row in rows if (found := check_of_row(*row)) is not None]

    def scored(self) -> dict[str, int]:
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
        """The latest scores of a metric in a time and in a group, cut as a `Side` says."""
        where, join, named = "true", "", ""
        if by == "judge":
            where = "s.judge = :value"
        elif by:
            column, join, named = self.store.grouping(by)
            where = f"{column} = :value"
        for bound, sign in (("since", ">="), ("until", "<")):
            if getattr(scope, bound) is not None:
                where += f" AND s.happened_at {sign} :{bound}"
        query = f"""SELECT s.record_id, s.value, s.inclusion_probability, {UNIT},
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
            GroupScore(record, min(max(score, 0.0), 1.0), *rest)
            for record, score, *rest in self._rows(query, values)
        ]

    def groups_seen(self, by: str) -> list[str]:
        """Forty groups at most, those with the latest turns first; of judges those with the most scores."""
        if by == "judge":
            query = """SELECT judge, count(*) FROM scores WHERE judge IS NOT NULL
                GROUP BY judge ORDER BY 2 DESC, 1 LIMIT 40"""
            return [row[0] for row in self._rows(query, {})]
        column, join, named = self.store.grouping(by)
        query = f"""SELECT {column}, max(e.happened_at) FROM evaluations e {join}
            WHERE {column} IS NOT NULL GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT 40"""
        return [row[0] for row in self._rows(query, {"by": named}) if row[0]]

    def spending(self) -> list[Spending]:
        """What judging cost, by the day (UTC) on which turns were judged."""
        query = """SELECT CAST(e.evaluated_at AS bigint) / 86400, count(*), sum(e.requests),
            sum(e.prompt_tokens + e.completion_tokens), sum(e.cost), count(e.cost)
            FROM evaluations e GROUP BY 1 ORDER BY 1"""
        return [
            Spending(
                f"{datetime.fromtimestamp(day * 86400, UTC):%Y-%m-%d}", turns, int(asked), int(tokens), *cost
            )
            for day, turns, asked, tokens, *cost in self._rows(query, {})
        ]

    def spending_by_metric(self) -> list[Spending]:
        """What each metric cost over the latest 20,000 turns, the dearest first.

        A request carries questions of several metrics, so that the cost of a turn is shared out evenly among
        its scores that a judge gave.
        """
        latest = (
            f"SELECT record_id FROM evaluations ORDER BY happened_at DESC, record_id DESC LIMIT {_SHARED_OUT}"
        )
        query = f"""SELECT s.metric, count(*), 0, 0, sum(e.cost / n.scores), count(e.cost)
            FROM scores s JOIN evaluations e ON e.record_id = s.record_id
            JOIN (SELECT record_id, count(*) AS scores FROM scores
                WHERE judge IS NOT NULL AND record_id IN ({latest}) GROUP BY record_id) n
            ON n.record_id = s.record_id
            WHERE s.judge IS NOT NULL GROUP BY s.metric
            ORDER BY coalesce(sum(e.cost / n.scores), 0) DESC, 1"""
        return [Spending(*row) for row in self._rows(query, {})]

    def sessions(self, order: Order, *, skip: int = 0, limit: int = 50) -> list[SessionRow]:
        """Conversations, the latest or those with the most turns that did not pass first."""
        values: dict[str, Any] = {"skip": skip, "limit": limit}
        if order == "latest":
            query = f"SELECT * FROM ({_SESSIONS}) a ORDER BY last DESC, session, tenant"
        else:
            every = _BAD.format(which="e.session IS NOT NULL")
            query = f"""SELECT a.* FROM ({_SESSIONS}) a
                LEFT JOIN ({every}) b ON b.session = a.session AND b.tenant = a.tenant
                ORDER BY coalesce(b.bad, 0) DESC, a.last DESC, a.session, a.tenant"""
        found = self._rows(f"{query} LIMIT :limit OFFSET :skip", values)
        if not found:
            return []
        names = {f"s{place}": row[0] for place, row in enumerate(found)}
        which = f"e.session IN ({', '.join(f':{name}' for name in names)})"
        bad = {(one, whose): count for one, whose, count in self._rows(_BAD.format(which=which), names)}
        course, questions = self._courses(which, names)
        return [
            SessionRow(
                *(session, tenant, turns, bad.get((session, tenant), 0), first, last),
                question=questions.get((session, tenant), ""),
                course=tuple(course[session, tenant]),
            )
            for session, tenant, turns, first, last in found
        ]

    def _courses(
        self, which: str, names: Mapping[str, str]
    ) -> tuple[Mapping[tuple[str, str], Sequence[bool]], Mapping[tuple[str, str], str]]:
        """By session and tenant, how the first turns of some conversations went, and their first question."""
        query = f"""SELECT e.session, coalesce(e.tenant, ''), substr(coalesce(e.question, ''), 1, 200),
            NOT EXISTS (SELECT 1 FROM scores s WHERE s.record_id = e.record_id AND s.passed = 0)
            FROM evaluations e WHERE {which} ORDER BY e.session, e.happened_at, e.record_id LIMIT :most"""
        course: defaultdict[tuple[str, str], list[bool]] = defaultdict(list)
        questions: dict[tuple[str, str], str] = {}
        for *own, question, passed in self._rows(query, {**names, "most": _MOST_TURNS}):
            key = (own[0], own[1])
            questions.setdefault(key, question)
            if len(course[key]) < _COURSE:
                course[key].append(bool(passed))
        return course, questions

    def funnel(self, scope: Scope) -> Funnel | None:
        """What became of every turn, in runs that touch the period; None where no Monitor stored it."""
        query = """SELECT started_at, updated_at, counts FROM ledger
            WHERE updated_at >= coalesce(:since, updated_at) AND started_at < coalesce(:until, 1e300)"""
        return _funnel_of(self._rows(query, asdict(scope)))

    def runs(self, *, limit: int) -> list[StoredRun]:
        """The Monitors that stored their counts, the one that did so last first."""
        query = """SELECT run, host, pid, started_at, updated_at, counts FROM ledger
            ORDER BY updated_at DESC, run LIMIT :limit"""
        rows = self._rows(query, {"limit": limit})
        return [found for row in rows if (found := _run_of(*row)) is not None]


def _funnel_of(rows: Iterable[tuple[float, float, str]]) -> Funnel | None:
    """The sum over runs (start, end, counts as JSON); unreadable ones are left out. None of no runs."""
    begins, ends, floors = [], [], []
    sums: Counter[str] = Counter()
    reasons: dict[str, Counter[str]] = {"skipped": Counter(), "dead": Counter()}
    for first, last, text in rows:
        if not isinstance(counts := parsed(text), Mapping):
            continue
        begins.append(first)
        ends.append(last)
        floor = counts.get("floor")
        # A Monitor whose selection is code of the user's own cannot say it.
        if isinstance(floor, float | int) and 0 < floor <= 1:
            floors.append(float(floor))
        sums.update({name: _number(counts.get(name)) for name in _PLAIN})
        sums["by_judge"] += _number(counts.get("by_judge", counts.get("evaluated")))
        for name, found in reasons.items():
            by_reason = counts.get(name)
            if isinstance(by_reason, Mapping):
                found.update({str(reason): _number(count) for reason, count in by_reason.items()})
    if not begins:
        return None
    return Funnel(
        runs=len(begins),
        first=min(begins),
        last=max(ends),
        skipped=_most_frequent(reasons["skipped"]),
        dead=_most_frequent(reasons["dead"]),
        floor=min(floors, default=None),
        by_judge=sums["by_judge"],
        **{name: sums[name] for name in _PLAIN},
    )


def _run_of(
    run: str, host: str, pid: int, started_at: float, updated_at: float, counts: str
) -> StoredRun | None:
    """One Monitor from its row; None if its counts cannot be read."""
    found = _funnel_of([(started_at, updated_at, counts)])
    if found is None:
        return None
    try:
        canaries = read(StoredCanaries, parsed(counts).get("canaries"))
    except InvalidRecord:  # there are none, or they cannot be read
        canaries = None
    return StoredRun(run, host, pid, started_at, updated_at, found, canaries)


def _most_frequent(counts: Counter[str]) -> dict[str, int]:
    return {reason: count for reason, count in counts.most_common() if count}


def _number(value: object) -> int:
    return whole(value) or 0
