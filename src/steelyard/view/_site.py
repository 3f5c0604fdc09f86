"""What all pages have in common: the database, the frame around them, and what is looked at beside them."""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Hashable, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Final

from jinja2 import Environment
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from steelyard._internal.bounded import BoundedDict
from steelyard._internal.text import utc
from steelyard.errors import ConfigurationError
from steelyard.online import Settings
from steelyard.report import build_figures, human_agreement, look_closer
from steelyard.report.figures import FindingFigure, MetricFigure, PeopleFigure, SliceFigure
from steelyard.report.html import templates
from steelyard.report.turn import Piece
from steelyard.results import ResultsReader, open_labels, open_results
from steelyard.results.queries import Scope
from steelyard.scores import Evaluation
from steelyard.view._live import LiveLook

STATIC: Final = {
    "uPlot.iife.min.js": ("steelyard.report", "text/javascript"),
    "overview.js": ("steelyard.view", "text/javascript"),
    "uPlot.min.css": ("steelyard.report", "text/css"),
    "steelyard.css": ("steelyard.report", "text/css"),
    "view.js": ("steelyard.view", "text/javascript"),
    "turn.js": ("steelyard.view", "text/javascript"),
    "plots.js": ("steelyard.view", "text/javascript"),
    "queue.js": ("steelyard.view", "text/javascript"),
    "turn.css": ("steelyard.view", "text/css"),
}
"""Every file that is served, the room it lies in and its type; nothing else is."""
_TEMPLATES: Final = ("steelyard.view", "steelyard.report")
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
    findings: tuple[FindingFigure, ...] = ()
    slices: tuple[SliceFigure, ...] = ()
    people: tuple[PeopleFigure, ...] = ()
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
        self._address = address
        self._lock, self._one_at_a_time = threading.Lock(), threading.Lock()
        self._found: BoundedDict[Hashable, Closer] = BoundedDict(max_items=_KEPT)
        self._running: dict[Hashable, threading.Event] = {}

    def get(self, asked: Hashable, scope: Scope, *, wait: float) -> Closer | None:
        """What was found last; None if nobody has looked, and it takes longer than may be waited."""
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


def speaks(piece: Piece, claims: Sequence[Any]) -> str:
    """What the claims on a piece of text say of it: `bad` if one speaks against it, `good`, or `open`."""
    goods = {claims[int(key)].claim.good for key in piece.claims}
    return "bad" if False in goods else "good" if True in goods else "open"


def _when(at: float | None) -> str:
    return "–" if at is None else utc(at, "%Y-%m-%d %H:%M:%S")


class Site:
    """One database as all pages see it. Each page opens it anew, so that it may be replaced or come back."""

    def __init__(
        self,
        address: str,
        *,
        name: str,
        read_only: bool,
        asks_token: bool,
        live: LiveLook,
        trace_url: str = "",
        settings: Settings | None = None,
    ) -> None:
        # New with each start: pages of an earlier one say that they are out of date.
        self.csrf = secrets.token_urlsafe(32)
        self.name, self.read_only, self.asks_token = name, read_only, asks_token
        self.live, self.trace_url, self.settings = live, trace_url, settings
        self.closer = CloserLooks(address)
        self.labels = open_labels(address)
        self.navigation: tuple[tuple[str, str], ...] = ()
        self.address = address

    def open(self) -> closing[ResultsReader]:
        """The results, until the block ends."""
        return closing(open_results(self.address))

    def evaluation(self, record_id: str) -> Evaluation | None:
        with self.open() as results:
            return results.evaluation(record_id)

    def render(self, request: Request, template: str, status: int = 200, **values: Any) -> Response:
        root = request.scope.get("root_path", "")
        shared = {
            "root": root,
            "here": request.url.path.removeprefix(root) or "/",
            "navigation": self.navigation,
            "db": self.name,
            "csrf": self.csrf,
            "read_only": self.read_only,
        }
        page = environment().get_template(template)
        return HTMLResponse(page.render(**shared, **values), status_code=status)

    def say(self, request: Request, what: str, status: int) -> Response:
        return self.render(request, "message.html", status, message=what)
