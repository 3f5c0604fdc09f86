"""What all pages have in common: the database, the frame around them, and what is looked at beside them."""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from steelyard.online import Settings
from steelyard.report import ResultsReader, open_labels, open_results
from steelyard.scores import Evaluation
from steelyard.view._live import LiveLook
from steelyard.view._pages import CloserLooks, environment


@dataclass(frozen=True, kw_only=True, slots=True)
class Page:
    """One address and what answers there."""

    path: str
    """The address; `{name}` in it is a parameter."""
    show: Callable[[Site, Request], Response | Awaitable[Response]]
    """Makes the reply. A plain function runs in a thread, for it reads the database."""
    name: str = ""
    """What the navigation calls it; empty keeps it out."""
    methods: tuple[str, ...] = ("GET",)
    """The methods it answers to."""


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
        """Name the database, and what is looked at beside it."""
        # New with each start: pages of an earlier one say that they are out of date.
        self.csrf = secrets.token_urlsafe(32)
        self.name, self.read_only, self.asks_token = name, read_only, asks_token
        self.live, self.trace_url, self.settings = live, trace_url, settings
        self.closer = CloserLooks(address)
        self.labels = open_labels(address)
        self.navigation: tuple[tuple[str, str], ...] = ()
        self.address = address

    def open(self) -> closing[ResultsReader]:
        """The results, until the block ends.

        Raises:
            ConfigurationError: If they cannot be read.
        """
        return closing(open_results(self.address))

    def evaluation(self, record_id: str) -> Evaluation | None:
        """One turn; None where there is none of this id."""
        with self.open() as results:
            return results.evaluation(record_id)

    def render(self, request: Request, template: str, status: int = 200, **values: Any) -> Response:
        """A page of a template."""
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
        """A page with one sentence."""
        return self.render(request, "message.html", status, message=what)
