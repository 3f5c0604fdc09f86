"""The loop guard: what Steelyard itself does is never recorded.

A judge may be a LangChain model, an instrumented OpenAI client or a LlamaIndex LLM: without a guard, judging
a turn would look like a new turn. Recorders ask `is_unrecorded()`; foreign instrumentors are stopped by an
unsampled parent span, by OpenTelemetry's own suppression key, and by the keys some of them read.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

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
