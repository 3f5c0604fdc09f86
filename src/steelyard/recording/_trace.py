"""The identity of a span: of the current one, and of whatever else a tracer may hold that stands for one.

OpenTelemetry is asked only if the host has imported it: if it has not, no span can be current.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Hashable, Iterable, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from steelyard.record import TraceRef

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


_TRACE_ID = re.compile(r"(?:tr-)?([0-9a-f]{32})")
_SPAN_ID = re.compile(r"[0-9a-f]{16}")


class SpanIds(NamedTuple):
    """A span's place, as `TraceRef` has it."""

    trace_id: str | None = None
    span_id: str | None = None
    sampled: bool = True


def current_span() -> Any | None:
    """OpenTelemetry's current span; None if there is none, or it is not valid."""
    api = sys.modules.get("opentelemetry.trace")
    if api is None:
        return None
    span = api.get_current_span()
    return span if span.get_span_context().is_valid else None


def current_trace(*, run_id: str | None = None, framework: str | None = None) -> TraceRef:
    """The current span's identity as a TraceRef.

    Args:
        run_id: The framework's own id of the run.
        framework: Which recorder is asking.
    """
    trace_id, span_id, sampled = ids_of(current_span()) or SpanIds()
    return TraceRef(trace_id=trace_id, span_id=span_id, sampled=sampled, run_id=run_id, framework=framework)


def ids_of(thing: Any) -> SpanIds | None:
    """The identity of a span of OpenTelemetry's, or of a tracer that writes W3C ids in a form of its own.

    Args:
        thing: Anything; what is not a span, or has other ids, as of traces that are not kept, has none.
    """
    if (told := getattr(thing, "get_span_context", None)) is not None:
        context = told()
        if not context.is_valid:
            return None
        sampled = bool(context.trace_flags & 1)
        return SpanIds(f"{context.trace_id:032x}", f"{context.span_id:016x}", sampled)
    trace_id = getattr(thing, "trace_id", None)
    span_id = getattr(thing, "span_id", None) or getattr(thing, "id", None)
    if type(trace_id) is int and type(span_id) is int:
        return SpanIds(f"{trace_id:032x}", f"{span_id:016x}")
    if not isinstance(trace_id, str) or not isinstance(span_id, str):
        return None
    trace = _TRACE_ID.fullmatch(trace_id)
    return SpanIds(trace[1], span_id) if trace and _SPAN_ID.fullmatch(span_id) else None
