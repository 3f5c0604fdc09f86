"""The JSON form of a Record, capped and repaired: what goes on is bounded, valid Unicode and plain JSON.

Texts lose lone surrogates and NULs (no database and no HTTP body can hold them), and everything is cut to
`Limits`; `Record.truncated` names what was cut. Nothing of that raises, whatever the objects do. Reading is
strict about shape and lenient about extras; pydantic does it, imported with the first record.
"""

from __future__ import annotations

import hashlib
import math
import operator
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from itertools import islice
from typing import Any, TypeVar, get_args

from steelyard._internal.typed import adapter, json_pieces, loads, read, with_changes, with_items
from steelyard.errors import InvalidRecord
from steelyard.record._record import (
    Context,
    ContextsSource,
    Record,
    Stage,
    Status,
    Timings,
    TraceRef,
    is_hashed,
    text_of,
)

_LARGEST = 2**63 - 1
"""The largest whole number that a database or a protocol buffer holds."""
# Deeper than metadata of frameworks nests, and far from Python's own bound.
_DEPTH = 6
_NAME = 1000
"""Characters of an id or a name."""
_IDENTIFIER = 200
"""Characters of the id of a session or tenant."""
_TAKEN = ("question", "contexts", "answer")
"""What a Record tells the origin of."""
_Item = TypeVar("_Item")


@dataclass(frozen=True, kw_only=True, slots=True)
class Limits:
    """How large a Record may be; what is beyond is cut and named in `Record.truncated`."""

    text: int = 100_000
    """Characters in the question, the answer or the reference."""
    context: int = 50_000
    """Characters in one context."""
    contexts: int = 200
    """Contexts in one list."""
    total: int = 1_000_000
    """Characters in one list of contexts, added up."""
    metadata: int = 16_000
    """Characters in the metadata, added up."""
    items: int = 200
    """Entries in one mapping or list of the metadata, and tags."""


DEFAULT_LIMITS = Limits()


def to_json_value(value: object) -> Any:
    """Any object as plain JSON: bounded, without cycles, NaN or unprintable parts."""
    return _JsonValues(DEFAULT_LIMITS).convert(value, _DEPTH)


class _JsonValues:
    """Turns objects into JSON values within one budget of characters and entries.

    The budget is spent on what comes out, so that the result fits it when it goes through once more.
    """

    def __init__(self, limits: Limits) -> None:
        self._items = limits.items
        self._left = limits.metadata
        self.cut = False

    def convert(self, value: object, depth: int) -> Any:
        if isinstance(value, (Mapping, list, tuple, set, frozenset)):
            return self._collection(value, depth)
        # JSON has no form for these, and a database refuses what some writers make of them.
        if isinstance(value, float) and not math.isfinite(value):
            return self._text(str(value))
        if isinstance(value, int) and not -(2**63) <= value < 2**63:
            return self._text("an integer of more than 64 bits")
        if value is None or isinstance(value, (bool, int, float)):
            self._left -= 1
            return value
        return self._text(value)

    def _collection(self, value: Any, depth: int) -> Any:
        if depth <= 0:
            self.cut = True
            return self._text("...")
        # Counted for the brackets, or nested empty lists would cost nothing.
        self._left -= 1
        try:
            self.cut |= len(value) > self._items
            named = isinstance(value, Mapping)
            found: dict[Any, Any] = {}
            for key, item in islice(value.items() if named else enumerate(value), self._items):
                if self._left <= 0:
                    self.cut = True
                    break
                name = self._text(key) if named else key
                found[name] = self.convert(item, depth - 1)
            return found if named else list(found.values())
        except Exception:  # noqa: BLE001 - a user's container may raise anything
            return self._text(text_of(value)[:200])

    def _text(self, value: object) -> str:
        text = text_of(value)
        if len(text) > self._left:
            self.cut = True
            text = text[: max(self._left, 0)]
        self._left -= len(text)
        return text


