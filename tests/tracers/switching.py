"""The tracers of the bed: how each is switched on for a framework, and what its spans say afterwards."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

Key = tuple[str, str]
"""A span: its trace's id and its own; or `run` and LangChain's id of a run."""


@dataclass
class Tracer:
    """One tracer, switched on."""

    spans: Callable[[], Mapping[Key, tuple[Key | None, str]]]
    """Every span with its parent, if that is known, and all that it says."""
    provider: Any = None
    """Where its spans go, of tracers that use OpenTelemetry's SDK."""
    callbacks: list[Any] = field(default_factory=list)
    """What has to be passed to each call of a chain."""


class Seen:
    """A span processor that keeps every span that begins, also those that never end."""

    def __init__(self) -> None:
        self.started: list[Any] = []

    def on_start(self, span: Any, parent_context: Any = None) -> None:
        self.started.append(span)

    def _on_ending(self, span: Any) -> None: ...
    def on_end(self, span: Any) -> None: ...
    def shutdown(self) -> None: ...
    def force_flush(self, timeout_millis: int = 0) -> bool:
        return True

    def spans(self) -> dict[Key, tuple[Key | None, str]]:
        told = {}
        for span in self.started:
            said = [dict(span.attributes or {}), [dict(event.attributes or {}) for event in span.events]]
            parent = span.parent and _key(span.parent)
            told[_key(span.get_span_context())] = (parent, json.dumps(said, default=str))
        return told


def _key(context: Any) -> Key:
    return f"{context.trace_id:032x}", f"{context.span_id:016x}"


def _own_provider() -> tuple[Any, Seen]:
    from opentelemetry import trace
    from opentelemetry.sdk.trace import TracerProvider

    provider, seen = TracerProvider(), Seen()
    processor: Any = seen
    provider.add_span_processor(processor)
    trace.set_tracer_provider(provider)
    return provider, seen


def _instrumented(module: str, name: str) -> Callable[[Callable[[], tuple[Any, Seen]]], Tracer]:
    def on(make: Callable[[], tuple[Any, Seen]] = _own_provider) -> Tracer:
        provider, seen = make()
        if module.endswith("llamaindex"):  # it imports a package that any of LlamaIndex's models brings
            folder = tempfile.mkdtemp()
            (Path(folder) / "llama_index" / "llms").mkdir(parents=True)
            sys.path.append(folder)
        getattr(import_module(module), name)().instrument(tracer_provider=provider)
        return Tracer(seen.spans, provider)

    return on


def _langsmith(_: Any = None) -> Tracer:
    """Runs that are sent to LangSmith under LangChain's own ids; a stand-in for its client takes them."""
    from langchain_core.tracers.run_collector import RunCollectorCallbackHandler

    collector = RunCollectorCallbackHandler()

    def spans() -> dict[Key, tuple[Key | None, str]]:
        return {
            ("run", str(run.id)): (None, json.dumps(run.inputs, default=str)) for run in collector.traced_runs
        }

    return Tracer(spans, callbacks=[collector])


def _langsmith_otel(make: Callable[[], tuple[Any, Seen]] = _own_provider) -> Tracer:
    os.environ |= {
        "LANGSMITH_TRACING": "true",
        "LANGSMITH_OTEL_ENABLED": "true",
        "LANGSMITH_OTEL_ONLY": "true",
        "LANGSMITH_ENDPOINT": "http://127.0.0.1:1",
        "LANGSMITH_API_KEY": "x",
    }
    provider, seen = make()
    from langchain_core.tracers.langchain import LangChainTracer
    from langsmith import Client

    client = Client(otel_tracer_provider=provider, tracing_mode="otel")
    tracer = LangChainTracer(client=client)

    def spans() -> dict[Key, tuple[Key | None, str]]:
        client.flush()
        return seen.spans()

    return Tracer(spans, provider, [tracer])


def _langfuse_provider() -> tuple[Any, Seen]:
    from langfuse import Langfuse
    from opentelemetry import trace

    Langfuse(public_key="pk", secret_key="sk", host="http://127.0.0.1:1")
    provider: Any = trace.get_tracer_provider()
    seen = Seen()
    provider.add_span_processor(seen)
    return provider, seen


