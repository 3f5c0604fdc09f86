"""The trace identity of a turn: the span that its scores go on, and its session.

A run's span is one that was opened for this very run, or none.

Scores on no span can be found by their record; scores on another run's span mislead, and may show one
customer's words to another. So there are three ways to know a span, in this order:

1. A tracer keeps it for the run, in a map that has the run's own id for a key.
2. It was the current span when the run began, and nothing says that it was opened for anything else. Tracers
   leave their spans current in the contexts of asynchronous code, for whatever runs there next.
3. A tracer keeps it for a model call of the run, of tracers that make spans for nothing else.

A framework tells its listeners of events in the same order at a run's start and at its end: a tracer that is
told before us has the run in its map when it starts, one that is told after us still has it when it ends. So
these two are when to ask. OpenTelemetry is asked only if the host has imported it: if it has not, no span can
be current.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Hashable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from time import time_ns
from typing import Any, NamedTuple

from steelyard._internal.bounded import BoundedDict
from steelyard._internal.logs import SafeLogger, WarnOnce
from steelyard.record import TraceRef, text_of

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


_REMEMBERED = 4096
_warn_once = WarnOnce(SafeLogger("steelyard.recording"))


class RunSpan:
    """Which span a run's scores go on, as far as is known; made by the run's own thread when it begins.

    Args:
        framework: Which recorder is asking.
        names: How modules of tracers for this framework call it.
    """

    __slots__ = ("_began", "_call", "_current", "_ended", "_framework", "_own", "another_s", "settled")

    def __init__(self, framework: str, names: tuple[str, ...]) -> None:
        self._framework = framework
        self._began = time_ns()
        self._ended: int | None = None
        self._own: SpanIds | None = None
        self._call: SpanIds | None = None
        self.another_s = False
        """Whether a span was current that was opened for something else."""
        self.settled = False
        """Whether there is nothing left to ask: its own span is known, or no tracer is told of the run."""
        self._current = self._current_one(names)

    def ask(self, listeners: Iterable[object], *keys: Hashable) -> None:
        """Look for the run's own span; at its start and at its end.

        Args:
            listeners: Whatever the framework tells of this run.
            keys: The run's id, in each form that a map may have it in.
        """
        if self.settled:
            return
        self._own = span_kept(listeners, keys)
        if self._own is not None and self._own.trace_id is not None:
            self.settled = True
            _latest[self._own.trace_id] = self

    def ask_of_call(self, listeners: Iterable[object], *keys: Hashable) -> None:
        """Look for the span of a model call, at the call's start and at its end; the latest one counts."""
        if not self.settled:
            self._call = span_kept(listeners, keys) or self._call

    def end(self) -> bool:
        """The run is over; says whether its scores are on no span because another's was current."""
        self._ended = time_ns()
        if not self.another_s or self._own or self._call:
            return False
        _warn_once(self._framework, _ANOTHER_S, self._framework)
        return True

    def trace(self, run_id: str) -> TraceRef:
        """Where the run lives in the host's traces, as far as is known by now.

        Args:
            run_id: The framework's own id of the run.
        """
        trace_id, span_id, sampled = self._own or self._current or self._call or SpanIds()
        return TraceRef(
            trace_id=trace_id, span_id=span_id, sampled=sampled, run_id=run_id, framework=self._framework
        )

    def _current_one(self, names: tuple[str, ...]) -> SpanIds | None:
        try:
            datadog = _datadog_s(names)
            span = current_span() if datadog is None else datadog
            ids = ids_of(span) if datadog is None else _datadog_ids(datadog)
            if ids is None:
                return None
            if datadog is not None:
                self.another_s = _is_within(datadog, names)
            else:
                self.another_s = _is_another_s(span, names) or self._is_of_earlier(span, ids)
            return None if self.another_s else ids
        except Exception:  # noqa: BLE001 - another library's insides may raise anything
            return None

    def _is_of_earlier(self, span: Any, ids: SpanIds) -> bool:
        """Whether it was opened within an earlier run, whose own span in that trace is known."""
        earlier, opened = _latest.get(ids.trace_id or ""), getattr(span, "start_time", None)
        if earlier is None or opened is None:
            return False
        return earlier._own == ids or earlier._began <= opened <= (earlier._ended or self._began)


_latest: BoundedDict[str, RunSpan] = BoundedDict(max_items=_REMEMBERED)
"""The latest run whose own span is in a trace."""
_ANOTHER_S = (
    "the span that was current when a %s turn began was opened for something else, as tracers leave theirs "
    "current, so its scores are on no span (further ones are counted only); open a span of your own around "
    "each turn, or record by steelyard_opentelemetry.EvaluationSpanProcessor"
)


