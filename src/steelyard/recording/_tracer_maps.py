"""The span that a tracer of another maker keeps for a run.

A tracer is an object that a framework tells the same events as it tells a recorder. It keeps a map from the
framework's ids of runs to its spans, since that is how it finds the span to end. Maps are found by what is in
them, not by the names of tracers, so that the next tracer needs no rule of its own.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from functools import lru_cache

from steelyard.recording._trace import SpanIds, ids_of

_DEEP = 3
"""How far within what a map has for a run its span may be: a state, its invocation, the invocation's span."""


def span_kept(listeners: Iterable[object], keys: tuple[Hashable, ...]) -> SpanIds | None:
    """The span that one of the listeners keeps for a run; None if none does, or not yet, or no more.

    Never raises.

    Args:
        listeners: Whatever the framework tells of the run.
        keys: The run's id, in each form that a map may have it in.
    """
    for listener in listeners:
        try:
            ids = _kept_by(listener, keys)
        except Exception:  # noqa: BLE001 - another library's insides may raise anything
            continue
        if ids is not None:
            return ids
    return None


def _kept_by(listener: object, keys: tuple[Hashable, ...]) -> SpanIds | None:
    package = _package(listener)
    own = _parts(listener)
    for part in own + [inner for one in own if _package(one) == package for inner in _parts(one)]:
        if isinstance(part, Mapping):
            for key in keys:
                if (entry := part.get(key)) is not None and (ids := _span_in(entry, package)) is not None:
                    return ids
    return None


def _span_in(entry: object, package: str) -> SpanIds | None:
    """The one span that an entry is or holds; of two at the same depth it is not known which is the run's."""
    level = [entry]
    for _ in range(_DEEP):
        found = {ids for one in level if (ids := ids_of(one)) is not None}
        if found:
            return found.pop() if len({ids[:2] for ids in found}) == 1 else None
        # Only what is of the tracer's own making: what it was told of the run is the application's.
        inside = (one for one in level if type(one) is tuple or _package(one) == package)
        level = [part for one in inside for part in _parts(one)]
    return None


def _parts(thing: object) -> list[object]:
    """What an object holds under names of its own; not what it was called from."""
    if isinstance(thing, tuple):
        return list(thing)
    named = {name: getattr(thing, name, None) for cls in type(thing).__mro__ for name in _slots(cls)}
    named |= {**getattr(thing, "__dict__", {}), **(getattr(thing, "__pydantic_private__", None) or {})}
    return [part for name, part in named.items() if not name.lstrip("_").startswith("parent")]


@lru_cache(maxsize=1024)
def _slots(cls: type) -> tuple[str, ...]:
    slots = vars(cls).get("__slots__", ())
    return (slots,) if isinstance(slots, str) else tuple(slots)


def _package(thing: object) -> str:
    return type(thing).__module__.partition(".")[0]
