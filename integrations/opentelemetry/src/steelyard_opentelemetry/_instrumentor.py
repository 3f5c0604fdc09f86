"""Recording under `opentelemetry-instrument`, without a line of code.

That command calls every installed instrumentor, so that this one stays out of the way unless it was asked:
`STEELYARD_INSTRUMENT=opentelemetry` (or `all`, `true`, `1`) adds the processor to the tracer provider.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Collection, Mapping
from typing import Any

SWITCH = "STEELYARD_INSTRUMENT"
"""The environment variable that turns recording on under `opentelemetry-instrument`."""

_ON = frozenset({"1", "true", "on", "yes", "all", "opentelemetry"})
_log = logging.getLogger("steelyard.opentelemetry")


def switched_on(environ: Mapping[str, str] | None = None) -> bool:
    """Whether recording spans was asked for, alone or in a comma-separated list."""
    value = (os.environ if environ is None else environ).get(SWITCH, "")
    return any(word.strip().lower() in _ON for word in value.split(","))


class SteelyardInstrumentor:
    """What the `opentelemetry_instrumentor` entry point names.

    It has the methods that auto-instrumentation calls, without depending on `opentelemetry-instrumentation`.
    """

    def __init__(self) -> None:
        self._processor: Any = None

    def instrumentation_dependencies(self) -> Collection[str]:
        """Nothing: spans come from other instrumentors."""
        return ()

    def instrument(self, **options: Any) -> None:
        """Add the processor, if it was asked for. Never raises into the application.

        Args:
            options: `tracer_provider` for another one than the global, `monitor` for another one than the
                default; whatever else the caller passes is ignored.
        """
        if self._processor is not None or not switched_on():
            return
        try:
            self._add(options)
        except Exception:  # noqa: BLE001 - the application starts whatever becomes of us
            _log.warning("Recording could not be switched on", exc_info=True)

    def uninstrument(self, **_: Any) -> None:
        """Stop recording; what is complete is handed over."""
        if self._processor is not None:
            self._processor.shutdown()
            self._processor = None

    def _add(self, options: Mapping[str, Any]) -> None:
        from opentelemetry import trace

        provider = options.get("tracer_provider") or trace.get_tracer_provider()
        if not hasattr(provider, "add_span_processor"):
            _log.warning(
                "%s is set, but no OpenTelemetry SDK is configured, so that there are no spans: install "
                "opentelemetry-distro beside opentelemetry-sdk, or set a TracerProvider up in code",
                SWITCH,
            )
            return
        from steelyard_opentelemetry._recorder import EvaluationSpanProcessor

        self._processor = EvaluationSpanProcessor(options.get("monitor"))
        provider.add_span_processor(self._processor)
