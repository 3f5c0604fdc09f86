"""The list of turns: narrowed, ordered, paged by key, and counted by what it can be narrowed by."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Final

from steelyard.results._schema import Execute
from steelyard.results._store import THINNED, Attributes, Row, Store, TurnQuery, among
from steelyard.results.looks import Looks
from steelyard.results.queries import CHOSEN, Facet, Facets, Marks, Scope, TurnFilter, TurnRow

LOOK: Final = 5_000
"""Up to so many turns all are counted."""
_PART: Final = 2_500
"""Of more, so many: a share among them is known to 2 %."""
_ENOUGH: Final = 400
"""A share among so many is known to 5 %."""
_SHOWN: Final = 60
"""Values kept of each facet."""
_VALUES: Final = 200
"""A field of the metadata with more values is an id or a text, and narrows nothing."""
_OF_SCORES: Final = ("metric", "status", "judge")
_OF_LABELS: Final = ("label", "noted")
_OF_TURN: Final = "e.record_id, e.evidence, e.diagnosis, e.session, e.tenant, e.tags, e.framework, e.metadata"
_FIXED: Final = (*CHOSEN, "noted")

Counts = dict[str, Counter[str]]


def choice_of(store: Store, execute: Execute, wanted: TurnFilter) -> TurnQuery | None:
    """By what turns are found, with what is asked of their time and of fields of one's own."""
    found = store.chosen(execute, wanted)
    if found is None:
        return None
    where, values = list(found.where), dict(found.values)
    if wanted.since is not None:
        where.append(f"{found.ordered}.happened_at >= :since")
    if wanted.until is not None:
        where.append(f"{found.ordered}.happened_at < :until")
    for at, name in enumerate(dict.fromkeys(name for name, _ in wanted.where)):
        column, _, by = store.grouping(name)
        held = {f"where{at}v{n}": one for n, one in enumerate(_spelled(wanted.where, name))}
        values |= {f"by{at}": by, **held}
        column = column.replace(":by", f":by{at}")
        condition = f"{column} IN ({', '.join(f':{one}' for one in held)})"
        where.append(f"({condition} OR {column} IS NULL)" if "" in held.values() else condition)
    return replace(found, where=where, values=values)


def _spelled(where: Sequence[tuple[str, str]], name: str) -> list[str]:
    """The values asked for under a name; a truth value as either database and Python write it."""
    bools = {"True": ("True", "true", "1"), "False": ("False", "false", "0")}
    return [form for own, value in where if own == name for form in bools.get(value, (value,))]


