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

from steelyard._internal.logs import SafeLogger, WarnOnce

SWITCH = "STEELYARD_INSTRUMENT"
"""The environment variable that turns recording on under `opentelemetry-instrument`."""

SPAN_WORDS = frozenset({"1", "true", "on", "yes", "all", "opentelemetry"})
"""Words in the switch that ask for records out of spans."""
OFF_WORDS = frozenset({"", "0", "false", "off", "no", "none"})
"""Words in the switch that ask for nothing."""
KNOWN_WORDS = SPAN_WORDS | OFF_WORDS | {"langchain"}
"""All words that mean something in the switch."""

_warn_once = WarnOnce(SafeLogger("steelyard.recording"))


def is_switched_on(words: Collection[str], environ: Mapping[str, str] | None = None) -> bool:
    """Whether one of the words stands in the switch, alone or in a comma-separated list.

    A word that means nothing is logged as an error, once: whoever set it believes that turns are recorded.
    """
    asked = _words((os.environ if environ is None else environ).get(SWITCH, ""))
    for word in asked:
        if word not in KNOWN_WORDS:
            _warn_once(word, _UNKNOWN, SWITCH, word, level=logging.ERROR)
    return not asked.isdisjoint(words)


_UNKNOWN = (
    "%s=%r means nothing and records nothing: say 1 (or opentelemetry) for records out of spans, "
    "langchain for the LangChain handler, both with a comma between them, or 0 for none; "
    "LlamaIndex is recorded by `steelyard run` or `steelyard_llamaindex.instrument()`"
)


def _words(value: str) -> frozenset[str]:
    return frozenset(word.strip().lower() for word in value.split(","))


class BaseInstrumentor(ABC):
    """What an `opentelemetry_instrumentor` entry point names.

    It has the methods that auto-instrumentation calls, without depending on `opentelemetry-instrumentation`.
    """

    words: ClassVar[Collection[str]]
    """The words in the switch that ask for it."""
    log: ClassVar[SafeLogger]
    """Where it says that recording could not be switched on."""

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
            self.log.warning(
                "Recording could not be switched on; add the recorder in code, or see the error below",
                exc_info=True,
            )

    def uninstrument(self, **_: Any) -> None:
        """Stop recording; what is complete is handed over."""
        if self._stop is not None:
            self._stop()
            self._stop = None
