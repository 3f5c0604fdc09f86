"""The span that another tracer keeps for a LangChain run.

A vendor's tracing for LangChain is a callback handler beside ours. It keeps spans by run id, and mostly does
not make them the current span, so that scores would have nothing to be attached to. Here each tracer that is
active is asked for the span of a run, by public means where it has any.

Only modules that the host has imported are looked at; none is imported. A tracer knows a run from its own
start of it to its own end, and the order of handlers is not ours to choose. So ask at the root's start, at
the start of runs below it (where handlers that were passed in are in reach), and at the root's end, until one
answers. LangSmith's tracer needs none of this: its runs have LangChain's own run ids.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable
from typing import Any
from uuid import UUID

from steelyard.record import TraceRef

_TRACE_ID = re.compile(r"(?:tr-)?([0-9a-f]{32})")
_SPAN_ID = re.compile(r"[0-9a-f]{16}")


def trace_of_run(run_id: UUID | str) -> TraceRef | None:
    """The span that a tracer beside us keeps for a run; None where none does, or not yet, or no more.

    Takes some microseconds where no such tracer was imported, and never raises.

    Args:
        run_id: LangChain's id of the run.
    """
    run = run_id if isinstance(run_id, UUID) else _uuid(run_id)
    if run is None:
        return None
    for look in _TRACERS:
        try:
            found = look(run)
        except Exception:  # noqa: BLE001 - another library's insides may raise anything
            continue
        if found is not None:
            return found
    return None


def are_tracers_active() -> bool:
    """Whether the process has imported any tracer for LangChain; at the price of one look, in every turn."""
    return not sys.modules.keys().isdisjoint(_MODULES)


def _openinference(run: UUID) -> TraceRef | None:
    module = sys.modules.get("openinference.instrumentation.langchain")
    if module is None:
        return None
    instrumentor = module.LangChainInstrumentor()
    # Without a tracer it would print a line for each run.
    if not instrumentor.is_instrumented_by_opentelemetry:
        return None
    return _of_otel(instrumentor.get_span(run))


def _mlflow(run: UUID) -> TraceRef | None:
    module = sys.modules.get("mlflow.langchain.langchain_tracer")
    if module is None:
        return None
    for handler in _handlers():
        if isinstance(handler, module.MlflowLangchainTracer):
            # MLflow offers no public way from a run to its span.
            span = handler._get_span_by_run_id(run)
            return _ref(span.trace_id, span.span_id)
    return None


def _langfuse(run: UUID) -> TraceRef | None:
    module = sys.modules.get("langfuse.langchain.CallbackHandler")
    if module is None:
        return None
    for handler in _handlers():
        if isinstance(handler, module.LangchainCallbackHandler):
            # `last_trace_id` is public, but belongs to whichever run came last.
            observation = handler._runs.get(run)
            if observation is not None:
                return _ref(observation.trace_id, observation.id)
    return None


def _ddtrace(run: UUID) -> TraceRef | None:
    """No run ids here, but `invoke` is wrapped: at a root's start and end, the current span is the root's."""
    module = sys.modules.get("ddtrace")
    if module is None or "ddtrace.contrib.internal.langchain.patch" not in sys.modules:
        return None
    if _handlers() or (span := module.tracer.current_span()) is None:  # handlers: we are below the root
        return None
    trace_id, span_id = span.trace_id, span.span_id
    observability = sys.modules.get("ddtrace.llmobs")
    if observability is not None and observability.LLMObs.enabled:
        exported = observability.LLMObs.export_span(span=span)
        trace_id, span_id = _number(exported["trace_id"]), int(exported["span_id"])
    return _ref(f"{trace_id:032x}", f"{span_id:016x}")


_MODULES = frozenset(
    {
        "openinference.instrumentation.langchain",
        "mlflow.langchain.langchain_tracer",
        "langfuse.langchain.CallbackHandler",
        "ddtrace.contrib.internal.langchain.patch",
    }
)
_TRACERS: tuple[Callable[[UUID], TraceRef | None], ...] = (_openinference, _mlflow, _langfuse, _ddtrace)


def _handlers() -> Iterable[Any]:
    """The handlers of the run that the current code is a part of, as LangChain passes them down."""
    config = sys.modules["langchain_core.runnables.config"].var_child_runnable_config.get()
    callbacks = (config or {}).get("callbacks")
    return getattr(callbacks, "handlers", callbacks) or ()


def _of_otel(span: Any) -> TraceRef | None:
    if span is None:
        return None
    context = span.get_span_context()
    if not context.is_valid:
        return None
    return TraceRef(
        trace_id=f"{context.trace_id:032x}",
        span_id=f"{context.span_id:016x}",
        sampled=bool(context.trace_flags.sampled),
        framework="langchain",
    )


def _ref(trace_id: str, span_id: str) -> TraceRef | None:
    """A reference from ids as text; None where they are not W3C ids, as of traces that are not kept."""
    trace, span = _TRACE_ID.fullmatch(trace_id), _SPAN_ID.fullmatch(span_id)
    if trace is None or span is None:
        return None
    return TraceRef(trace_id=trace[1], span_id=span_id, framework="langchain")


def _number(trace_id: str) -> int:
    """Datadog's clients write trace ids of more than 64 bits in hexadecimal, others in decimal."""
    return int(trace_id, 16) if len(trace_id) == 32 else int(trace_id)


def _uuid(text: str) -> UUID | None:
    try:
        return UUID(text)
    except (ValueError, TypeError, AttributeError):
        return None
