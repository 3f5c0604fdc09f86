"""What a turn is on its way: queued, selected, leased, undelivered, closed."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import islice
from operator import attrgetter
from sys import getsizeof
from types import MappingProxyType
from typing import Any

from steelyard.errors import SkipReason
from steelyard.online.queue._ledger import FinalState
from steelyard.record import Context, Record
from steelyard.recording import Draft
from steelyard.scores import Evaluation

_OVERHEAD = 500  # the objects around the texts of a turn or a context, in bytes
_LOOKED_AT = 5000  # weighing runs on the host's thread: of larger values the rest is estimated
_TEXT, _QUERY = attrgetter("text"), attrgetter("query")
_PLAIN = frozenset({str, int, float, bool, type(None)})
_ENTRIES: tuple[type[Any], ...] = (list, tuple, set, frozenset)
_SIZES: dict[type, Callable[[Any], int]] = {
    base: base.__sizeof__ for base in (str, int, float, bytes, dict, list, tuple, set, frozenset)
}


@dataclass(slots=True)
class Queued:
    """A turn in the inbox, as it was submitted."""

    turn: Record | Draft
    sampling_position: float | None
    """Its position in [0, 1), where sampling has needed it already."""
    size: int = 0
    """Roughly how many bytes it keeps alive; 0 until it was weighed."""
    requeued: bool = False
    """Whether it comes a second time, because a user disliked it."""
    taken_at: float = field(default_factory=time.time)
    """Unix time of its recording; a turn that does not say when it began is dated by it."""


@dataclass(frozen=True, slots=True)
class Selected:
    """A turn that was picked: masked, and counted against throttle and budget."""

    record: Record
    sampling_position: float
    rate: float
    """The probability with which it was picked."""
    requeue: Queued | None = None
    """What goes through the inbox again if a user dislikes the turn; never stored."""


@dataclass(frozen=True, slots=True)
class Leased:
    """A selected turn that this process may judge."""

    seq: int
    """Its number in the queue."""
    lease: str
    """Who holds it."""
    turn: Selected
    postponed: int = 0
    """How often it was given back because the judge was out of reach."""


@dataclass(frozen=True, slots=True)
class Undelivered:
    """A finished turn whose result not every sink has yet; this process delivers it."""

    seq: int
    lease: str
    evaluation: Evaluation
    sink: str = ""
    """The one sink for which it was parked; empty if no sink is known to have it."""


@dataclass(frozen=True, slots=True)
class Closed:
    """A turn that ends in this process, and why."""

    state: FinalState
    reason: SkipReason | str = ""
    """A SkipReason where it was skipped; a DeadCause or the name of an exception where it is dead."""
    requeue: Queued | None = None


def size_of(turn: Record | Draft) -> int:
    """Roughly how many bytes a turn keeps alive, wherever in it they are; a few microseconds for most.

    Raises:
        Exception: Whatever objects of the application raise; ValueError for a Draft of no possible size.
    """
    if not isinstance(turn, Record):
        if (size := int(turn.size)) < 0:
            raise ValueError("a turn of less than no bytes")
        return size
    size = _OVERHEAD + _own_size(turn.question) + _own_size(turn.answer)
    for contexts in (turn.contexts, turn.retrieved, turn.reference_contexts):
        if contexts:
            size += _size_of_contexts(contexts)
    for stage in turn.stages:
        size += _OVERHEAD + _own_size(stage.query) + _size_of_contexts(stage.contexts)
    for text in (turn.standalone_question, turn.reference, turn.error):
        if text is not None:
            size += _own_size(text)
    for extra in (turn.tags, turn.metadata, turn.notes):
        size += _size_of_any(extra)
    return size


def _size_of_contexts(contexts: tuple[Context, ...]) -> int:
    size = sum(map(_own_size, map(_TEXT, contexts))) + _OVERHEAD * len(contexts)
    return size + sum([_own_size(query) for query in map(_QUERY, contexts) if query is not None])


def _size_of_any(value: object) -> int:
    """The size of nested data; only the kinds that have an end are looked into, and only so far."""
    if type(value) in (dict, tuple) and (flat := _size_of_flat(value)) is not None:
        return flat
    one: Any
    size, rest, known = 0, [value], 0
    while rest and known < _LOOKED_AT:
        known += 1
        one = rest.pop()
        size += _own_size(one)
        kind = type(one)
        if issubclass(kind, dict):
            rest.extend(dict.__iter__(one))
            rest.extend(dict.values(one))
        elif kind is MappingProxyType:
            rest.extend(_finite(one))
            rest.extend(_finite(one.values()))
        else:
            rest.extend(next((base.__iter__(one) for base in _ENTRIES if issubclass(kind, base)), ()))
    return size + size // max(1, known) * len(rest)


def _size_of_flat(value: Any) -> int | None:
    """What is flat, as most is, is added up without a loop of ours; None for what is nested or long."""
    if len(value) >= _LOOKED_AT or not _PLAIN.issuperset(map(type, value)):
        return None
    size = sum(map(getsizeof, value))
    if type(value) is not dict:
        return size
    values = value.values()
    return size + sum(map(getsizeof, values)) if _PLAIN.issuperset(map(type, values)) else None


def _finite(entries: Iterable[object]) -> Iterable[object]:
    """Entries that come to an end: a view of an object of the application's may give them for ever."""
    return islice(entries, _LOOKED_AT)


def _own_size(value: object) -> int:
    """The size of one object, without what is in it.

    Whoever calls `flush` may weigh a turn: so a subclass of a built-in type is asked by that type's own
    method, and code of the application does not run.
    """
    kind = type(value)
    if kind in _PLAIN:
        return getsizeof(value)
    for base, measured in _SIZES.items():
        if issubclass(kind, base):
            return measured(value)
    try:
        return getsizeof(value)
    except Exception:  # noqa: BLE001 - an object of the application's may raise anything
        return _OVERHEAD
