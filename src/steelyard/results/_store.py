"""One database of results as it is read, and what SQLite and Postgres do differently."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from steelyard.results._schema import Execute
from steelyard.results.queries import CHOSEN, TurnFilter

Row = Sequence[Any]
Attributes = Callable[[Any, Any, Any], dict[str, list[str]]]
"""From the stored tags, framework and metadata of a turn to what slices are cut by."""
UNIT: Final = """coalesce(length(e.tenant) || ':' || e.tenant || coalesce(e.user_hash, e.session),
    e.user_hash, e.session)"""
"""What turns are alike by, as `Evaluation.unit` tells it: the user, or else the session, of one tenant."""
THINNED: Final = "((({table}.turn * 2654435761) & 4294967295) / 65536) % :every = 0"
"""A condition that holds of every so many-th turn. Multiplied and cut (Knuth, The Art of Computer
Programming 3, 6.4), a turn's number says nothing of what comes round regularly among turns."""
CHUNK: Final = 50_000
"""Rows that are added up at a time: some 10 MB of them, whatever the size of the database."""
_STATUS = {
    "passed": "{plus}s.passed = 1",
    "not_passed": "{plus}s.passed = 0",
    "failed": "s.status = 'failed'",
    "not_applicable": "s.status = 'not_applicable'",
}


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


class Store(ABC):
    """A database with our tables. Its errors become a ConfigurationError that says which cannot be read."""

    name: str
    """The file's path, or the address without user and password."""
    tagged: ClassVar[str]
    """A condition on `evaluations e`, or on `{table}`: that a turn has the tag `:tag` and is in `{part}`."""
    tagged_alone: ClassVar[bool] = False
    """Whether scores tell their turn's tags without `evaluations`."""
    among: ClassVar[str]
    """The rest of a condition: that a record is one of `:records`."""
    versions: ClassVar[str]
    """A query for each `version` of the metadata, 400 at most, and when it was first used."""
    tags: ClassVar[str]
    """The join that makes a row `t` of each tag of `evaluations e`."""

    @abstractmethod
    def reading(self) -> AbstractContextManager[Execute]:
        """What runs queries, one after the other on what is stored at this moment."""

    @abstractmethod
    def writing(self) -> AbstractContextManager[Execute]:
        """One transaction: all that is written in it, or nothing."""

    @abstractmethod
    def chunks(self, query: str, values: Mapping[str, Any]) -> Iterator[Sequence[Row]]:
        """The rows of a query, some thousand at a time: those of a year do not fit into memory."""

    @abstractmethod
    def close(self) -> None:
        """Let go of the database."""

    @abstractmethod
    def chosen(self, execute: Execute, wanted: TurnFilter) -> TurnQuery | None:
        """By what turns are found; None where it is sure that there are none."""

    @abstractmethod
    def given(self, records: Sequence[str]) -> Any:
        """The value of `:records`."""

    @abstractmethod
    def field(self, by: str) -> tuple[str, str]:
        """An entry of the metadata as a column, and the value of `:by`."""

    def attributes(self) -> Attributes:
        """What tells the attributes of many turns."""
        return attributes_of

    def grouping(self, by: str) -> tuple[str, str, str]:
        """The column that holds groups, what it is joined by, and the value of `:by`."""
        columns = {"cause": "e.diagnosis", "framework": "e.framework", "tenant": "e.tenant"}
        if by == "tag":
            return "t.value", self.tags, by
        column, value = (columns[by], by) if by in columns else self.field(by)
        return column, "", value


def among(wanted: TurnFilter, field: str) -> str:
    """The rest of a condition: that something is one of the values asked for."""
    names = [f":{field}{number}" for number in range(len(wanted.chosen(field)))]
    return f"= {names[0]}" if len(names) == 1 else f"IN ({', '.join(names)})"


def conditions_of(wanted: TurnFilter, of_turn: Mapping[str, str], *, plus: str = "") -> list[str]:
    """Conditions on `evaluations e`, of which databases have some of their own.

    `of_turn` has those by the field of `wanted`, with `{}` for `among`; an empty one is met otherwise. `plus`
    keeps a database from an index on what most scores have in common.
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


def attributes_of(tags: object, framework: object, metadata: object) -> dict[str, list[str]]:
    """What slices are cut by: a turn's tags, its framework, and what is short in its metadata."""
    tags, metadata = parsed(tags), parsed(metadata)
    found: dict[str, list[str]] = {}
    if isinstance(tags, list):
        found["tag"] = list(map(str, tags))
    if isinstance(framework, str):
        found["framework"] = [framework]
    items: Mapping[str, Any] = metadata if isinstance(metadata, Mapping) else {}
    for name, value in items.items():
        # Longer texts are contents, not labels, and hardly two turns share one.
        if isinstance(value, bool | int | str) and len(str(value)) <= 80:
            found[str(name)] = [str(value)]
    return found


def parsed(stored: object) -> Any:
    """JSON out of SQLite; Postgres gives values. None of what is not JSON."""
    try:
        return json.loads(stored) if isinstance(stored, str) else stored
    except (ValueError, RecursionError):
        return None
