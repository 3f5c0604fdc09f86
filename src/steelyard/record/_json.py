"""The JSON form of a Record, with a schema version: strict about shape, lenient about extras.

Pydantic, which comes with openai, reads and writes it from the dataclasses themselves; it is imported with
the first record that is read or written.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from steelyard._internal.json_pieces import json_pieces
from steelyard._internal.typed import adapter, loads, read
from steelyard.errors import InvalidRecord
from steelyard.record._limits import DEFAULT_LIMITS, Limits, clean
from steelyard.record._record import Record

RECORD_SCHEMA = 2
"""Version of the JSON form; a reader refuses a newer one. Version 1 had `in_prompt` where `seen` is now."""

_CONTEXT_LISTS = ("contexts", "retrieved", "reference_contexts")


def record_to_dict(record: Record, *, limits: Limits = DEFAULT_LIMITS) -> dict[str, Any]:
    """The Record as plain JSON values, cleaned first; fields with nothing in them are left out."""
    data = adapter(Record).dump_python(clean(record, limits=limits), mode="json", exclude_defaults=True)
    return {"schema": RECORD_SCHEMA, **data}


def record_to_json(record: Record, *, limits: Limits = DEFAULT_LIMITS) -> str:
    """The Record as one line of JSON."""
    return "".join(json_pieces(record_to_dict(record, limits=limits)))


def record_from_json(line: str | bytes) -> Record:
    """Read one line of JSON.

    Raises:
        InvalidRecord: If it is not JSON or not a Record.
    """
    return record_from_dict(loads(line))


def record_from_dict(data: object) -> Record:
    """Read the JSON form; fields that it does not know are passed over.

    Raises:
        InvalidRecord: If a field has the wrong shape, or the schema is newer than this reader.
    """
    if not isinstance(data, Mapping):
        raise InvalidRecord(f"a record is a JSON object, not {type(data).__name__}")
    check_schema(data, RECORD_SCHEMA)
    # A null means nothing is there, as an absent field does.
    given = {name: value for name, value in data.items() if value is not None and name != "schema"}
    if data.get("schema") == 1:
        given = {
            name: _from_schema_1(value) if name in _CONTEXT_LISTS else value for name, value in given.items()
        }
    for name in _CONTEXT_LISTS:
        if isinstance(value := given.get(name), list):
            # People write contexts by hand as bare strings.
            given[name] = [{"text": item} if isinstance(item, str) else item for item in value]
    return read(Record, given)


def check_schema(data: Mapping[str, Any], newest: int) -> None:
    """Refuse a JSON form that this reader does not know.

    Raises:
        InvalidRecord: If the schema is newer than `newest`, or is not a number.
    """
    schema = data.get("schema", newest)
    # True is an int to Python.
    if isinstance(schema, bool) or not isinstance(schema, int):
        raise InvalidRecord(f"'schema' must be a whole number, not {type(schema).__name__}")
    if schema > newest:
        raise InvalidRecord(f"schema {schema!r} is newer than {newest}; update steelyard")


def _from_schema_1(contexts: Any) -> Any:
    if not isinstance(contexts, list):
        return contexts
    return [
        {**item, "seen": float(item["in_prompt"])}
        if isinstance(item, Mapping) and isinstance(item.get("in_prompt"), bool)
        else item
        for item in contexts
    ]
