"""The identity of a span: of the current one, and of whatever else a tracer may hold that stands for one.

OpenTelemetry is asked only if the host has imported it: if it has not, no span can be current.
"""

from __future__ import annotations

import re
import sys
from typing import Any, NamedTuple

from steelyard.record import TraceRef

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
