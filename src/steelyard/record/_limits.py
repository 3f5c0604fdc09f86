"""Capping and repairing Records: whatever came in, what goes on is bounded, valid Unicode and plain JSON.

Texts lose lone surrogates and NULs (no database and no HTTP body can hold them), and everything is cut to
`Limits`; `Record.truncated` names what was cut. Nothing here raises, whatever the objects do.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, TypeVar

from steelyard.record._record import Context, Record, Stage, TraceRef

__all__ = ["DEFAULT_LIMITS", "Limits", "clean", "plain", "text_of"]

_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
_DEPTH = 6
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


def text_of(value: object) -> str:
    """Any object as valid Unicode without NULs; an object that cannot be shown becomes a short note."""
    if isinstance(value, (bytes, bytearray, memoryview)):
        value = bytes(value).decode("utf-8", errors="replace")
    elif not isinstance(value, str):
        value = "" if value is None else _shown(value)
    elif type(value) is not str:
        value = str.__str__(value)  # a subclass (LangChain's TextAccessor, an enum) may act unlike a string
    if value.isascii() and "\0" not in value:
        return value
    return _UNSTORABLE.sub("\N{REPLACEMENT CHARACTER}", value)


def _shown(value: object) -> str:
    try:
        return str(value)
    except Exception:  # noqa: BLE001 - a user's __str__ may raise anything
        return f"<{type(value).__name__} that cannot be shown>"


def plain(value: object, *, limits: Limits = DEFAULT_LIMITS) -> Any:
    """Any object as plain JSON: bounded, without cycles, NaN or unprintable parts."""
    return _Plainer(limits).plain(value, _DEPTH)


class _Plainer:
    """Turns objects into JSON values within one budget of characters and entries.

    The budget is spent on what comes out, so that the result fits it when it goes through once more.
    """

    def __init__(self, limits: Limits) -> None:
        self._items = limits.items
        self._left = limits.metadata
        self.cut = False

    def plain(self, value: object, depth: int) -> Any:
        if isinstance(value, (Mapping, list, tuple, set, frozenset)):
            return self._collection(value, depth)
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
        self._left -= 1
        try:
            self.cut |= len(value) > self._items
            entries = islice(value.items() if isinstance(value, Mapping) else value, self._items)
            return self._mapping(entries, depth) if isinstance(value, Mapping) else self._list(entries, depth)
        except Exception:  # noqa: BLE001 - a user's container may raise anything
            return self._text(_shown(value)[:200])

    def _mapping(self, entries: Iterable[tuple[object, object]], depth: int) -> dict[str, Any]:
        result: dict[str, Any] = {}
        for key, item in entries:
            if self._spent():
                break
            name = self._text(key)
            result[name] = self.plain(item, depth - 1)
        return result

    def _list(self, entries: Iterable[object], depth: int) -> list[Any]:
        result: list[Any] = []
        for item in entries:
            if self._spent():
                break
            result.append(self.plain(item, depth - 1))
        return result

    def _spent(self) -> bool:
        self.cut |= self._left <= 0
        return self._left <= 0

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
        self.cut: dict[str, None] = dict.fromkeys(already)

    def text(self, value: object, field: str, limit: int) -> str:
        if isinstance(value, str) and len(value) > limit:
            value = value[:limit]
            self.cut[field] = None
        text = text_of(value)
        if len(text) > limit:
            self.cut[field] = None
        return text[:limit]

    def contexts(self, contexts: Iterable[Context], field: str) -> tuple[Context, ...]:
        kept: list[Context] = []
        left = self.limits.total
        # Text where a list of Contexts belongs is a slip that costs the user no record.
        contexts = (contexts,) if isinstance(contexts, (str, Context)) else contexts or ()
        for index, context in enumerate(contexts):
            if index >= self.limits.contexts or left <= 0:
                self.cut[field] = None
                break
            fixed = self._context(context, field, min(self.limits.context, left))
            left -= len(fixed.text)
            kept.append(fixed)
        return _same(contexts, kept)

    def _context(self, context: Context, field: str, limit: int) -> Context:
        if not isinstance(context, Context):
            context = Context(text=text_of(context))
        score = _finite(context.score)
        text = self.text(context.text, field, limit)
        name = None if context.id is None else self.text(context.id, field, 1000)
        query = None if context.query is None else self.text(context.query, field, self.limits.context)
        unchanged = text is context.text and name is context.id and query is context.query
        if unchanged and score is context.score:
            return context
        return replace(context, text=text, id=name, query=query, score=score)

    def names(self, values: Iterable[str], field: str) -> tuple[str, ...]:
        values = (values,) if isinstance(values, str) else values or ()
        return _same(values, [self.text(value, field, 1000) for value in self._first(values, field)])

    def _first(self, items: Iterable[_Item], field: str) -> Iterator[_Item]:
        """As many entries as there may be."""
        for number, item in enumerate(items):
            if number >= self.limits.items:
                self.cut[field] = None
                return
            yield item

    def trace(self, trace: TraceRef | None) -> TraceRef | None:
        if trace is None:
            return None
        names = ("trace_id", "span_id", "run_id", "framework")
        changes: dict[str, Any] = {
            name: self.text(value, "trace", 1000)
            for name in names
            if (value := getattr(trace, name)) is not None
        }
        same = all(changes[name] is getattr(trace, name) for name in changes)
        return trace if same else replace(trace, **changes)

    def stages(self, stages: Iterable[Stage]) -> tuple[Stage, ...]:
        if not stages:
            return ()
        return tuple(
            Stage(
                name=self.text(stage.name, "stages", 1000),
                query=self.text(stage.query, "stages", self.limits.context),
                contexts=self.contexts(stage.contexts, "stages"),
            )
            for stage in self._first(stages, "stages")
        )

    def metadata(self, value: Mapping[str, Any]) -> dict[str, Any]:
        if value == {} and isinstance(value, dict):
            return value
        plainer = _Plainer(self.limits)
        result = plainer.plain(value, _DEPTH) if value else {}
        if plainer.cut:
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
        "id": cut.text(record.id, "id", 1000),
        "question": cut.text(record.question, "question", limits.text),
        "answer": cut.text(record.answer, "answer", limits.text),
        "contexts": cut.contexts(record.contexts, "contexts"),
        "retrieved": cut.contexts(record.retrieved, "retrieved"),
        "reference_contexts": cut.contexts(record.reference_contexts, "reference_contexts"),
        "stages": cut.stages(record.stages),
        "tags": cut.names(record.tags, "tags"),
        "notes": cut.names(record.notes, "notes"),
        "metadata": cut.metadata(record.metadata),
        "trace": cut.trace(record.trace),
    }
    for name in ("standalone_question", "reference", "error"):
        value = getattr(record, name)
        changes[name] = None if value is None else cut.text(value, name, limits.text)
    # Most records are fine as they are, and are cleaned more than once on their way: no copy for those.
    changed = {name: value for name, value in changes.items() if value is not getattr(record, name)}
    truncated = tuple(cut.cut)
    if not changed and truncated == record.truncated:
        return record
    return replace(record, truncated=truncated, **changed)


def _same(given: Iterable[_Item], kept: list[_Item]) -> tuple[_Item, ...]:
    """What was kept; the very tuple that was given where nothing in it has changed."""
    if isinstance(given, tuple) and len(given) == len(kept) and all(map(operator.is_, given, kept)):
        return given
    return tuple(kept)


def _finite(value: object) -> float | None:
    """A number as a float; None for what is none, or has no end."""
    if type(value) is not float:
        try:
            value = float(value)  # type: ignore[arg-type]
        except (TypeError, ValueError, OverflowError):
            return None
    return value if math.isfinite(value) else None
