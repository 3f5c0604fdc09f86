"""Templates, the files beside them, and the figures of the overview."""

from __future__ import annotations

import threading
import time
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
    refresh_results,
)
from steelyard.report.figures import FindingFigure, PeopleFigure, SliceFigure
from steelyard.report.page import templates
from steelyard.view._turn_view import speaks

# Hours that became stale meanwhile are read score by score, so that no figure is old.
_EVERY = 10.0


class Upkeep:
    """Adds up again what has become stale, in a thread, at most every ten seconds and one at a time."""

    def __init__(self, address: str, *, writes: bool) -> None:
        """Name the database, and whether it may be written to."""
        self._address, self._writes = address, writes
        self._lock = threading.Lock()
        self._next = 0.0

    def look(self) -> None:
        """Do what is due, behind the caller's back."""
        if not self._writes or time.monotonic() < self._next or not self._lock.acquire(blocking=False):
            return
        threading.Thread(target=self._run, daemon=True, name="steelyard-upkeep").start()

    def _run(self) -> None:
        try:
            refresh_results(self._address)
        except ConfigurationError:
            pass  # a page that reads the database says what is wrong with it
        finally:
            self._next = time.monotonic() + _EVERY
            self._lock.release()


STATIC: Final = {
    "uPlot.iife.min.js": ("steelyard.report.page", "text/javascript"),
    "report.js": ("steelyard.report.page", "text/javascript"),
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

    findings: tuple[FindingFigure, ...]
    """What changed."""
    slices: tuple[SliceFigure, ...]
    """What stands out."""
    people: tuple[PeopleFigure, ...]
    """What people's labels say."""
    at: float
    """When it was looked for, as Unix time."""


class CloserLooks:
    """What stands out in a few scopes, each looked for at most once a minute.

    It takes a second whatever the size of the database, so it is not part of a page: the page asks for it,
    and says when it was looked for. Thread-safe.
    """

    def __init__(self, address: str) -> None:
        """Name the database."""
        self._address = address
        self._lock = threading.Lock()
        self._found: BoundedDict[Scope, Closer] = BoundedDict(max_items=_KEPT)

    def get(self, scope: Scope) -> Closer:
        """What was found in a scope a minute ago at most.

        Raises:
            ConfigurationError: If the database cannot be read.
        """
        with self._lock:  # one search at a time, however many pages ask
            found = self._found.get(scope)
            if found is None or time.time() - found.at > _FRESH:
                with closing(open_results(self._address)) as reader:
                    metrics = build_figures(reader, scope, brief=True).metrics
                    findings, slices = look_closer(reader, scope, metrics)
                    found = Closer(
                        findings=findings,
                        slices=slices,
                        people=human_agreement(reader, open_labels(self._address), scope, metrics),
                        at=time.time(),
                    )
                self._found[scope] = found
            return found


def _when(at: float | None) -> str:
    try:
        return "–" if at is None else f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M:%S}"
    except (OverflowError, OSError, ValueError):
        return "–"
