"""Which address leads to which page. A page more is one more line here."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route

from steelyard.errors import ConfigurationError, InvalidRecord
from steelyard.view._alarms import alarms
from steelyard.view._asked import AskedWrongly
from steelyard.view._compare import compared
from steelyard.view._coverage import coverage
from steelyard.view._export import exported
from steelyard.view._judges import judges
from steelyard.view._label import label
from steelyard.view._list import new_turns, trace, turns
from steelyard.view._overview import closer_look, overview, state
from steelyard.view._pages import STATIC, static_file
from steelyard.view._queue import drawn, drawn_turn, queue, so_far
from steelyard.view._session import session, sessions
from steelyard.view._site import Page, Site
from steelyard.view._turn import turn


def login(site: Site, request: Request) -> Response:
    """Where the token is given."""
    if not site.asks_token:
        return RedirectResponse(f"{request.scope.get('root_path', '')}/", status_code=303)
    return site.render(request, "login.html")


def static(_: Site, request: Request) -> Response:
    """A script or a style; only those of a fixed list."""
    name = request.path_params["name"]
    if name not in STATIC:
        return PlainTextResponse("not found", status_code=404)
    headers = {"cache-control": "public, max-age=3600"}
    return Response(static_file(name), media_type=STATIC[name][1], headers=headers)


PAGES: Final = (
    Page(path="/", show=overview, name="Overview"),
    Page(path="/turns", show=turns, name="Turns"),
    Page(path="/turns.{form}", show=exported),
    Page(path="/turn", show=turn),
    Page(path="/sessions", show=sessions, name="Sessions"),
    Page(path="/session", show=session),
    Page(path="/compare", show=compared, name="Compare"),
    Page(path="/label", show=queue, name="Label"),
    Page(path="/alarms", show=alarms, name="Alarms"),
    Page(path="/judges", show=judges, name="Judges"),
    Page(path="/coverage", show=coverage, name="Coverage"),
    Page(path="/api/queue", show=drawn),
    Page(path="/api/queue/turn", show=drawn_turn),
    Page(path="/api/queue/so-far", show=so_far),
    Page(path="/trace/{trace_id}", show=trace),
    Page(path="/api/new", show=new_turns),
    Page(path="/api/closer", show=closer_look),
    Page(path="/api/state", show=state),
    Page(path="/api/labels", show=label, methods=("POST",)),
    Page(path="/login", show=login),
    Page(path="/static/{name}", show=static),
)
"""Every address, in the order of the navigation."""


def application(site: Site) -> Starlette:
    """The pages over one database. One that reads it runs in a thread; the loop never waits for a disk."""
    site.navigation = tuple((page.path, page.name) for page in PAGES if page.name)
    return Starlette(routes=[Route(one.path, _answering(site, one), methods=one.methods) for one in PAGES])


def _answering(site: Site, page: Page) -> Callable[[Request], Response | Awaitable[Response]]:
    if inspect.iscoroutinefunction(page.show):
        return partial(page.show, site)

    def answer(request: Request) -> Response | Awaitable[Response]:
        try:
            return page.show(site, request)
        except (ConfigurationError, InvalidRecord) as error:
            return site.say(request, str(error), 400 if isinstance(error, AskedWrongly) else 503)

    return answer
