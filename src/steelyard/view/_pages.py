"""Templates, the files beside them, and the figures of the overview."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from contextlib import closing
from datetime import UTC, datetime
from functools import cache
from importlib.resources import files
from typing import Any, Final

from jinja2 import Environment, PackageLoader, StrictUndefined

from steelyard._internal.text import printable
from steelyard.report import Scope, build_figures, open_results
from steelyard.report.figures import MetricFigure, ReportFigures

STATIC: Final = {
    "uPlot.iife.min.js": ("steelyard.report", "text/javascript"),
    "report.js": ("steelyard.report", "text/javascript"),
    "uPlot.min.css": ("steelyard.report", "text/css"),
    "report.css": ("steelyard.report", "text/css"),
    "view.js": ("steelyard.view", "text/javascript"),
    "view.css": ("steelyard.view", "text/css"),
}
"""Every file that is served, the room it lies in and its type; nothing else is."""
_KEPT: Final = 8
_FRESH: Final = 5.0
_SHARE: Final = 20


@cache
def static_file(name: str) -> bytes:
    """The content of one of `STATIC`."""
    return (files(STATIC[name][0]) / "static" / name).read_bytes()


@cache
def environment() -> Environment:
    """The templates of this room; every value is escaped."""
    made = Environment(
        loader=PackageLoader("steelyard.view", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters.update(when=_when, line=_line, harmless=lambda text: printable(text, lines=True))
    return made


def chart_of(metric: MetricFigure) -> dict[str, Any]:
    """What the script of the report draws a metric from."""
    estimates = [point.estimate for point in metric.points]
    return {
        "times": [point.time for point in metric.points],
        "mean": [round(one.value, 4) for one in estimates],
        "low": [round(one.low, 4) for one in estimates],
        "high": [round(one.high, 4) for one in estimates],
        "n": [one.n for one in estimates],
        "threshold": metric.threshold,
        "shares": [round(share, 5) for share in metric.shares],
    }


class FigureCache:
    """The latest figures of a few scopes.

    Adding up a large database takes seconds, so figures are shown as they were, and made again behind the
    page at most a twentieth of the time. Thread-safe; pages are made in threads.
    """

    def __init__(self, address: str) -> None:
        """Name the database."""
        self._address = address
        self._lock = threading.Lock()
        self._made: OrderedDict[Scope, tuple[ReportFigures, float, float]] = OrderedDict()
        self._working: set[Scope] = set()

    def get(self, scope: Scope) -> ReportFigures:
        """The figures of a scope: those there are, or new ones where there are none.

        Raises:
            ConfigurationError: If there are none and the database cannot be read.
        """
        with self._lock:
            found = self._made.get(scope)
            if found:
                self._made.move_to_end(scope)
                _, at, took = found
                stale = time.monotonic() - at > max(_FRESH, _SHARE * took) and scope not in self._working
                if stale:
                    self._working.add(scope)
        if not found:
            return self._make(scope)
        if stale:
            threading.Thread(target=self._renew, args=(scope,), daemon=True, name="steelyard-figures").start()
        return found[0]

    def _renew(self, scope: Scope) -> None:
        try:
            self._make(scope)
        except Exception:  # noqa: BLE001 - the database is gone or replaced: the next page says so itself
            with self._lock:
                self._made.pop(scope, None)
        finally:
            with self._lock:
                self._working.discard(scope)

    def _make(self, scope: Scope) -> ReportFigures:
        start = time.monotonic()
        with closing(open_results(self._address)) as reader:
            figures = build_figures(reader, scope, worst=0)
        with self._lock:
            now = time.monotonic()
            self._made[scope] = figures, now, now - start
            while len(self._made) > _KEPT:
                self._made.popitem(last=False)
        return figures


def _when(at: float | None) -> str:
    try:
        return "–" if at is None else f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M:%S}"
    except (OverflowError, OSError, ValueError):
        return "–"


def _line(text: str, width: int) -> str:
    flat = printable(text[: 4 * width])
    return flat if len(flat) <= width else flat[: width - 1] + "…"
