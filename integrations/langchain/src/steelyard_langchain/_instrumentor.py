"""Recording under `opentelemetry-instrument`, without a line of code.

That command calls every installed instrumentor, so that this one stays out of the way unless it was asked:
`STEELYARD_INSTRUMENT=langchain` (or a comma-separated list with `langchain` in it) records every chain.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Collection, Mapping
from typing import Any

__all__ = ["SWITCH", "LangChainInstrumentor", "switched_on"]

SWITCH = "STEELYARD_INSTRUMENT"
"""The environment variable that turns recording on under `opentelemetry-instrument`."""

_log = logging.getLogger("steelyard.langchain")


def switched_on(environ: Mapping[str, str] | None = None) -> bool:
    """Whether recording LangChain was asked for by name.

    By name only: the switch's general words record spans, and a chain whose spans are recorded is not to be
    recorded once more.
    """
    value = (os.environ if environ is None else environ).get(SWITCH, "")
    return any(word.strip().lower() == "langchain" for word in value.split(","))


class LangChainInstrumentor:
    """What the `opentelemetry_instrumentor` entry point names.

    It has the methods that auto-instrumentation calls, without depending on `opentelemetry-instrumentation`.
    """

    def __init__(self) -> None:
        self._attached = False

    def instrumentation_dependencies(self) -> Collection[str]:
        """The versions that are recorded."""
        return ("langchain-core >= 1.4, < 2",)

    def instrument(self, **options: Any) -> None:
        """Attach, if it was asked for. Never raises into the application.

        Args:
            options: `monitor` for another one than the default; whatever else the caller passes is ignored.
        """
        if self._attached or not switched_on():
            return
        try:
            from steelyard_langchain._attach import attach

            attach(options.get("monitor"))
            self._attached = True
        except Exception:  # noqa: BLE001 - the application starts whatever becomes of us
            _log.warning("Recording could not be switched on", exc_info=True)

    def uninstrument(self, **_: Any) -> None:
        """Stop recording."""
        if self._attached:
            from steelyard_langchain._attach import detach

            detach()
            self._attached = False
