"""Which column or field of a table holds which part of a turn."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from steelyard.backfill._rows import OTHER_NAMES, read_record
from steelyard.errors import ConfigurationError, InvalidRecord
from steelyard.record import Record

PARTS: Mapping[str, tuple[str, ...]] = {
    **OTHER_NAMES,
    # In a table without a column for what was expected, this is what was found.
    "contexts": (*OTHER_NAMES["contexts"], "context"),
    "reference": ("ground_truth", "expected_output"),  # a cell holds one text, no list of them
    "id": ("record_id",),
    "reference_contexts": (),
    "status": (),
    "time": ("started_at", "timestamp", "created_at", "start_time"),
    "trace_id": (),
    "span_id": (),
    "run_id": (),
    "tags": (),
    "metadata": (),
}
"""The parts of a turn, and the names under which each is found where none was given."""
NEEDED = ("question", "answer")
_LISTS = ("contexts", "reference_contexts", "tags")
_MILLIS = 1e11  # as seconds this is the year 5138, as milliseconds 1973


@dataclass(frozen=True)
class Columns:
    """The names that a user gave, and what is looked for where he gave none."""

    given: Mapping[str, str] = field(default_factory=dict)
    """Column by part: `{"question": "prompt"}`."""

    def __post_init__(self) -> None:
        for part in self.given:
            if part not in PARTS:
                raise ConfigurationError(f"{part!r} is not a part of a turn; those are {', '.join(PARTS)}")

    @classmethod
    def parse(cls, text: str) -> Columns:
        """Columns as they are typed: `question=prompt,contexts=docs`.

        Raises:
            ConfigurationError: If an entry has no `=`, or names no part of a turn.
        """
        pairs = [entry.partition("=") for entry in text.split(",") if entry.strip()]
        for part, equals, column in pairs:
            if not (equals and part.strip() and column.strip()):
                raise ConfigurationError(f"--map wants PART=COLUMN, not {part!r}")
        return cls({part.strip(): column.strip() for part, _, column in pairs})

    def find(self, columns: Collection[str], *, where: str) -> dict[str, str]:
        """The column of each part that a table has.

        Raises:
            ConfigurationError: If one that was given, or the question's or the answer's, is not there.
        """
        found: dict[str, str] = {}
        for part, others in PARTS.items():
            name = self.given.get(part)
            if name is not None and name not in columns:
                raise ConfigurationError(f"{where} has no column {name!r}; it has {_listed(columns)}")
            names = (part, *others) if name is None else (name,)
            column = next((known for known in names if known in columns), None)
            if column is not None:
                # The first that is there: names of one's own come before those of other tools.
                found[part] = column
        for part in NEEDED:
            if part not in found:
                raise ConfigurationError(
                    f"{where} has no column {part!r} (nor {', '.join(PARTS[part])}); "
                    f"it has {_listed(columns)}: name it with --map {part}=COLUMN"
                )
        return found


def _listed(columns: Collection[str]) -> str:
    shown = [repr(str(column)) for column in list(columns)[:20]]
    return ", ".join(shown) + (", ..." if len(columns) > 20 else "") if shown else "none"


def record_of(row: Mapping[str, Any], columns: Mapping[str, str]) -> Record:
    """A row as a Record. Columns that are not part of a turn become its metadata.

    A row without an id gets one from its content, so that the same turn in another file is the same turn.

    Raises:
        InvalidRecord: If the row holds none.
    """
    data = {
        part: _items(cell) if part in _LISTS else cell
        for part, column in columns.items()
        if (cell := row.get(column)) is not None
    }
    traced = {name: str(data.pop(name)) for name in ("trace_id", "span_id", "run_id") if name in data}
    moment = _moment(data.pop("time", None))
    known = set(columns.values())
    rest = {name: _plain(value) for name, value in row.items() if name not in known and value is not None}
    data["metadata"] = {**rest, **_mapping(data.get("metadata"))}
    for part in data.keys() & {"question", "answer", "reference"}:
        data[part] = str(data[part])
    if moment is not None:
        data["timings"] = {"started_at": moment}
    if traced:
        data["trace"] = {**traced, "framework": "backfill"}
    return read_record(
        {name: value for name, value in data.items() if value not in ({}, [])} | {"id": _id(data)},
        number=0,
        # Empty lists and objects are what exporters write where there is nothing.
    )


def _id(data: Mapping[str, Any]) -> str:
    if data.get("id") not in (None, ""):
        return str(data["id"])
    # Of the content alone: line numbers and times differ from one export to the next.
    told = [data.get(part) for part in ("question", "contexts", "answer")]
    return hashlib.blake2b(json.dumps(told, default=str).encode(), digest_size=16).hexdigest()


def _items(value: object) -> list[Any]:
    """A list that may be written as JSON, or be a single text."""
    if isinstance(value, str):
        text = value.strip()
        # A text that does not begin as a list is a single passage, whatever is in it.
        if not text.startswith("["):
            return [value] if text else []
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            raise InvalidRecord("a list is cut short or not JSON") from None
    if isinstance(value, list | tuple):
        return [_item(item) for item in value if item is not None]
    return [_item(value)]


def _item(value: object) -> object:
    """A passage: a text, or an object with one under a usual name."""
    if not isinstance(value, Mapping):
        return value if isinstance(value, str) else str(value)
    text = next(
        (value[key] for key in ("text", "page_content", "content") if isinstance(value.get(key), str)), ""
    )
    known = {name: value[name] for name in ("id", "score", "rank") if value.get(name) is not None}
    return {"text": text, **known}


def _mapping(value: object) -> dict[str, Any]:
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return {"metadata": value}
    return {str(name): _plain(item) for name, item in value.items()} if isinstance(value, Mapping) else {}


def _plain(value: object) -> object:
    """A JSON value."""
    if isinstance(value, str | int | float | bool | None):
        return value
    if isinstance(value, Mapping):
        return {str(name): _plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value.isoformat() if isinstance(value, datetime) else str(value)


def _moment(value: object) -> float | None:
    """A Unix time: of a time, a number of seconds or milliseconds, or an ISO 8601 text.

    Raises:
        InvalidRecord: If it is none.
    """
    if value is None or value == "":
        return None
    if isinstance(value, datetime):
        # A time without a zone is taken for UTC, as results are stored.
        return (value if value.tzinfo else value.replace(tzinfo=UTC)).timestamp()
    try:
        number = float(value)  # type: ignore[arg-type]
        return number / 1000 if number > _MILLIS else number
    except (TypeError, ValueError):
        pass
    try:
        given = datetime.fromisoformat(str(value))
    except ValueError:
        raise InvalidRecord("the time is neither a number nor ISO 8601") from None
    return (given if given.tzinfo else given.replace(tzinfo=UTC)).timestamp()
