"""The list of turns out of SQL tables: filtered, newest first, paged by key."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from steelyard.report.queries import CHOSEN, EVIDENCE, Totals, TurnFilter, TurnRow

COUNTED: Final = ", ".join(f"count(*) FILTER (WHERE e.evidence = '{kind}')" for kind in EVIDENCE[:-1])
"""Columns that count turns by how their passages are known."""
WITH_EVIDENCE: Final = "coalesce(e.evidence, 'unknown') = :evidence"
"""A condition on `evaluations e`: that their passages are known in one way."""


def evidence_of(turns: int, counts: Sequence[int]) -> dict[str, int]:
    """The counts of `COUNTED` by kind; of the rest of the turns nothing says it."""
    found = zip(EVIDENCE, (*counts, turns - sum(counts)), strict=True)
    return {kind: count for kind, count in found if count}


def totals_of(row: Sequence[Any], durations: Sequence[float]) -> Totals:
    """What turns come to: the counts in the order of the fields, `COUNTED` last; and durations."""
    return Totals(
        turns=row[0],
        with_content=row[1],
        evidence=evidence_of(row[0], row[-4:]),
        first=row[2],
        last=row[3],
        requests=int(row[4]),
        prompt_tokens=int(row[5]),
        completion_tokens=int(row[6]),
        cost=row[7],
        priced=row[8],
        seconds=row[9],
        median_duration=durations[0] if durations else None,
        high_duration=durations[1] if durations else None,
    )


Row = Sequence[Any]
Rows = Callable[[str, Mapping[str, Any]], Sequence[Row]]
"""Runs a query whose values are named as in `:since`."""
Place = tuple[float, str] | None
"""The time and the record id of the turn that a page ends or begins at."""
_STATUS = {
    "passed": "{plus}s.passed = 1",
    "not_passed": "{plus}s.passed = 0",
    "failed": "s.status = 'failed'",
    "not_applicable": "s.status = 'not_applicable'",
}


THINNED: Final = "((({table}.turn * 2654435761) & 4294967295) / 65536) % :every = 0"
"""A condition that holds of every so many-th turn. Multiplied and cut (Knuth, The Art of Computer
Programming 3, 6.4), a turn's number says nothing of what comes round regularly among turns."""
RANKS: Final = ("cost", "duration")
"""What turns can be ranked by besides a metric, the most first."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TurnQuery:
    """By what turns are found."""

    where: Sequence[str]
    """Conditions on `evaluations e`."""
    values: Mapping[str, Any]
    """What they name."""
    source: str = "evaluations e"
    """The tables."""
    ordered: str = "e"
    """The one of them that is read in order of time."""


def among(wanted: TurnFilter, field: str) -> str:
    """The rest of a condition: that something is one of the values asked for."""
    names = [f":{field}{number}" for number in range(len(wanted.chosen(field)))]
    return f"= {names[0]}" if len(names) == 1 else f"IN ({', '.join(names)})"


def conditions_of(wanted: TurnFilter, of_turn: Mapping[str, str], *, plus: str = "") -> list[str]:
    """Conditions on `evaluations e`, of which databases have some of their own.

    Args:
        wanted: What is asked for.
        of_turn: The conditions of one database, by the field of `wanted`, with `{}` for `among`; an empty
            one is met otherwise.
        plus: What keeps a database from an index on what most scores have in common.
    """
    labelled = "e.record_id IN (SELECT record_id FROM labels WHERE {})"
    where = _asked(
        wanted,
        {
            **of_turn,
            "trace": "e.trace_id = :trace",
            "session": "e.session {}",
            "evidence": "coalesce(e.evidence, 'unknown') {}",
            "cause": "e.diagnosis {}",
            "label": labelled.format("value {}"),
            "noted": labelled.format("note <> ''"),
        },
    )
    matching = _asked(wanted, {"metric": f"{plus}s.metric {{}}", "judge": "s.judge {}"})
    if statuses := wanted.chosen("status"):
        matching.append(f"({' OR '.join(_STATUS[one].format(plus=plus) for one in statuses)})")
    if matching:
        scores = " AND ".join(["s.record_id = e.record_id", *matching])
        where.insert(0, f"EXISTS (SELECT 1 FROM scores s WHERE {scores})")
    return where


def _asked(wanted: TurnFilter, conditions: Mapping[str, str]) -> list[str]:
    return [
        text.format(among(wanted, field)) if field in CHOSEN else text
        for field, text in conditions.items()
        if text and getattr(wanted, field)
    ]


ROW: Final = """e.record_id, e.happened_at, substr(e.question, 1, 400), substr(e.answer, 1, 400), e.diagnosis,
    e.session, e.cost, e.duration, e.tenant, e.tags, e.framework, e.metadata"""
"""The columns of `evaluations e` that a row of the list is made of."""


def page_of(rows: Rows, choice: TurnQuery, *, before: Place, after: Place, limit: int) -> Sequence[Row]:
    """A page of turns as `ROW`, newest first; see `ResultsReader.turns`."""
    where, turn = list(choice.where), choice.ordered
    values = {**choice.values, "limit": limit}
    if key := before or after:
        where.append(f"({turn}.happened_at, {turn}.record_id) {'<' if before else '>'} (:time, :id)")
        values |= {"time": key[0], "id": key[1]}
    # A page that ends at a place is read backwards from it, for where it begins is not known.
    order = "ASC" if after and not before else "DESC"
    query = f"""SELECT {ROW} FROM {choice.source} WHERE {" AND ".join(where) or "true"}
        ORDER BY {turn}.happened_at {order}, {turn}.record_id {order} LIMIT :limit"""
    found = rows(query, values)
    return found[::-1] if order == "ASC" else found


def ranked_page_of(
    rows: Rows, choice: TurnQuery, by: str, *, reverse: bool, offset: int, limit: int
) -> Sequence[Row]:
    """A page of turns as `ROW`, the worst by a metric first; see `ResultsReader.ranked`."""
    rank, order, join = "e." + by, "DESC", ""
    if by not in RANKS:
        rank, order = "CASE s.direction WHEN 'lower' THEN -s.value ELSE s.value END", "ASC"
        join = "JOIN scores s ON s.record_id = e.record_id AND s.metric = :by AND s.value IS NOT NULL"
    if reverse:
        order = "ASC" if order == "DESC" else "DESC"
    query = f"""SELECT {ROW} FROM {choice.source} {join} WHERE {" AND ".join(choice.where) or "true"}
        ORDER BY {rank} {order} NULLS LAST, e.happened_at DESC, e.record_id DESC
        LIMIT :limit OFFSET :offset"""
    return rows(query, {**choice.values, "by": by, "limit": limit, "offset": offset})


def rows_with_scores(
    rows: Rows, found: Sequence[Row], attributes: Callable[[Any, Any, Any], dict[str, list[str]]]
) -> list[TurnRow]:
    """Rows of the list out of `ROW` and the scores of these turns."""
    ids = {f"id{number}": row[0] for number, row in enumerate(found)}
    query = f"""SELECT record_id, metric, value, passed, status FROM scores
        WHERE record_id IN ({", ".join(f":{name}" for name in ids) or "NULL"}) ORDER BY record_id, position"""
    scores: defaultdict[str, list[tuple[str, float | None, bool | None, str]]] = defaultdict(list)
    for record_id, metric, value, passed, status in rows(query, ids):
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


def attributes_of(tags: object, framework: object, metadata: object) -> dict[str, list[str]]:
    """What slices are cut by: a turn's tags, its framework, and what is short in its metadata."""
    found: dict[str, list[str]] = {}
    if isinstance(tags, list):
        found["tag"] = [tag for tag in tags if isinstance(tag, str)]
    if isinstance(framework, str):
        found["framework"] = [framework]
    items: Mapping[str, Any] = metadata if isinstance(metadata, Mapping) else {}
    for name, value in items.items():
        # Longer texts are contents, not labels, and hardly two turns share one.
        if isinstance(value, bool | int | str) and len(str(value)) <= 80:
            found[str(name)] = [str(value)]
    return found
