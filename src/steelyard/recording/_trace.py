"""The identity of the span that is current, taken without importing OpenTelemetry."""

from __future__ import annotations

import sys

from steelyard.record import TraceRef


def current_trace(*, run_id: str | None = None, framework: str | None = None) -> TraceRef:
    """The current span's identity as a TraceRef.

    OpenTelemetry is asked only if the host has already imported it: if it has not, no span can be current.

    Args:
        run_id: The framework's own id of the run.
        framework: Which recorder is asking.
    """
    api = sys.modules.get("opentelemetry.trace")
    if api is None:
        return TraceRef(run_id=run_id, framework=framework)
    span = api.get_current_span().get_span_context()
    if not span.is_valid:
        return TraceRef(run_id=run_id, framework=framework)
    return TraceRef(
        trace_id=f"{span.trace_id:032x}",
        span_id=f"{span.span_id:016x}",
        sampled=bool(span.trace_flags & 1),
        run_id=run_id,
        framework=framework,
    )
