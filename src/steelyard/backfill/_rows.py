"""Records out of rows and lines: by our names, by other tools', or by columns that the user names."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, BinaryIO

from steelyard.errors import ConfigurationError, InvalidRecord
from steelyard.record import Record, clean, record_from_dict
from steelyard.recording.provenance import word_count
from steelyard.recording.reading import PASSAGE_TEXTS, text_under

Bad = Callable[[str, str], None]
"""Told where something bad is, and what is wrong with it."""
BadLine = Callable[[int, str], None]
"""Told the number of a bad line, from 1, and what is wrong with it."""
Unread = Counter[tuple[str, str]]
"""How many turns lack a part that a column seems to hold which nothing reads: by part and column."""
_LONGEST = 256 * 1024 * 1024
_BLANK = b"\xef\xbb\xbf \t\r\n"  # a byte order mark may stand before the first line
OTHER_NAMES: Mapping[str, tuple[str, ...]] = {
    "question": ("user_input", "input", "query"),
    "contexts": ("retrieved_contexts", "retrieval_context", "documents"),
    "answer": ("response", "actual_output", "output"),
    "reference": ("ground_truth", "ground_truths", "expected_output"),
}
"""What else the parts of a turn are called: by Ragas, by DeepEval, and in files that people write by hand."""
_DEEPEVAL = frozenset({"actual_output", "retrieval_context"})
_IDS = {"contexts": "retrieved_context_ids", "reference_contexts": "reference_context_ids"}
_CONTEXTS = ("contexts", "reference_contexts", "retrieved")
_TELLING = ("question", "contexts", "answer", "reference")
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
_FEWEST_WORDS = 3  # of a passage; tags and names of files have fewer
_MILLIS = 1e11  # as seconds this is the year 5138, as milliseconds 1973


def read_records(
    lines: BinaryIO, *, bad: BadLine, columns: Columns | None = None, unread: Unread | None = None
) -> Iterator[Record]:
    """Read records as they are needed, in bounded memory.

    Args:
        lines: One JSON object a line, or a list of them; empty lines are passed over. A record without an id
            gets its number, so that scoring the same file again gives the same results.
        bad: Called for each line that holds no record.
        columns: The names that a user gave.
        unread: Counts what seems to be there and is not read.
    """
    for number, data in json_lines(lines, bad=bad):
        try:
            named = data if columns is None else columns.named(data)
            record = read_record(named, number=number)
        except InvalidRecord as error:
            bad(number, str(error))
            continue
        if unread is not None:
            unread.update(seeming(data, record).items())
        yield record


def json_lines(lines: BinaryIO, *, bad: BadLine) -> Iterator[tuple[int, Any]]:
    """What each line holds, with its number, or each entry of a file that is one list; bad lines are told."""
    number, is_begun = 0, False
    while line := lines.readline(_LONGEST):
        number += 1
        try:
            if not is_begun and line.lstrip(_BLANK)[:1] == b"[":
                yield from enumerate(_parse(line + lines.read(_LONGEST)), start=1)
                return
            if len(line) == _LONGEST:
                # Read on in pieces, so that the line does not have to fit into memory.
                while (rest := lines.readline(1 << 20)) and not rest.endswith(b"\n"):
                    pass
                raise InvalidRecord(f"longer than {_LONGEST >> 20} MB")
            if line.strip(_BLANK):
                is_begun = True
                yield number, _parse(line)
        except InvalidRecord as error:
            bad(number, str(error))


def _parse(line: bytes) -> Any:
    try:
        return json.loads(line.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise InvalidRecord(f"not UTF-8, at byte {error.start + 1}") from None
    except json.JSONDecodeError as error:
        raise InvalidRecord(f"not JSON: {error.msg} at column {error.colno}") from None
    except (ValueError, RecursionError) as error:
        raise InvalidRecord(f"not JSON: {error}") from None


def read_record(data: object, *, number: int) -> Record:
    """One parsed line as a Record, cleaned.

    Accepts, beside our own, the names of Ragas (`user_input`, `retrieved_contexts`, `response`, lists of
    context ids), of its older form (`ground_truth`, or a list in `ground_truths`, whose entries are joined by
    line breaks), of DeepEval (`input`, `retrieval_context`, `actual_output`, `expected_output`, and `context`
    for the expected contexts where it comes with one of these), and `query`, `documents`, `output`.

    Raises:
        InvalidRecord: If it holds none; the message says why.
    """
    if not isinstance(data, Mapping):
        raise InvalidRecord(f"a record is a JSON object, not {_kind(data)}")
    given = {**data, **{name: _under(data, name, others) for name, others in OTHER_NAMES.items()}}
    if all(given[name] is None for name in _TELLING):
        found = ", ".join(list(data)[:8]) or "nothing"
        named = ",".join(f"{part}={name}" for part, name in seeming(data, Record()).items())
        mend = f"; try --map {named}" if named else ""
        raise InvalidRecord(f"none of question, contexts, answer, reference is given; found: {found}{mend}")
    given["id"] = str(number) if data.get("id") is None else _id(data["id"])
    if _DEEPEVAL & given.keys():
        given.setdefault("reference_contexts", data.get("context"))
    for name in _CONTEXTS:
        if isinstance(given.get(name), list):
            given[name] = _contexts(given[name], data.get(_IDS.get(name, "")))
    return clean(record_from_dict(given))


def _under(data: Mapping[str, Any], name: str, others: tuple[str, ...]) -> Any:
    """A field's value under the first of its names that holds one; the message names what the user wrote."""
    for key in (name, *others):
        value = data.get(key)
        if value is None:
            continue
        wanted = list if name == "contexts" else str
        if key == "ground_truths" and isinstance(value, list):
            # Ragas' older files had several references; the expected answer is all of them.
            value = "\n".join(text for text in value if isinstance(text, str))
        if key == "user_input" and isinstance(value, list):
            raise InvalidRecord("'user_input' is a conversation; one question and its answer are needed")
        if not isinstance(value, wanted):
            expected = "a list" if wanted is list else "a string"
            raise InvalidRecord(f"{key!r} must be {expected}, not {_kind(value)}")
        return value
    return None


