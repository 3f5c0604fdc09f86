"""What turns can be narrowed by, counted over the rows of some thousand turns in the same way everywhere."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, Final

from steelyard.report.queries import CHOSEN, Facet, Facets, TurnFilter
from steelyard.report.stores._turns import THINNED, TurnQuery, among

if TYPE_CHECKING:
    from steelyard.report.stores._lists import TurnLists

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


class FacetCounter:
    """Counts within one transaction."""

    def __init__(self, reader: TurnLists, connection: Any) -> None:
        self._reader, self._connection = reader, connection
        self._rows = reader.rows(connection)
        self._counts: dict[str, int] = {}

    def count(self, wanted: TurnFilter) -> Facets:
        """All facets of some turns."""
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
        choice = self._reader.choice(self._connection, wanted)
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
        attributes = self._reader.attributes_reader()
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
                    counts[name].update(set(values))
        return dict(counts)

    def _of_scores(self, drawn: _Drawn, wanted: TurnFilter, some: str = "") -> Counts:
        """The facets of scores; of some of them if a condition says which."""
        # As the list does: of the metric and the judge that are asked for, if any are.
        metrics, judges = set(wanted.chosen("metric")), set(wanted.chosen("judge"))
        query = f"""SELECT s.record_id, s.metric, s.status, s.passed, s.judge FROM scores s
            WHERE s.record_id {self._reader.among} {some}"""
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
        return {name: Counter([value for _, value in pairs]) for name, pairs in found.items()}

    def _of_labels(self, drawn: _Drawn) -> Counts:
        found: dict[str, set[tuple[str, str]]] = {name: set() for name in _OF_LABELS}
        if self._reader.has_labels(self._connection):
            query = f"SELECT record_id, value, note FROM labels WHERE record_id {self._reader.among}"
            for record, value, note in self._rows(query, self._records(drawn)):
                found["label"].add((record, value))
                if note:
                    found["noted"].add((record, "with a note"))
        return {name: Counter(value for _, value in pairs) for name, pairs in found.items()}

    def _records(self, drawn: _Drawn) -> Mapping[str, Any]:
        return {"records": self._reader.given([row[0] for row in drawn.rows])}


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
    """The names of what is narrowed by."""
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
