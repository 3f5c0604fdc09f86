"""The JSON form of a Record, with a schema version: strict about shape, lenient about extras."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import MISSING, Field, fields
from functools import cache
from typing import Any, cast, get_args

from steelyard.errors import InvalidRecord
from steelyard.record._limits import DEFAULT_LIMITS, Limits, clean
from steelyard.record._record import Context, ContextsSource, Record, Stage, Status, Timings, TraceRef

__all__ = [
    "RECORD_SCHEMA",
    "check_schema",
    "context_from_dict",
    "filled",
    "record_from_dict",
    "record_from_json",
    "record_to_dict",
    "record_to_json",
]

RECORD_SCHEMA = 1
"""Version of the JSON form; a reader refuses a newer one."""

_CONTEXT_LISTS = ("contexts", "retrieved", "reference_contexts")


def record_to_dict(record: Record, *, limits: Limits = DEFAULT_LIMITS) -> dict[str, Any]:
    """The Record as plain JSON values, cleaned first; fields with nothing in them are left out."""
    record = clean(record, limits=limits)
    data = {"schema": RECORD_SCHEMA, **filled(record)}
    for name in _CONTEXT_LISTS:
        if name in data:
            data[name] = [filled(context) for context in getattr(record, name)]
    if record.stages:
        data["stages"] = [
            {**filled(stage), "contexts": [filled(context) for context in stage.contexts]}
            for stage in record.stages
        ]
    for name in ("trace", "timings"):
        if name in data:
            data[name] = filled(getattr(record, name))
    return {name: list(value) if isinstance(value, tuple) else value for name, value in data.items()}


def filled(value: Any) -> dict[str, Any]:
    """The fields of a dataclass instance that hold something other than their default."""
    return {
        name: item
        for name, default in _defaults(type(value))  # type: ignore[arg-type]  # a class is hashable
        if (item := getattr(value, name)) != default
    }


@cache
def _defaults(kind: type[Any]) -> tuple[tuple[str, object], ...]:
    return tuple((field.name, _default(field)) for field in fields(kind))


def _default(field: Field[Any]) -> object:
    return field.default_factory() if field.default_factory is not MISSING else field.default


def record_to_json(record: Record, *, limits: Limits = DEFAULT_LIMITS) -> str:
    """The Record as one line of JSON."""
    return json.dumps(record_to_dict(record, limits=limits), ensure_ascii=False, separators=(",", ":"))


def record_from_json(line: str | bytes) -> Record:
    """Read one line of JSON.

    Raises:
        InvalidRecord: If it is not JSON or not a Record.
    """
    try:
        data = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise InvalidRecord(f"not JSON: {error}") from None
    return record_from_dict(data)


def record_from_dict(data: object) -> Record:
    """Read the JSON form.

    Raises:
        InvalidRecord: If a field has the wrong shape, or the schema is newer than this reader.
    """
    if not isinstance(data, Mapping):
        raise InvalidRecord(f"a record is a JSON object, not {type(data).__name__}")
    check_schema(data, RECORD_SCHEMA)
    names = {field.name for field in fields(Record)}
    given = {name: value for name, value in data.items() if name in names and value is not None}
    _read_parts(given)
    for name in ("tags", "notes", "truncated"):
        if name in given:
            given[name] = tuple(_text(item, name) for item in _list(given[name], name))
    _check_scalars(given)
    return Record(**given)


def _read_parts(given: dict[str, Any]) -> None:
    """Turn what is an object of ours in the given fields into one."""
    for name in _CONTEXT_LISTS:
        if name in given:
            given[name] = _contexts(given[name], name)
    if "stages" in given:
        given["stages"] = tuple(_stage(item) for item in _list(given["stages"], "stages"))
    for name, kind in (("trace", TraceRef), ("timings", Timings)):
        if name in given:
            given[name] = _part(given[name], kind, name)


def check_schema(data: Mapping[str, Any], newest: int) -> None:
    """Refuse a JSON form that this reader does not know.

    Raises:
        InvalidRecord: If the schema is newer than `newest`, or no number.
    """
    schema = data.get("schema", newest)
    if isinstance(schema, bool) or not isinstance(schema, int):
        raise InvalidRecord(f"'schema' must be a whole number, not {schema!r}")
    if schema > newest:
        raise InvalidRecord(f"schema {schema!r} is newer than {newest}; update steelyard")


def context_from_dict(data: object, *, where: str = "contexts") -> Context:
    """One context: a string, or an object with at least `text`.

    Raises:
        InvalidRecord: If it is neither.
    """
    if isinstance(data, str):
        return Context(text=data)
    context = cast(Context, _part(data, Context, where))
    if not isinstance(context.text, str):
        raise InvalidRecord(f"{where}: 'text' must be a string, not {type(context.text).__name__}")
    if context.id is not None and not isinstance(context.id, str):
        raise InvalidRecord(f"{where}: 'id' must be a string, not {type(context.id).__name__}")
    if context.score is not None and not isinstance(context.score, (int, float)):
        raise InvalidRecord(f"{where}: 'score' must be a number, not {type(context.score).__name__}")
    return context


def _contexts(value: object, where: str) -> tuple[Context, ...]:
    return tuple(context_from_dict(item, where=where) for item in _list(value, where))


def _stage(value: object) -> Stage:
    if not isinstance(value, Mapping):
        raise InvalidRecord("stages: each must be an object")
    contexts = _contexts(value.get("contexts", []), "stages")
    return Stage(
        name=_text(value.get("name", ""), "stages"),
        query=_text(value.get("query", ""), "stages"),
        contexts=contexts,
    )


def _part(value: object, kind: type[Any], where: str) -> Any:
    if not isinstance(value, Mapping):
        raise InvalidRecord(f"{where}: expected an object, not {type(value).__name__}")
    names = {field.name for field in fields(kind)}
    try:
        return kind(**{name: item for name, item in value.items() if name in names})
    except TypeError as error:
        raise InvalidRecord(f"{where}: {error}") from None


def _list(value: object, where: str) -> list[Any]:
    if not isinstance(value, list):
        raise InvalidRecord(f"{where!r} must be a list, not {type(value).__name__}")
    return value


def _text(value: object, where: str) -> str:
    if not isinstance(value, str):
        raise InvalidRecord(f"{where!r} must be a string, not {type(value).__name__}")
    return value


def _check_scalars(given: Mapping[str, Any]) -> None:
    for name in ("id", "question", "standalone_question", "answer", "reference", "error"):
        if name in given:
            _text(given[name], name)
    if not isinstance(given.get("metadata", {}), Mapping):
        raise InvalidRecord("'metadata' must be an object")
    for name, allowed in (("status", get_args(Status)), ("contexts_source", get_args(ContextsSource))):
        if name in given and given[name] not in allowed:
            raise InvalidRecord(f"{name!r} must be one of {', '.join(allowed)}, not {given[name]!r}")