class FacetCounter:
    """Counts within one transaction."""

    def __init__(self, store: Store, execute: Execute) -> None:
        self._store, self._execute = store, execute
        self._counts: dict[str, int] = {}

    def _rows(self, query: str, values: Mapping[str, Any]) -> Sequence[Sequence[Any]]:
        return list(self._execute(query, values).fetchall())

    def count(self, wanted: TurnFilter) -> Facets:
        drawn = self._draw(wanted)
        counts = self._of_turns(drawn.rows) | self._of_scores(drawn, wanted) | self._of_labels(drawn)
        found = {name: _times(one, drawn.every) for name, one in counts.items()}
        for name in _asked(wanted):
            # Of what is narrowed by, every value that could be chosen instead.
            wider = _without(wanted, name)
            other = self._draw(wider, "e.record_id" if name in (*_OF_SCORES, *_OF_LABELS) else _OF_TURN)
            found[name] = _times(self._one(name, other, wider), other.every)
            for value in _values(wanted, name):
                found[name].setdefault(value, 0)
        if drawn.every > 1:
            found.pop("session", None)  # of a part of the turns, hardly any two are of one session
        facets = tuple(_ordered(found, wanted))
        return Facets(
            facets=facets,
            turns=drawn.turns,
            every=drawn.every,
            metrics=tuple(name for name, _ in counts["metric"].most_common(_SHOWN)),
        )

    def _one(self, name: str, drawn: _Drawn, wanted: TurnFilter) -> Counter[str]:
        if name in _OF_SCORES:
            # `||` keeps a database from all scores of the metric for each turn.
            narrowed = name != "metric" and wanted.metric
            some = f"AND s.metric || '' {among(wanted, 'metric')}" if narrowed else ""
            return self._of_scores(drawn, wanted, some)[name]
        if name in _OF_LABELS:
            return self._of_labels(drawn)[name]
        return self._of_turns(drawn.rows).get(name, Counter())

    def _draw(self, wanted: TurnFilter, columns: str = _OF_TURN) -> _Drawn:
        """The turns that are asked for, or a part of them if they are too many."""
        choice = choice_of(self._store, self._execute, wanted)
        if choice is None:
            return _Drawn()
        time = [one for one in ("e.happened_at >= :since", "e.happened_at < :until") if one in choice.where]
        count = self._count(" AND ".join(time) or "true", choice)
        every = 1 if count <= LOOK else math.ceil(count / _PART)
        rows = self._part(choice, columns, every)
        if every > 1 and len(rows) < _ENOUGH:
            # What is rare is counted wholly, or nearly so.
            every = max(2 * every * len(rows) // _PART, 1)
            rows = self._part(choice, columns, every)
        whole = len(time) == len(choice.where) and every > 1
        return _Drawn(rows=rows, every=every, turns=count if whole else _about(len(rows) * every, every))

    def _count(self, time: str, choice: TurnQuery) -> int:
        """The turns of a time; asked once, for all that is counted is of one time."""
        if time not in self._counts:
            query = f"SELECT count(*) FROM evaluations e WHERE {time}"
            ((self._counts[time],),) = self._rows(query, choice.values)
        return self._counts[time]

    def _part(self, choice: TurnQuery, columns: str, every: int) -> Sequence[Sequence[Any]]:
        # Looked at first, it spares the other conditions most turns.
        part = [THINNED.format(table="e")] if every > 1 else []
        where = " AND ".join((*part, *choice.where)) or "true"
        query = f"SELECT {columns} FROM {choice.source} WHERE {where} LIMIT {4 * LOOK}"
        return self._rows(query, {**choice.values, "every": every})

    def _of_turns(self, rows: Sequence[Sequence[Any]]) -> Counts:
        attributes = self._store.attributes()
        counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
        for _, evidence, cause, session, tenant, *rest in rows:
            counts["evidence"][evidence or "unknown"] += 1
            if cause:
                counts["cause"][cause] += 1
            if session:
                counts["session"][session] += 1
            if tenant:
                counts["tenant"][tenant] += 1
            for name, values in attributes(*rest).items():
                # A field of the metadata that is named as something else here cannot be chosen.
                if name in ("tag", "version", "route", "framework") or name not in (*_FIXED, "tenant"):
                    counts[name].update(dict.fromkeys(values, 1))
        return dict(counts)

    def _of_scores(self, drawn: _Drawn, wanted: TurnFilter, some: str = "") -> Counts:
        # As the list does: of the metric and the judge that are asked for, if any are.
        metrics, judges = set(wanted.chosen("metric")), set(wanted.chosen("judge"))
        query = f"""SELECT s.record_id, s.metric, s.status, s.passed, s.judge FROM scores s
            WHERE s.record_id {self._store.among} {some}"""
        found: dict[str, set[tuple[str, str]]] = {name: set() for name in _OF_SCORES}
        for record, metric, status, passed, judge in self._rows(
            query, {**wanted.parameters(), **self._records(drawn)}
        ):
            found["metric"].add((record, metric))
            if (metrics and metric not in metrics) or (judges and judge not in judges):
                continue
            if shown := _status(status, passed):
                found["status"].add((record, shown))
            if judge:
                found["judge"].add((record, judge))
        return {name: _counted(pairs) for name, pairs in found.items()}

    def _of_labels(self, drawn: _Drawn) -> Counts:
        found: dict[str, set[tuple[str, str]]] = {name: set() for name in _OF_LABELS}
        query = f"SELECT record_id, value, note FROM labels WHERE record_id {self._store.among}"
        for record, value, note in self._rows(query, self._records(drawn)):
            found["label"].add((record, value))
            if note:
                found["noted"].add((record, "with a note"))
        return {name: _counted(pairs) for name, pairs in found.items()}

    def _records(self, drawn: _Drawn) -> Mapping[str, Any]:
        return {"records": self._store.given([row[0] for row in drawn.rows])}


@dataclass(frozen=True, kw_only=True)
class _Drawn:
    """Turns that are counted."""

    rows: Sequence[Sequence[Any]] = field(default=(), repr=False)
    every: int = 1
    turns: int = 0


def _status(status: str, passed: int | None) -> str:
    """What can be asked for as `TurnFilter.status`; empty of a score without a threshold."""
    if status != "scored":
        return status
    return "" if passed is None else "passed" if passed else "not_passed"


def _asked(wanted: TurnFilter) -> list[str]:
    return [
        *(name for name in _FIXED if getattr(wanted, name)),
        *dict.fromkeys(name for name, _ in wanted.where),
    ]


def _values(wanted: TurnFilter, name: str) -> Iterable[str]:
    if name == "noted":
        return ("with a note",)
    return wanted.chosen(name) if name in CHOSEN else [value for own, value in wanted.where if own == name]


def _without(wanted: TurnFilter, name: str) -> TurnFilter:
    if name in _FIXED:
        empty = {one.name: one.default for one in fields(TurnFilter)}
        return replace(wanted, **{name: empty[name]})  # type: ignore[arg-type]  # its own default
    return replace(wanted, where=tuple(pair for pair in wanted.where if pair[0] != name))


def _counted(pairs: Iterable[tuple[str, str]]) -> Counter[str]:
    """How many turns have each value; values that equally many have are always in the same order."""
    return Counter(dict(sorted(Counter([value for _, value in pairs]).items())))


def _times(counts: Counter[str], every: int) -> Counter[str]:
    return Counter({value: _about(number * every, every) for value, number in counts.items()})


def _about(number: int, every: int) -> int:
    """A number that is only estimated, in two digits."""
    if every == 1 or number < 100:
        return number
    return round(number, 2 - len(str(number)))


def _ordered(counts: Counts, wanted: TurnFilter) -> Iterable[Facet]:
    """Those that narrow anything: what is asked for always comes along."""
    asked = _asked(wanted)
    for name, found in counts.items():
        few = name in (*_FIXED, *asked) or len(found) <= _VALUES
        if few and (name in asked or len(found) > 1 or (name in _OF_LABELS and found)):
            kept = dict(found.most_common(_SHOWN))
            yield Facet(name=name, counts=kept | {value: found[value] for value in _values(wanted, name)})


Place = tuple[float, str] | None
"""The time and the record id of the turn that a page ends or begins at."""
_RANKS: Final = ("cost", "duration")
"""What turns can be ranked by besides a metric, the most first."""
_ROW: Final = """e.record_id, e.happened_at, substr(e.question, 1, 400), substr(e.answer, 1, 400),
    e.diagnosis, e.session, e.cost, e.duration, e.tenant, e.tags, e.framework, e.metadata"""
"""The columns of `evaluations e` that a row of the list is made of."""


class TurnLists(Looks):
    """What a database of results is asked for lists of turns."""

    def turns(
        self, wanted: TurnFilter, *, before: Place = None, after: Place = None, limit: int = 50
    ) -> list[TurnRow]:
        """Turns, newest first, older or newer than the one with a `TurnRow.key`; of newer ones the oldest."""

        def page(execute: Execute, choice: TurnQuery) -> Sequence[Row]:
            return _page(execute, choice, before=before, after=after, limit=limit)

        return self._listed(wanted, page)

    def ranked(
        self, wanted: TurnFilter, by: str, *, reverse: bool = False, offset: int = 0, limit: int = 50
    ) -> list[TurnRow]:
        """A page of turns, the worst by a metric first, or those of the most `cost` or `duration`."""

        def page(execute: Execute, choice: TurnQuery) -> Sequence[Row]:
            return _ranked_page(execute, choice, by, reverse=reverse, offset=offset, limit=limit)

        return self._listed(wanted, page)

    def _listed(
        self, wanted: TurnFilter, page: Callable[[Execute, TurnQuery], Sequence[Row]]
    ) -> list[TurnRow]:
        with self.store.reading() as execute:
            choice = choice_of(self.store, execute, wanted)
            if choice is None:
                return []
            return _with_scores(execute, page(execute, choice), self.store.attributes())

    def marks(self, scope: Scope, *, width: float, deploys: int) -> Marks:
        """Deploys and labels on the time axis; labels are counted by pieces of `width` seconds."""
        values = {"since": -1e300 if scope.since is None else scope.since}
        values["until"] = 1e300 if scope.until is None else scope.until
        with self.store.reading() as execute:
            versions = execute(self.store.versions, {}).fetchall()
            query = """SELECT labelled_at FROM labels WHERE labelled_at >= :since
                AND labelled_at < :until ORDER BY labelled_at DESC LIMIT 20000"""
            given = Counter(at // width * width for (at,) in execute(query, values).fetchall())
        used = sorted((at, str(name)) for name, at in versions)
        # With the first one nothing changed.
        found = [one for one in used[1:] if values["since"] <= one[0] < values["until"]]
        return Marks(
            deploys=tuple(found[-deploys:]),
            more=max(len(found) - deploys, 0),
            labels=tuple(sorted(given.items())),
        )

    def facets(self, wanted: TurnFilter) -> Facets:
        """What the turns that are asked for can be narrowed by, with counts.

        The values of what is narrowed by already are counted without that, so that one can choose others.
        Above 5,000 turns a part of them, taken evenly, is counted (`Facets.every`).
        """
        with self.store.reading() as execute:
            return FacetCounter(self.store, execute).count(wanted)


def _page(execute: Execute, choice: TurnQuery, *, before: Place, after: Place, limit: int) -> Sequence[Row]:
    where, turn = list(choice.where), choice.ordered
    values = {**choice.values, "limit": limit}
    if key := before or after:
        where.append(f"({turn}.happened_at, {turn}.record_id) {'<' if before else '>'} (:time, :id)")
        values |= {"time": key[0], "id": key[1]}
    # A page that ends at a place is read backwards from it, for where it begins is not known.
    order = "ASC" if after and not before else "DESC"
    query = f"""SELECT {_ROW} FROM {choice.source} WHERE {" AND ".join(where) or "true"}
        ORDER BY {turn}.happened_at {order}, {turn}.record_id {order} LIMIT :limit"""
    found: Sequence[Row] = execute(query, values).fetchall()
    return found[::-1] if order == "ASC" else found


def _ranked_page(
    execute: Execute, choice: TurnQuery, by: str, *, reverse: bool, offset: int, limit: int
) -> Sequence[Row]:
    rank, order, join = "e." + by, "DESC", ""
    if by not in _RANKS:
        rank, order = "CASE s.direction WHEN 'lower' THEN -s.value ELSE s.value END", "ASC"
        join = "JOIN scores s ON s.record_id = e.record_id AND s.metric = :by AND s.value IS NOT NULL"
    if reverse:
        order = "ASC" if order == "DESC" else "DESC"
    query = f"""SELECT {_ROW} FROM {choice.source} {join} WHERE {" AND ".join(choice.where) or "true"}
        ORDER BY {rank} {order} NULLS LAST, e.happened_at DESC, e.record_id DESC
        LIMIT :limit OFFSET :offset"""
    values = {**choice.values, "by": by, "limit": limit, "offset": offset}
    found: Sequence[Row] = execute(query, values).fetchall()
    return found


def _with_scores(execute: Execute, found: Sequence[Row], attributes: Attributes) -> list[TurnRow]:
    """Rows of the list out of `_ROW` and the scores of these turns."""
    ids = {f"id{number}": row[0] for number, row in enumerate(found)}
    query = f"""SELECT record_id, metric, value, passed, status FROM scores
        WHERE record_id IN ({", ".join(f":{name}" for name in ids) or "NULL"}) ORDER BY record_id, position"""
    scores: defaultdict[str, list[tuple[str, float | None, bool | None, str]]] = defaultdict(list)
    for record_id, metric, value, passed, status in execute(query, ids).fetchall():
        scores[record_id].append((metric, value, None if passed is None else bool(passed), status))
    return [
        TurnRow(
            record_id=row[0],
            happened_at=row[1],
            question=row[2] or "",
            scores=tuple(scores[row[0]]),
            answer=row[3] or "",
            cause=row[4],
            session=row[5],
            cost=row[6],
            duration=row[7],
            attributes={**({"tenant": [row[8]]} if row[8] else {}), **attributes(*row[9:])},
        )
        for row in found
    ]
