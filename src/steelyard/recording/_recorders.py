"""Recording without a line of code: the recorders that are installed, found by entry point.

`attach_recorders` attaches them all. `opentelemetry-instrument` calls every installed instrumentor, so an
instrumentor of Steelyard's stays out of the way unless `STEELYARD_INSTRUMENT` asks for it by name.
"""

from __future__ import annotations

import logging
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping
from importlib.metadata import EntryPoint, entry_points
from typing import Any, ClassVar

from steelyard._internal.logs import SafeLogger, WarnOnce
from steelyard._internal.text import error_place
from steelyard.errors import MissingDependency
from steelyard.recording._draft import TurnTarget

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
    told = (os.environ if environ is None else environ).get(SWITCH, "").split(",")
    asked = frozenset(word.strip().lower() for word in told)
    for word in asked:
        if word not in KNOWN_WORDS:
            _warn_once(word, _UNKNOWN, SWITCH, word, level=logging.ERROR)
    return not asked.isdisjoint(words)


_UNKNOWN = (
    "%s=%r means nothing and records nothing: say 1 (or opentelemetry) for records out of spans, "
    "langchain for the LangChain handler, both with a comma between them, or 0 for none; "
    "LlamaIndex is recorded by `steelyard run` or `steelyard_llamaindex.instrument()`"
)


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


RECORDERS = "steelyard.recorders"
"""Entry points of this group name a module or object with `attach(monitor)` and `detach()`."""

_log = SafeLogger("steelyard.recording")


def attach_recorders(target: TurnTarget) -> list[str]:
    """Attach the recorder of every framework that is installed; a recorder that fails is left out.

    Args:
        target: Where turns go.

    Returns:
        The names of those that record now.
    """
    return [point.name for point in _points() if _attached(point, target)]


def detach_recorders() -> None:
    """Detach every recorder, whoever attached it."""
    for point in _points():
        try:
            point.load().detach()
        except Exception as error:  # noqa: BLE001 - a recorder of somebody's own may raise anything
            _log.debug("the recorder %r could not be detached: %s", point.name, error_place(error))


def _points() -> list[EntryPoint]:
    return sorted(entry_points(group=RECORDERS), key=lambda point: point.name)


def _attached(point: EntryPoint, target: TurnTarget) -> bool:
    try:
        point.load().attach(target)
    except MissingDependency:
        return False
    except Exception:  # noqa: BLE001 - a recorder of somebody's own may raise anything
        _log.warning(
            "the recorder %r could not be attached; see the error below, or upgrade its package",
            point.name,
            exc_info=True,
        )
        return False
    return True
