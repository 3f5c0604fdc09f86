"""Recording under `opentelemetry-instrument`, without a line of code.

That command calls every installed instrumentor, so an instrumentor of Steelyard's stays out of the way unless
`STEELYARD_INSTRUMENT` asks for it by name.
"""

from __future__ import annotations

import logging
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping
from typing import Any, ClassVar

SWITCH = "STEELYARD_INSTRUMENT"
"""The environment variable that turns recording on under `opentelemetry-instrument`."""


def is_switched_on(words: Collection[str], environ: Mapping[str, str] | None = None) -> bool:
    """Whether one of the words stands in the switch, alone or in a comma-separated list."""
    value = (os.environ if environ is None else environ).get(SWITCH, "")
    return any(word.strip().lower() in words for word in value.split(","))


class BaseInstrumentor(ABC):
    """What an `opentelemetry_instrumentor` entry point names.

    It has the methods that auto-instrumentation calls, without depending on `opentelemetry-instrumentation`.
    """

    words: ClassVar[Collection[str]]
    """The words in the switch that ask for it."""
    log: ClassVar[logging.Logger]

    def __init__(self) -> None:
        self._stop: Callable[[], object] | None = None

    @abstractmethod
    def instrumentation_dependencies(self) -> Collection[str]:
        """The distributions and versions that are recorded."""

    @abstractmethod
    def _start(self, options: Mapping[str, Any]) -> Callable[[], object] | None:
        """Begin recording; returns what stops it, or None where nothing could begin."""

    def instrument(self, **options: Any) -> None:
        """Begin recording, if it was asked for. Never raises into the application.

        Args:
            options: `monitor` for another one than the default, `tracer_provider` for another one than the
                global; whatever else the caller passes is ignored.
        """
        if self._stop is not None or not is_switched_on(self.words):
            return
        try:
            self._stop = self._start(options)
        except Exception:
            self.log.warning("Recording could not be switched on", exc_info=True)

    def uninstrument(self, **_: Any) -> None:
        """Stop recording; what is complete is handed over."""
        if self._stop is not None:
            self._stop()
            self._stop = None