class _Cutter:
    """Cuts the parts of one Record and remembers which it cut."""

    def __init__(self, limits: Limits, already: Iterable[str]) -> None:
        self.limits = limits
        self.cut: dict[str, None] = {}
        names = self._first(already, "truncated", DEFAULT_LIMITS.items)
        self.cut |= dict.fromkeys([self.text(name, "truncated") for name in names])

    def text(self, value: object, field: str, limit: int = _NAME) -> str:
        if isinstance(value, str) and len(value) > limit:
            value = value[:limit]
            self.cut[field] = None
        # Repairing may change the length: an object becomes the text that shows it.
        text = text_of(value)
        if len(text) > limit:
            self.cut[field] = None
        return text[:limit]

    def contexts(self, contexts: Iterable[Context], field: str) -> tuple[Context, ...]:
        kept: list[Context] = []
        left = self.limits.total
        # Text where a list of Contexts belongs is a slip that costs the user no record.
        contexts = (contexts,) if isinstance(contexts, (str, Context)) else contexts
        for context in self._first(contexts, field, self.limits.contexts):
            if left <= 0:
                self.cut[field] = None
                break
            fixed = self._context(context, field, min(self.limits.context, left))
            left -= len(fixed.text)
            kept.append(fixed)
        return with_items(contexts, kept)

    def _context(self, context: Context, field: str, limit: int) -> Context:
        if not isinstance(context, Context):
            context = Context(text=text_of(context))
        changes: dict[str, Any] = {
            "text": self.text(context.text, field, limit),
            "id": None if context.id is None else self.text(context.id, field),
            "query": None if context.query is None else self.text(context.query, field, self.limits.context),
            "score": number(context.score),
            "rank": whole(context.rank),
            "hop": whole(context.hop) or 0,
            "seen": probability(context.seen),
        }
        return with_changes(context, **changes)

    def identifier(self, value: object, field: str) -> str | None:
        """An id as text; a very long one keeps its beginning and a hash, so that no two become one."""
        if (text := text_of(value).strip()) == "":
            return None
        if len(text) <= _IDENTIFIER:
            return value if text == value and isinstance(value, str) else text
        self.cut[field] = None
        digest = hashlib.sha256(text.encode()).hexdigest()[:32]
        return f"{text[: _IDENTIFIER - 33]}~{digest}"

    def names(self, values: Iterable[str], field: str) -> tuple[str, ...]:
        values = (values,) if isinstance(values, str) else values
        return with_items(values, [self.text(value, field) for value in self._first(values, field)])

    def origins(self, value: Mapping[str, tuple[str, ...]]) -> Mapping[str, tuple[str, ...]]:
        given: Mapping[str, Any] = value if isinstance(value, dict) else {}
        found = {name: self.names(given[name], "origins") for name in _TAKEN if name in given}
        return value if found == value else found

    def _first(self, items: Iterable[_Item] | None, field: str, most: int | None = None) -> Iterator[_Item]:
        """As many entries as there may be, of whatever calls itself a collection."""
        most = self.limits.items if most is None else most
        try:
            for number, item in enumerate(() if items is None else items):
                if number >= most:
                    self.cut[field] = None
                    return
                yield item
        except Exception:  # noqa: BLE001 - a user's container may raise anything
            self.cut[field] = None

    def trace(self, trace: TraceRef | None) -> TraceRef | None:
        if trace is None:
            return None
        if not isinstance(trace, TraceRef):
            self.cut["trace"] = None
            return None
        names = ("trace_id", "span_id", "run_id", "framework")
        changes: dict[str, Any] = {
            name: self.text(value, "trace") for name in names if (value := getattr(trace, name)) is not None
        }
        return with_changes(trace, **changes, sampled=bool(trace.sampled))

    def timings(self, timings: Timings | None) -> Timings | None:
        if timings is None:
            return None
        if not isinstance(timings, Timings):
            self.cut["timings"] = None
            return None
        return with_changes(
            timings, **{item.name: number(getattr(timings, item.name)) for item in fields(timings)}
        )

    def stages(self, stages: Iterable[Stage] | None) -> tuple[Stage, ...]:
        return tuple(
            Stage(
                name=self.text(stage.name, "stages"),
                query=self.text(stage.query, "stages", self.limits.context),
                contexts=self.contexts(stage.contexts, "stages"),
            )
            for stage in self._first(stages, "stages")
            if isinstance(stage, Stage)  # type: ignore[redundant-expr]  # whatever a user put there
        )

    def metadata(self, value: Mapping[str, Any]) -> dict[str, Any]:
        if value == {} and isinstance(value, dict):
            return value
        values = _JsonValues(self.limits)
        result = values.convert(value, _DEPTH) if value else {}
        if values.cut:
            self.cut["metadata"] = None
        return result if isinstance(result, dict) else {}


def clean(record: Record, *, limits: Limits = DEFAULT_LIMITS) -> Record:
    """The same Record, bounded and storable. Cleaning twice changes nothing.

    Args:
        record: Any Record, however large or odd its parts.
        limits: What to cut to.
    """
    cut = _Cutter(limits, record.truncated)
    changes: dict[str, Any] = {
        "id": cut.text(record.id, "id"),
        "question": cut.text(record.question, "question", limits.text),
        "answer": cut.text(record.answer, "answer", limits.text),
        "contexts": cut.contexts(record.contexts, "contexts"),
        "retrieved": cut.contexts(record.retrieved, "retrieved"),
        "reference_contexts": cut.contexts(record.reference_contexts, "reference_contexts"),
        "stages": cut.stages(record.stages),
        "tags": cut.names(record.tags, "tags"),
        "notes": cut.names(record.notes, "notes"),
        "metadata": cut.metadata(record.metadata),
        "origins": cut.origins(record.origins),
        "trace": cut.trace(record.trace),
        "timings": cut.timings(record.timings),
        "status": record.status if record.status in get_args(Status) else "error",
        "contexts_source": (
            record.contexts_source if record.contexts_source in get_args(ContextsSource) else "retrieved"
        ),
    }
    for name in ("session", "tenant"):
        changes[name] = cut.identifier(getattr(record, name), name)
    # Whoever stores or sends a record has cleaned it: a user in plain text gets no further than here.
    changes["user"] = record.user if is_hashed(record.user) else None
    for name in ("standalone_question", "reference", "error"):
        value = getattr(record, name)
        changes[name] = None if value is None else cut.text(value, name, limits.text)
    # Most records are fine as they are, and are cleaned more than once on their way: no copy for those.
    changed = {name: value for name, value in changes.items() if value is not getattr(record, name)}
    truncated = tuple(cut.cut)
    if not changed and truncated == record.truncated:
        return record
    return replace(record, truncated=truncated, **changed)


def number(value: object) -> float | None:
    """A plain finite float; None for what is not a number, or is not finite."""
    if type(value) is float:
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, str | bytes):
        return None
    try:
        found = float(value)  # type: ignore[arg-type]
    except Exception:  # noqa: BLE001 - the value may be anything
        return None
    return found if math.isfinite(found) else None


def probability(value: object) -> float | None:
    """A number from 0 to 1; None for anything else."""
    found = number(value)
    return found if found is not None and 0 <= found <= 1 else None


def whole(value: object) -> int | None:
    """A whole number from 0 to 64 bits; None for anything else."""
    try:
        found = operator.index(value)  # type: ignore[arg-type]
    except Exception:  # noqa: BLE001 - the value may be anything
        rounded = number(value)
        found = -1 if rounded is None else int(rounded)
    return int(found) if 0 <= found <= _LARGEST else None


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
