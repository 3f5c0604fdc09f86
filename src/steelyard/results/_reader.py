"""What a report asks of stored results, in the same way of every SQL database; and results by address."""

from __future__ import annotations

import math
import os
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, replace
from typing import Any, Final

import numpy as np

from steelyard.errors import ConfigurationError, InvalidRecord
from steelyard.results._columns import ScoreColumns, by_metric, groups_of, seen_by_judge_alone, seen_by_screen
from steelyard.results._lists import TurnLists
from steelyard.results._schema import Execute, stored_evaluation
from steelyard.results._sqlite_store import SQLiteStore
from steelyard.results._store import THINNED, UNIT, Row, Store
from steelyard.results.labels import LabelStore
from steelyard.results.queries import (
    EVIDENCE,
    Made,
    MetricScores,
    Missing,
    SampledScore,
    Scope,
    ScreenedTurns,
    Totals,
)
from steelyard.scores import Evaluation

_COUNTED: Final = ", ".join(f"count(*) FILTER (WHERE e.evidence = '{kind}')" for kind in EVIDENCE[:-1])
"""Columns that count turns by how their passages are known."""
_SUMS: Final = """coalesce(sum(e.requests * 1.0), 0), coalesce(sum(e.prompt_tokens * 1.0), 0),
    coalesce(sum(e.completion_tokens * 1.0), 0), sum(e.cost), count(e.cost), coalesce(sum(e.seconds), 0),
    count(e.record_status)"""
_NOTHING: Final = "0, 0, 0, NULL, 0, 0, 0"
_LATEST: Final = """SELECT count(record_status) FROM (
    SELECT record_status FROM evaluations ORDER BY happened_at DESC LIMIT 1000) AS latest"""
SCORED = "s.status = 'scored' AND s.value IS NOT NULL"
"""The scores that have a value."""
_OF_SCORE = "s.metric, s.happened_at, s.value, s.passed, s.inclusion_probability, s.threshold, s.direction"


