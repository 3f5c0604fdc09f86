"""Records out of rows and lines: by our names or by others; what is bad never stops the rest."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any, BinaryIO

from steelyard.errors import InvalidRecord
from steelyard.record import Record, clean, record_from_dict

Bad = Callable[[str, str], None]
"""Told where something bad is, and what is wrong with it."""
BadLine = Callable[[int, str], None]
"""Told the number of a bad line, from 1, and what is wrong with it."""

_LONGEST = 256 * 1024 * 1024
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


def read_records(lines: BinaryIO, *, bad: BadLine) -> Iterator[Record]:
    """Read records as they are needed, in bounded memory.

    Args:
        lines: One JSON object a line; empty lines are passed over. A record without an id gets its line's
            number, so that scoring the same file again gives the same results.
        bad: Called for each line that holds no record.
    """
    number = 0
    while line := lines.readline(_LONGEST):
        number += 1
        try:
            if len(line) == _LONGEST:
                _skip_line(lines)
                raise InvalidRecord(f"longer than {_LONGEST >> 20} MB")
            # A byte order mark may stand before the first line, and an empty line holds nothing.
            if line.strip(b"\xef\xbb\xbf \t\r\n"):
                yield read_record(_parse(line), number=number)
        except InvalidRecord as error:
            bad(number, str(error))


def _skip_line(lines: BinaryIO) -> None:
    # Read on in pieces, so that the line does not have to fit into memory.
    while (rest := lines.readline(1 << 20)) and not rest.endswith(b"\n"):
        pass


def _parse(line: bytes) -> Any:
    try:
        return json.loads(line.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise InvalidRecord(f"not UTF-8, at byte {error.start + 1}") from None
    except json.JSONDecodeError as error:
        # The commonest mistake, and the message says how to mend it.
        if line.strip() in (b"[", b"[]"):
            raise InvalidRecord("a JSON array; one object a line is needed (jq -c '.[]' turns it)") from None
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
        raise InvalidRecord(f"none of question, contexts, answer, reference is given; found: {found}")
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
    """The JSON type of a value, in words."""
    if value is None:
        return "null"
    # Booleans first: to Python they are numbers.
    for python, word in ((bool, "a boolean"), (int | float, "a number"), (str, "a string"), (list, "a list")):
        if isinstance(value, python):
            return word
    return "an object"
