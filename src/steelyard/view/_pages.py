"""Templates, the files beside them, and the figures of the overview."""

from __future__ import annotations

import threading
import time
from collections.abc import Hashable
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from importlib.resources import files
from typing import Final

from jinja2 import Environment

from steelyard._internal.bounded import BoundedDict
from steelyard.errors import ConfigurationError
from steelyard.report import (
    Scope,
    build_figures,
    human_agreement,
    look_closer,
    open_labels,
    open_results,
)
from steelyard.report.figures import FindingFigure, MetricFigure, PeopleFigure, SliceFigure
from steelyard.report.page import templates
from steelyard.view._turn_view import speaks

STATIC: Final = {
    "uPlot.iife.min.js": ("steelyard.report.page", "text/javascript"),
    "overview.js": ("steelyard.view", "text/javascript"),
    "uPlot.min.css": ("steelyard.report.page", "text/css"),
    "steelyard.css": ("steelyard.report.page", "text/css"),
    "view.js": ("steelyard.view", "text/javascript"),
    "turn.js": ("steelyard.view", "text/javascript"),
    "plots.js": ("steelyard.view", "text/javascript"),
    "queue.js": ("steelyard.view", "text/javascript"),
    "turn.css": ("steelyard.view", "text/css"),
}
"""Every file that is served, the room it lies in and its type; nothing else is."""
_TEMPLATES: Final = ("steelyard.view", "steelyard.report.page")
"""Where templates lie; some pieces are the report's own."""
_KEPT: Final = 16
_FRESH: Final = 60.0


@cache
def static_file(name: str) -> bytes:
    """The content of one of `STATIC`."""
    return (files(STATIC[name][0]) / "static" / name).read_bytes()


@cache
def environment() -> Environment:
    """The templates of this room; every value is escaped."""
    return templates(*_TEMPLATES, when=_when, speaks=speaks)


@dataclass(frozen=True, kw_only=True, slots=True)
class Closer:
    """What a closer look at the latest scores of a scope finds."""

    metrics: tuple[MetricFigure, ...] = ()
    """The metrics that were looked at."""
    findings: tuple[FindingFigure, ...] = ()
    """What changed."""
    slices: tuple[SliceFigure, ...] = ()
    """What stands out."""
    people: tuple[PeopleFigure, ...] = ()
    """What people's labels say."""
    at: float
    """When it was looked for, as Unix time."""
    problem: str = ""
    """Why the database could not be read; empty if it could."""


class CloserLooks:
    """What a closer look at a few scopes finds, each looked at again behind the page after a minute.

    It takes a second whatever the size of the database, so a page shows what was found last, and says when
    that was; only the first look at a scope is waited for. Thread-safe.
    """

    def __init__(self, address: str) -> None:
        """Name the database."""
        self._address = address
        self._lock, self._one_at_a_time = threading.Lock(), threading.Lock()
        self._found: BoundedDict[Hashable, Closer] = BoundedDict(max_items=_KEPT)
        self._running: dict[Hashable, threading.Event] = {}

    def get(self, asked: Hashable, scope: Scope, *, wait: float) -> Closer | None:
        """What was found last; None if nobody has looked, and it takes longer than may be waited.

        Args:
            asked: What the scope was made of: a time such as `24h` is another one every minute.
            scope: What to look at.
            wait: Seconds to wait for the first look.
        """
        with self._lock:
            found, running = self._found.get(asked), self._running.get(asked)
            if running is None and (found is None or time.time() - found.at > _FRESH):
                running = self._running[asked] = threading.Event()
                arguments = (asked, scope, running)
                threading.Thread(target=self._run, args=arguments, daemon=True, name="steelyard-look").start()
        if found is None and running is not None:
            running.wait(wait)
            found = self._found.get(asked)
        return None if found is None or found.problem else found

    def _run(self, asked: Hashable, scope: Scope, done: threading.Event) -> None:
        found = Closer(at=time.time(), problem="it failed")
        try:
            with self._one_at_a_time:  # however many pages ask
                found = self._look(scope)
        except ConfigurationError as error:
            found = Closer(at=time.time(), problem=str(error))  # a page that reads the database says it too
        finally:
            with self._lock:
                self._found[asked] = found
                del self._running[asked]
            done.set()

    def _look(self, scope: Scope) -> Closer:
        with closing(open_results(self._address)) as reader:
            metrics = build_figures(reader, scope, brief=True).metrics
            findings, slices = look_closer(reader, scope, metrics)
            people = human_agreement(reader, open_labels(self._address), scope, metrics)
        return Closer(metrics=metrics, findings=findings, slices=slices, people=people, at=time.time())


def _when(at: float | None) -> str:
    try:
        return "–" if at is None else f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M:%S}"
    except (OverflowError, OSError, ValueError):
        return "–"
