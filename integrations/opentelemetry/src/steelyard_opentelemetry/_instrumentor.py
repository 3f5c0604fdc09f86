"""Recording under `opentelemetry-instrument`: the switch adds the processor to the tracer provider."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

from steelyard._internal.logs import SafeLogger
from steelyard.recording import SWITCH, BaseInstrumentor

WORDS = frozenset({"1", "true", "on", "yes", "all", "opentelemetry"})
"""What turns recording on in `STEELYARD_INSTRUMENT`."""


class SteelyardInstrumentor(BaseInstrumentor):
    """What the `opentelemetry_instrumentor` entry point names."""

    words = WORDS
    log = SafeLogger("steelyard.opentelemetry")

    def instrumentation_dependencies(self) -> Collection[str]:
        """Nothing: spans come from other instrumentors."""
        return ()

    def _start(self, options: Mapping[str, Any]) -> Callable[[], object] | None:
        from opentelemetry import trace

        provider = options.get("tracer_provider") or trace.get_tracer_provider()
        if not hasattr(provider, "add_span_processor"):
            self.log.warning(
                "%s is set, but no OpenTelemetry SDK is configured, so that there are no spans: install "
                "opentelemetry-distro beside opentelemetry-sdk, or set a TracerProvider up in code",
                SWITCH,
            )
            return None
        from steelyard_opentelemetry._recorder import EvaluationSpanProcessor

        processor = EvaluationSpanProcessor(options.get("monitor"))
        provider.add_span_processor(processor)
        _read_logs(options.get("logger_provider"))
        return processor.shutdown


def _read_logs(provider: Any) -> None:
    """Content may come as log records; without a LoggerProvider of the SDK there are none."""
    from opentelemetry._logs import get_logger_provider

    provider = provider or get_logger_provider()
    if hasattr(provider, "add_log_record_processor"):
        from steelyard_opentelemetry.logs import ContentLogRecordProcessor

        provider.add_log_record_processor(ContentLogRecordProcessor())