def _is_another_s(span: Any, names: tuple[str, ...]) -> bool:
    """Whether a span cannot have been opened by the application around this run.

    It has ended; it is that of a call to another service; or a tracer of the framework opened it, which would
    have told it for this run.
    """
    if type(span).__name__ == "NonRecordingSpan":  # of another process, or unsampled
        return False
    if not span.is_recording() and span.get_span_context().trace_flags & 1:
        return True
    if getattr(getattr(span, "kind", None), "name", None) == "CLIENT":
        return True
    scope = getattr(getattr(span, "instrumentation_scope", None), "name", None)
    return isinstance(scope, str) and any(name in scope for name in names) and _is_instrumentor(scope)


@lru_cache(maxsize=256)
def _is_instrumentor(scope: str) -> bool:
    """Whether spans of this scope are made by an instrumentor, and not by an application with such a name."""
    defined = vars(sys.modules[scope]).values() if scope in sys.modules else ()
    return any(
        isinstance(each, type)
        and each.__module__.startswith(scope)
        and hasattr(each, "instrumentation_dependencies")
        for each in defined
    )


def _datadog_s(names: tuple[str, ...]) -> Any | None:
    """The current span of Datadog's tracer: it keeps no map, but opens its spans around calls."""
    if not any(f"ddtrace.contrib.internal.{name}.patch" in sys.modules for name in names):
        return None
    return sys.modules["ddtrace"].tracer.current_span()


def _datadog_ids(span: Any) -> SpanIds | None:
    observability = sys.modules.get("ddtrace.llmobs")
    if observability is None or not observability.LLMObs.enabled:
        return ids_of(span)
    told = observability.LLMObs.export_span(span=span)
    # Trace ids of more than 64 bits are told in hexadecimal, others in decimal.
    trace_id = told["trace_id"] if len(told["trace_id"]) == 32 else f"{int(told['trace_id']):032x}"
    return SpanIds(trace_id, f"{int(told['span_id']):016x}")


def _is_within(span: Any, names: tuple[str, ...]) -> bool:
    """Whether a span of Datadog's is over, or stands in one for another run: a stream that is still open."""
    if span.finished:
        return True
    above = span._parent if _framework_of(span) in names else None
    while above is not None:
        if _framework_of(above) in names:
            return True
        above = above._parent
    return False


def _framework_of(span: Any) -> str:
    """What a span of Datadog's is about: they are called `langchain.request`, `flask.request` and so on."""
    return str(span.name).partition(".")[0]


_NAMES = ("session_id", "thread_id", "conversation_id", "chat_id")


def session_of(about: Mapping[Any, Any] | None) -> str | None:
    """The conversation that metadata, or a configuration, names; None if none does.

    >>> session_of({"thread_id": 7, "user": "ada"})
    '7'
    """
    for name in _NAMES if about else ():
        value = about.get(name) if about else None
        if isinstance(value, (str, int)) and not isinstance(value, bool) and str(value).strip():
            return text_of(str(value))
    return None


SILENT_TRACE = 0x57EE17A2D << 64 | 0xFFFFFFFFFFFFFFFF
"""Trace id of the unsampled span under which Steelyard works; one that ratio samplers pass over too."""

_guarded: ContextVar[bool] = ContextVar("steelyard_unrecorded", default=False)

_SUPPRESS_KEYS = ("suppress_instrumentation", "suppress_language_model_instrumentation")
_SUPPRESS_NAMES = ("_SUPPRESS_INSTRUMENTATION_KEY", "_SUPPRESS_HTTP_INSTRUMENTATION_KEY")


def is_unrecorded() -> bool:
    """Whether the current code runs on Steelyard's own behalf."""
    return _guarded.get()


@contextmanager
def unrecorded() -> Iterator[None]:
    """Run a block on Steelyard's own behalf: no recorder and no instrumentor sees it."""
    if _guarded.get():  # within another such block, as every judge call of the Monitor is
        yield
        return
    token = _guarded.set(True)
    detach = _silence_opentelemetry()
    try:
        yield
    finally:
        detach()
        _guarded.reset(token)


def _silence_opentelemetry() -> Any:
    """Attach a context in which instrumentors stay quiet; returns the function that detaches it."""
    context = sys.modules.get("opentelemetry.context")
    trace = sys.modules.get("opentelemetry.trace")
    if context is None or trace is None:
        return lambda: None
    # An invalid parent would start a new, sampled trace; a valid one without the sampled flag
    # makes every parent-based sampler drop what is below it.
    unsampled = trace.SpanContext(
        trace_id=SILENT_TRACE, span_id=0x57EE1, is_remote=False, trace_flags=trace.TraceFlags(0)
    )
    silent = trace.set_span_in_context(trace.NonRecordingSpan(unsampled))
    keys = [getattr(context, name, None) for name in _SUPPRESS_NAMES]
    for key in (*_SUPPRESS_KEYS, *filter(None, keys)):
        silent = context.set_value(key, True, silent)
    token = context.attach(silent)
    return lambda: context.detach(token)