def _id(value: object) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise InvalidRecord(f"'id' must be a string or a whole number, not {_kind(value)}")
    return str(value)


def _contexts(items: list[object], ids: object) -> list[object]:
    """Contexts with their ids from the list beside them, where that has one for each, as strings."""
    if isinstance(ids, list) and len(ids) == len(items):
        items = [
            {"text": item, "id": name} if isinstance(item, str) else item
            for item, name in zip(items, ids, strict=True)
        ]
    return [
        {**item, "id": str(item["id"])}
        if isinstance(item, Mapping) and isinstance(item.get("id"), int)
        else item
        for item in items
    ]


def _kind(value: object) -> str:
    if value is None:
        return "null"
    # Booleans first: to Python they are numbers.
    for python, word in ((bool, "a boolean"), (int | float, "a number"), (str, "a string"), (list, "a list")):
        if isinstance(value, python):
            return word
    return "an object"


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

    def named(self, data: Any) -> Any:
        """An object with its fields under our names, where the user named them.

        Raises:
            InvalidRecord: If a field that was named is not there.
        """
        if not (self.given and isinstance(data, Mapping)):
            return data
        for part, name in self.given.items():
            if name not in data:
                raise InvalidRecord(f"it has no field {name!r}; it has {_listed(data)}")
            data = {**data, part: _items(data[name]) if part in _LISTS else data[name]}
        return data

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
        lacking = [part for part in NEEDED if part not in found]
        if lacking:
            part = lacking[0]
            mend = ",".join(f"{part}={_alike(part, columns) or 'COLUMN'}" for part in lacking)
            raise ConfigurationError(
                f"{where} has no column {part!r} (nor {', '.join(PARTS[part])}); "
                f"it has {_listed(columns)}: name it with --map {mend}"
            )
        return found


def _listed(columns: Collection[str]) -> str:
    shown = [repr(str(column)) for column in list(columns)[:20]]
    return ", ".join(shown) + (", ..." if len(columns) > 20 else "") if shown else "none"


def seeming(row: Mapping[str, Any], record: Record) -> dict[str, str]:
    """The columns that seem to hold what a record lacks of its question, passages and answer.

    A question and an answer by the end of a name (`user_query`), passages by what is there: a list of texts,
    or of objects with a text. Only what a single column does; it is said, and never taken.
    """
    found = {part: _alike(part, row) for part in NEEDED if not getattr(record, part)}
    if not record.contexts:
        lists = [name for name, value in row.items() if name not in _KNOWN and _are_passages(value)]
        found["contexts"] = lists[0] if len(lists) == 1 else ""
    return {part: name for part, name in found.items() if name}


_KNOWN = frozenset(name for part, others in PARTS.items() for name in (part, *others))


def _alike(part: str, columns: Iterable[str]) -> str:
    ends = tuple(f"_{name}" for name in (part, *PARTS[part]))
    found = [name for name in columns if name not in _KNOWN and name.lower().endswith(ends)]
    return found[0] if len(found) == 1 else ""


def _are_passages(value: object) -> bool:
    """Whether something is a list of which each entry tells a text of some words."""
    try:
        items = _items(value) if isinstance(value, list | str) and str(value)[:1] == "[" else []
    except InvalidRecord:
        return False
    texts = [one["text"] if isinstance(one, Mapping) else str(one) for one in items]
    return bool(texts) and all(word_count(text) >= _FEWEST_WORDS for text in texts)


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
    moment = unix_time(data.pop("time", None))
    known = set(columns.values())
    rest = {name: _plain(value) for name, value in row.items() if name not in known and value is not None}
    data["metadata"] = {**rest, **_mapping(data.get("metadata"))}
    for part in data.keys() & {"id", "question", "answer", "reference"}:
        data[part] = str(data[part])
    if not data.get("id"):
        # Of the content alone: line numbers and times differ from one export to the next.
        told = [data.get(part) for part in ("question", "contexts", "answer")]
        data["id"] = hashlib.blake2b(json.dumps(told, default=str).encode(), digest_size=16).hexdigest()
    if moment is not None:
        data["timings"] = {"started_at": moment}
    if traced:
        data["trace"] = {**traced, "framework": "backfill"}
    # Empty lists and objects are what exporters write where there is nothing.
    return read_record({name: value for name, value in data.items() if value not in ({}, [])}, number=0)


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
    text = text_under(value, PASSAGE_TEXTS) or ""
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
    if isinstance(value, str | int | float | bool | None):
        return value
    if isinstance(value, Mapping):
        return {str(name): _plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value.isoformat() if isinstance(value, datetime) else str(value)


def unix_time(value: object) -> float | None:
    """A Unix time: of a time, a number of seconds or milliseconds, or an ISO 8601 text."""
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