class ResultsReader(TurnLists):
    """Reads stored results. Every method may raise `ConfigurationError` for a database it cannot read."""

    @property
    def name(self) -> str:
        return self.store.name

    def close(self) -> None:
        self.store.close()

    def totals(self, scope: Scope, *, brief: bool = False) -> Totals:
        """All turns of a scope together.

        With `brief`, what takes a look at every turn (requests, tokens, cost, seconds, durations) is left
        out, and `with_content` is of the latest 1,000 turns.
        """
        where, values = self.of_turns(scope)
        sums = _NOTHING if brief else _SUMS
        query = f"""SELECT count(*), min(e.happened_at), max(e.happened_at), {_COUNTED}, {sums}
            FROM evaluations e WHERE {where}"""
        (found,) = self._rows(query, values)
        turns, first, last, *kinds, requests, tokens, replied, cost, priced, seconds, stored = found
        counts = zip(EVIDENCE, (*kinds, turns - sum(kinds)), strict=True)
        taken = np.zeros(0)
        if brief:
            ((stored,),) = self._rows(_LATEST, {})
        else:
            rows = self._rows(f"SELECT e.duration FROM evaluations e WHERE {where}", values)
            taken = np.sort(np.array([took for (took,) in rows], float))
        return Totals(
            turns=turns,
            with_content=stored,
            evidence={kind: count for kind, count in counts if count},
            first=first,
            last=last,
            requests=int(requests),
            prompt_tokens=int(tokens),
            completion_tokens=int(replied),
            cost=None if cost is None else float(cost),
            priced=priced,
            seconds=float(seconds),
            median_duration=float(taken[len(taken) // 2]) if len(taken) else None,
            high_duration=float(taken[len(taken) * 95 // 100]) if len(taken) else None,
        )

    def with_turns(self, scope: Scope) -> str:
        """The join that a scope with a tag or evidence needs; without them scores tell all."""
        alone = scope.evidence is None and (scope.tag is None or self.store.tagged_alone)
        return "" if alone else "JOIN evaluations e ON e.record_id = s.record_id"

    def of_turns(self, scope: Scope, every: int = 1) -> tuple[str, dict[str, Any]]:
        """The scope as a condition on `evaluations e`, with its values; of a part of the turns, if asked."""
        of_metric = f"e.turn IN (SELECT turn FROM scores WHERE metric = :metric {_thinned('scores', every)})"
        return self._conditions("e", of_metric, scope, every)

    def of_scores(self, scope: Scope) -> tuple[str, dict[str, Any]]:
        """The scope as a condition on `scores s` (`evaluations e` for tag and evidence), and its values."""
        return self._conditions("s", "s.metric = :metric", scope)

    def _conditions(
        self, table: str, of_metric: str, scope: Scope, every: int = 1
    ) -> tuple[str, dict[str, Any]]:
        conditions = {
            f"{table}.happened_at >= :since": scope.since,
            f"{table}.happened_at < :until": scope.until,
            # What screens said does not name its turn.
            self.store.tagged.format(
                table="e" if table == "q" else table, part=_thinned("turn_keys", every)
            ): scope.tag,
            "coalesce(e.evidence, 'unknown') = :evidence": scope.evidence,
            of_metric: scope.metric,
        }
        where = " AND ".join(text for text, value in conditions.items() if value is not None) or "true"
        return where, asdict(scope)

    def groups_of(self, scope: Scope, by: str) -> dict[str, tuple[str, ...]]:
        """By record, the groups that it is in."""
        group, join, name = self.store.grouping(by)
        where, values = self.of_turns(scope)
        query = f"SELECT e.record_id, {group} FROM evaluations e {join} WHERE {where}"
        return groups_of(self._rows(query, {**values, "by": name}))

    def missing(self, scope: Scope) -> list[Missing]:
        """Counts of scores without a value, most frequent first."""
        where, values = self.of_scores(scope)
        query = f"""SELECT s.metric, s.status, coalesce(s.cause, 'unknown'), count(*),
            sum(1 / s.inclusion_probability)
            FROM scores s {self.with_turns(scope)} WHERE s.status != 'scored' AND {where}
            GROUP BY s.metric, s.status, s.cause ORDER BY count(*) DESC, s.metric"""
        example = """SELECT explanation FROM scores WHERE metric = :metric AND status = :status
            AND coalesce(cause, 'unknown') = :cause AND status != 'scored' LIMIT 1"""
        found = []
        with self.store.reading() as execute:
            for metric, status, cause, count, weight in execute(query, values).fetchall():
                named = {"metric": metric, "status": status, "cause": cause}
                (said,) = execute(example, named).fetchone() or ("",)
                found.append(Missing(**named, explanation=said, count=count, weight=weight))
        return found

    def causes(self, scope: Scope, *, every: int = 1) -> dict[str, tuple[int, str]]:
        """How many turns suffer from what, most frequent first, and one of them; `fine` are the good ones.

        Args:
            scope: Which turns.
            every: Look at every so many-th only, and count it so many times.
        """
        where, values = self.of_turns(scope, every)
        query = f"""SELECT e.diagnosis, count(*), max(e.record_id) FROM evaluations e
            WHERE e.diagnosis IS NOT NULL {_thinned("e", every)} AND {where} GROUP BY 1 ORDER BY 2 DESC, 1"""
        found = self._rows(query, {**values, "every": every})
        return {cause: (count * every, record) for cause, count, record in found}

    def made(self, scope: Scope) -> list[Made]:
        """How the scores were made, most frequent first."""
        where, values = self.of_scores(scope)
        query = f"""SELECT s.judge, coalesce(s.embedder, ''), coalesce(s.prompt_version, ''),
            coalesce(s.calibrated, 0), count(*), count(CASE WHEN s.status != 'scored'
                AND substr(s.cause, 1, 8) != 'missing_' AND s.cause != 'contexts_guessed' THEN 1 END)
            FROM scores s {self.with_turns(scope)} WHERE s.judge IS NOT NULL AND {where}
            GROUP BY 1, 2, 3, 4 ORDER BY 5 DESC"""
        return [
            Made(judge, embedder, prompt, bool(known), count, missing)
            for judge, embedder, prompt, known, count, missing in self._rows(query, values)
        ]

    def evaluation(self, record_id: str) -> Evaluation | None:
        """One turn with all its scores; None where there is none of this id.

        Raises:
            InvalidRecord: If what is stored is not an Evaluation.
        """
        with self.store.reading() as execute:
            return stored_evaluation(execute, record_id)

    def position(self) -> int:
        """Where writing has got to: greater after every write, 0 where nothing was written yet."""
        ((found,),) = self._rows("SELECT coalesce(max(id), 0) FROM bodies", {})
        return int(found)

    def written_after(self, position: int, *, limit: int) -> list[tuple[int, Evaluation]]:
        """What was written after a position, in order of writing, each with its own position.

        A turn that was judged again comes again, at its new position only. Unreadable ones are left out.
        """
        query = """SELECT b.id, b.record_id FROM bodies b
            JOIN evaluations e ON e.record_id = b.record_id AND e.body = b.id
            WHERE b.id > :position ORDER BY b.id LIMIT :limit"""
        found: list[tuple[int, Evaluation]] = []
        with self.store.reading() as execute:
            # Damaged turns are passed over, so that a page may take more than one look.
            while len(found) < limit:
                values = {"position": position, "limit": limit - len(found)}
                rows = execute(query, values).fetchall()
                if not rows:
                    break
                position = rows[-1][0]
                found += [(at, one) for at, record in rows if (one := _readable(execute, record))]
        return found

    def worst(self, scope: Scope, metric: str, *, limit: int) -> list[Evaluation]:
        """The worst turns by a metric, worst first, with all their scores; unreadable ones are left out."""
        where, values = self.of_scores(scope)
        query = f"""SELECT s.record_id FROM scores s {self.with_turns(scope)}
            WHERE s.metric = :worst AND {SCORED} AND {where}
            ORDER BY CASE s.direction WHEN 'lower' THEN -s.value ELSE s.value END,
            s.happened_at DESC, s.record_id LIMIT :limit"""
        with self.store.reading() as execute:
            rows = execute(query, {**values, "worst": metric, "limit": limit}).fetchall()
            return [one for (record,) in rows if (one := _readable(execute, record)) is not None]

    def sample(self, scope: Scope, metric: str, *, limit: int, every: int = 1) -> list[SampledScore]:
        """The latest scores of a metric, in order of time; only every so many-th turn, if asked."""
        where, values = self.of_scores(scope)
        columns = "s.value, s.inclusion_probability, s.happened_at"
        source = f"""scores s JOIN evaluations e ON e.record_id = s.record_id
            WHERE s.metric = :sampled AND {SCORED} AND {where} {_thinned("s", every)}
            ORDER BY s.happened_at DESC, s.record_id"""
        values |= {"sampled": metric, "limit": limit, "every": every}
        return self._sampled(columns, source, values, judged=True)

    def unjudged(self, scope: Scope, metric: str, *, limit: int, every: int = 1) -> list[SampledScore]:
        """The latest turns of a metric that only a screen has scored; see `sample`."""
        where, values = self._conditions("q", "q.metric = :metric", scope)
        source = f"""screened q JOIN evaluations e ON e.record_id = q.record_id
            WHERE q.metric = :sampled AND q.value IS NOT NULL AND {where} {_thinned("e", every)}
            AND NOT EXISTS (SELECT 1 FROM scores s
            WHERE s.record_id = q.record_id AND s.metric = q.metric AND {SCORED})
            ORDER BY q.happened_at DESC, q.record_id"""
        values |= {"sampled": metric, "limit": limit, "every": every}
        return self._sampled("0.0, 1.0, q.happened_at", source, values, judged=False)

    def _sampled(
        self, columns: str, source: str, values: Mapping[str, Any], *, judged: bool
    ) -> list[SampledScore]:
        query = f"""SELECT {columns}, substr(coalesce(e.question, ''), 1, 500), {UNIT}, e.record_id,
            e.diagnosis, e.tenant, e.tags, e.framework, e.metadata FROM {source} LIMIT :limit"""
        attributes = self.store.attributes()
        return [
            SampledScore(
                # A metric of somebody's own may go beyond 0..1, which intervals do not.
                value=min(max(value, 0.0), 1.0),
                inclusion=inclusion,
                happened_at=when,
                question=question,
                unit=unit,
                record_id=record,
                diagnosis=diagnosis,
                attributes={**({"tenant": [tenant]} if tenant else {}), **attributes(*of_turn)},
                judged=judged,
            )
            for value, inclusion, when, question, unit, record, diagnosis, tenant, *of_turn in reversed(
                self._rows(query, values)
            )
        ]

    def scores(
        self, scope: Scope, *, turns: int, most: int | None = None, by: str | None = None
    ) -> dict[str, MetricScores]:
        """The scores of each metric; of more than so many only every so many-th, over the whole time.

        Args:
            scope: Which results.
            turns: How many turns it has.
            most: So many scores of each metric; of a tag or evidence, of so many turns. All if None.
            by: What groups are to be cut by.
        """
        owner = "NULL" if by is None else "s.judge" if by == "judge" else "s.record_id"
        query = (
            f"SELECT {_OF_SCORE}, {UNIT}, {owner} FROM {{}} AND {SCORED} ORDER BY s.happened_at, s.record_id"
        )
        found: defaultdict[str, ScoreColumns] = defaultdict(ScoreColumns)
        for source, values, every in self._parts(scope, turns, most):
            for rows in self.store.chunks(query.format(source), {**values, "every": every}):
                by_metric: defaultdict[str, list[Row]] = defaultdict(list)
                for row in rows:
                    by_metric[row[0]].append(row)
                for metric, own in by_metric.items():
                    found[metric].add(own, every)
        return {metric: columns.joined() for metric, columns in sorted(found.items())}

    def _parts(
        self, scope: Scope, turns: int, most: int | None
    ) -> Iterator[tuple[str, Mapping[str, Any], int]]:
        """Tables and conditions to read scores by, their values, and how many each score stands for."""
        if scope.tag is not None or scope.evidence is not None:
            every = _every(turns, most)
            # So written, no index is taken that leads to all scores of the metric for each turn.
            where, values = self._conditions("e", "s.metric || '' = :metric", scope, every)
            joined = f"evaluations e CROSS JOIN scores s WHERE true {_thinned('e', every)} AND {where}"
            yield f"{joined} AND s.record_id = e.record_id", values, every
            return
        where, values = self.of_scores(scope)
        query = f"SELECT s.metric, count(s.value) FROM scores s WHERE {where} GROUP BY 1"
        for metric, count in self._rows(query, values):
            every = _every(count, most)
            where, values = self.of_scores(replace(scope, metric=metric))
            joined = f"scores s JOIN evaluations e ON e.turn = s.turn WHERE {where} {_thinned('s', every)}"
            yield joined, values, every

    def spent(self, scope: Scope) -> list[tuple[bool, bool, float, float | None]]:
        """By whether the judge and whether a screen scored a turn: its requests and dollars, on average."""
        where, values = self.of_turns(scope)
        query = f"""SELECT judged, seen, avg(requests), avg(cost) FROM (SELECT
            EXISTS (SELECT 1 FROM scores s WHERE s.record_id = e.record_id AND {SCORED}) AS judged,
            EXISTS (SELECT 1 FROM screened q WHERE q.record_id = e.record_id) AS seen,
            e.requests AS requests, e.cost AS cost FROM evaluations e WHERE {where}) AS turns GROUP BY 1, 2"""
        rows = self._rows(query, values)
        return [(bool(judged), bool(seen), float(asked), cost) for judged, seen, asked, cost in rows]

    def screened(self, scope: Scope, *, limit: int) -> dict[str, ScreenedTurns]:
        """By metric, the turns that a screen saw or only the judge; nothing beyond the limit."""
        if not self._rows("SELECT 1 FROM screened LIMIT 1", {}):
            return {}
        rows: list[Any] = []
        for table, query in (("q", seen_by_screen), ("s", seen_by_judge_alone)):
            where, values = self._conditions(table, f"{table}.metric = :metric", scope)
            found = self._rows(query(where, UNIT), {**values, "limit": limit})
            if len(found) == limit:
                return {}
            rows += found
        return by_metric(rows)


def _readable(execute: Execute, record_id: str) -> Evaluation | None:
    """One turn, or None where what is stored of it is damaged: it must not end a report."""
    try:
        return stored_evaluation(execute, record_id)
    except InvalidRecord:
        return None


def _every(count: int, most: int | None) -> int:
    return 1 if most is None else max(math.ceil(count / most), 1)


def _thinned(table: str, every: int) -> str:
    """The rest of a condition: only every so many-th turn."""
    return f"AND {THINNED.format(table=table)}" if every > 1 else ""


_POSTGRES = ("postgresql", "postgres")


def open_results(address: str | os.PathLike[str] = "steelyard.db") -> ResultsReader:
    """Open stored results for reading; the caller closes them.

    Args:
        address: The path of a file that `SQLiteSink` wrote, or the address of another database.

    Raises:
        ConfigurationError: If nothing can be read there. A password in the address is not repeated.
    """
    return ResultsReader(_opening(address)())


def open_labels(address: str | os.PathLike[str] = "steelyard.db") -> LabelStore:
    """The labels beside stored results, by the address that `open_results` takes; nothing is read yet."""
    return LabelStore(_opening(address))


def _opening(address: str | os.PathLike[str]) -> Callable[[], Store]:
    """What opens the database at an address; a path has no scheme."""
    found = re.match(r"([A-Za-z][A-Za-z0-9+.-]*)://", os.fspath(address))
    scheme = found[1].lower() if found else ""
    if not scheme:
        return lambda: SQLiteStore(address)
    if scheme not in _POSTGRES:
        others = "".join(f" or {name}://..." for name in _POSTGRES)
        raise ConfigurationError(f"there are no results at {scheme}:// addresses; give a path{others}")
    return lambda: _postgres(os.fspath(address))


def _postgres(address: str) -> Store:
    from steelyard.results import PostgresStore  # says which package is missing

    return PostgresStore(address)