def _langfuse(_: Any = None) -> Tracer:
    provider, seen = _langfuse_provider()
    from langfuse.langchain import CallbackHandler

    return Tracer(seen.spans, provider, [CallbackHandler()])


def _logfire_provider() -> tuple[Any, Seen]:
    import logfire
    from opentelemetry import trace

    seen: Any = Seen()
    logfire.configure(send_to_logfire=False, console=False, additional_span_processors=[seen])
    return trace.get_tracer_provider(), seen


def _mlflow(framework: str) -> Callable[[Any], Tracer]:
    def on(_: Any = None) -> Tracer:
        os.environ |= {"MLFLOW_DISABLE_TELEMETRY": "true", "MLFLOW_ALLOW_FILE_STORE": "true"}
        import mlflow

        mlflow.set_tracking_uri(f"file:{os.getcwd()}/mlruns")
        seen: Any = Seen()
        import_module(f"mlflow.{framework}").autolog()
        from mlflow.tracing import provider as tracing

        mlflow.tracing.enable()
        provider: Any = tracing.provider.get_or_init_tracer("bed") and tracing.provider.get()
        provider.add_span_processor(seen)
        return Tracer(seen.spans, provider)

    return on


def _ddtrace(framework: str) -> Callable[[Any], Tracer]:
    def on(_: Any = None) -> Tracer:
        os.environ |= {
            "DD_INSTRUMENTATION_TELEMETRY_ENABLED": "false",
            "DD_REMOTE_CONFIGURATION_ENABLED": "false",
        }
        import ddtrace
        from ddtrace.trace import TraceFilter

        kept: list[Any] = []

        class Keep(TraceFilter):  # type: ignore[misc,unused-ignore]
            def process_trace(self, trace: Iterable[Any]) -> None:
                kept.extend(trace)

        ddtrace.tracer.configure(trace_processors=[Keep()])
        ddtrace.patch(
            **dict.fromkeys([framework, "langgraph"] if framework == "langchain" else [framework], True)
        )

        def spans() -> dict[Key, tuple[Key | None, str]]:
            return {
                (f"{span.trace_id:032x}", f"{span.span_id:016x}"): (
                    (f"{span.trace_id:032x}", f"{span.parent_id:016x}") if span.parent_id else None,
                    span.get_tag("tenant") or "",
                )
                for span in kept
            }

        return Tracer(spans)

    return on


_OPENINFERENCE = {
    "langchain": _instrumented("openinference.instrumentation.langchain", "LangChainInstrumentor"),
    "llamaindex": _instrumented("openinference.instrumentation.llama_index", "LlamaIndexInstrumentor"),
}
_OPENLLMETRY = {
    "langchain": _instrumented("opentelemetry.instrumentation.langchain", "LangchainInstrumentor"),
    "llamaindex": _instrumented("opentelemetry.instrumentation.llamaindex", "LlamaIndexInstrumentor"),
}
_GENAI = {
    "langchain": _instrumented("opentelemetry.instrumentation.genai.langchain", "LangChainInstrumentor"),
    "llamaindex": _instrumented("opentelemetry.instrumentation.genai.llama_index", "LlamaIndexInstrumentor"),
}
TRACERS: dict[str, dict[str, Callable[[], Tracer]]] = {
    "openinference": _OPENINFERENCE,  # type: ignore[dict-item]
    "openllmetry": _OPENLLMETRY,  # type: ignore[dict-item]
    "genai": _GENAI,  # type: ignore[dict-item]
    "langsmith": {
        "langchain": _langsmith,
        "llamaindex": lambda: _OPENINFERENCE["llamaindex"](_own_provider),
    },
    "langfuse": {
        "langchain": _langfuse,
        "llamaindex": lambda: _OPENINFERENCE["llamaindex"](_langfuse_provider),
    },
    "logfire": {
        "langchain": lambda: _langsmith_otel(_logfire_provider),
        "llamaindex": lambda: _OPENLLMETRY["llamaindex"](_logfire_provider),
    },
    "mlflow": {"langchain": _mlflow("langchain"), "llamaindex": _mlflow("llama_index")},  # type: ignore[dict-item]
    "ddtrace": {"langchain": _ddtrace("langchain"), "llamaindex": _ddtrace("llama_index")},  # type: ignore[dict-item]
}
