"""What no score finds a span in: arrangements with the sentence that docs/reference/results.md has for them.

In all others every score goes on a span of its own run, or on the application's span around it.
In these, some or all go on none; never on another's.
"""

from __future__ import annotations

from dataclasses import dataclass

_ALL = frozenset({"langchain", "langgraph", "llamaindex"})
_CHAINS = frozenset({"langchain", "langgraph"})
_WAYS = frozenset({"handler", "attach", "processor"})
_RECORDERS = frozenset({"handler", "attach"})
_PROCESSOR = frozenset({"processor"})
_STREAMS = frozenset({"stream", "streams in turn", "async stream"})


@dataclass(frozen=True, kw_only=True)
class Limit:
    """Arrangements that have the same reason."""

    tracers: frozenset[str]
    frameworks: frozenset[str] = _ALL
    ways: frozenset[str] = _WAYS
    modes: frozenset[str] = frozenset()
    """All if none is named."""
    says: str
    """As it stands in docs/reference/results.md."""


LIMITS = (
    Limit(
        tracers=frozenset({"genai"}),
        frameworks=frozenset({"llamaindex"}),
        says="writes no span for a query engine's query",
    ),
    Limit(
        tracers=frozenset({"logfire"}),
        frameworks=_CHAINS,
        ways=_RECORDERS,
        says="makes its spans after the run, with ids that nobody knows before",
    ),
    Limit(
        tracers=frozenset({"logfire"}),
        frameworks=_CHAINS,
        ways=_PROCESSOR,
        says="some come only when its client has sent them",
    ),
    Limit(
        tracers=frozenset({"openllmetry", "logfire"}),
        frameworks=frozenset({"llamaindex"}),
        ways=_PROCESSOR,
        modes=_STREAMS,
        says="never ends the span of a streamed query",
    ),
    Limit(
        tracers=frozenset({"langsmith", "ddtrace"}),
        ways=_PROCESSOR,
        says="sends no OpenTelemetry spans",
    ),
    Limit(
        tracers=frozenset({"ddtrace"}),
        ways=_RECORDERS,
        modes=frozenset({"stream", "streams in turn"}),
        says="while another stream of the same thread or task is open",
    ),
    Limit(
        tracers=frozenset({"langfuse", "mlflow"}),
        frameworks=_CHAINS,
        ways=_PROCESSOR,
        modes=frozenset({"streams in turn"}),
        says="puts streams that are read in turn into one trace",
    ),
    Limit(
        tracers=frozenset({"mlflow"}),
        frameworks=_CHAINS,
        modes=frozenset({"async stream"}),
        says="stops tracing asynchronous streams once others were read in turn",
    ),
    Limit(
        tracers=frozenset({"mlflow"}),
        frameworks=frozenset({"llamaindex"}),
        ways=_PROCESSOR,
        says="are not read from LlamaIndex",
    ),
)


def limit_of(tracer: str, framework: str, way: str, mode: str) -> Limit | None:
    """Why some scores of an arrangement find no span, if they do not."""
    for limit in LIMITS:
        beside = tracer in limit.tracers and framework in limit.frameworks
        if beside and way in limit.ways and mode in (limit.modes or {mode}):
            return limit
    return None
