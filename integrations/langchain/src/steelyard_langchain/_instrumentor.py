"""Recording under `opentelemetry-instrument`: `STEELYARD_INSTRUMENT=langchain` records every chain."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

from steelyard._internal.logs import SafeLogger
from steelyard.recording import BaseInstrumentor


class LangChainInstrumentor(BaseInstrumentor):
    """What the `opentelemetry_instrumentor` entry point names.

    It is asked for by name only: the switch's general words record spans, and a chain whose spans are
    recorded must not be recorded a second time.
    """

    words = frozenset({"langchain"})
    log = SafeLogger("steelyard.langchain")

    def instrumentation_dependencies(self) -> Collection[str]:
        """The versions that are recorded."""
        return ("langchain-core >= 1.4, < 2",)

    def _start(self, options: Mapping[str, Any]) -> Callable[[], object] | None:
        from steelyard_langchain._attach import attach, detach

        attach(options.get("monitor"))
        return detach
