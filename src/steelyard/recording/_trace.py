"""The identity of the span that is current, taken without importing OpenTelemetry.

In two steps, since the host waits for the first alone: which span is current must be asked when a turn
begins; that its ids are written out as text can wait until somebody reads them.
"""

from __future__ import annotations

import sys
from typing import Any

from steelyard.record import TraceRef


def current_trace(*, run_id: str | None = None, framework: str | None = None) -> TraceRef:
    """The current span's identity as a TraceRef.

    OpenTelemetry is asked only if the host has already imported it: if it has not, no span can be current.

    Args:
        run_id: The framework's own id of the run.
        framework: Which recorder is asking.
    """
    return trace_of_span(current_span(), run_id=run_id, framework=framework)


def current_span() -> Any | None:
    """OpenTelemetry's context of the current span; None where no span is, or it is not valid."""
    api = sys.modules.get("opentelemetry.trace")
    if api is None:
        return None
    span = api.get_current_span().get_span_context()
    return span if span.is_valid else None


def trace_of_span(span: Any | None, *, run_id: str | None = None, framework: str | None = None) -> TraceRef:
    """What `current_span` returned, as a TraceRef.

    Args:
        span: The context of a valid span, or None.
        run_id: The framework's own id of the run.
        framework: Which recorder is asking.
    """
    if span is None:
        return TraceRef(run_id=run_id, framework=framework)
    return TraceRef(
        trace_id=f"{span.trace_id:032x}",
        span_id=f"{span.span_id:016x}",
        sampled=bool(span.trace_flags & 1),
        run_id=run_id,
        framework=framework,
    )
