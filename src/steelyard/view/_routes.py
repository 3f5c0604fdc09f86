"""Which address leads to which page. A page more is one more line here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route

from steelyard.errors import ConfigurationError, InvalidRecord
from steelyard.view._compare import compared
from steelyard.view._judges import judges
from steelyard.view._label import drawn, drawn_turn, label, queue, so_far
from steelyard.view._list import exported, new_turns, trace, turns
from steelyard.view._live import alarms, coverage
from steelyard.view._overview import closer_look, overview, state
from steelyard.view._requests import AskedWrongly
from steelyard.view._session import session, sessions
from steelyard.view._site import STATIC, Site, static_file
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


PAGES: Final[Mapping[str, Callable[[Site, Request], Response]]] = {
    "/": overview,
    "/turns": turns,
    "/turns.{form}": exported,
    "/turn": turn,
    "/sessions": sessions,
    "/session": session,
    "/compare": compared,
    "/label": queue,
    "/alarms": alarms,
    "/judges": judges,
    "/coverage": coverage,
    "/api/queue": drawn,
    "/api/queue/turn": drawn_turn,
    "/api/queue/so-far": so_far,
    "/trace/{trace_id}": trace,
    "/api/new": new_turns,
    "/api/closer": closer_look,
    "/api/state": state,
    "/login": login,
    "/static/{name}": static,
}
_NAVIGATION: Final = ("/turns", "/sessions", "/compare", "/label", "/alarms", "/judges", "/coverage")


def application(site: Site) -> Starlette:
    """The pages over one database. One that reads it runs in a thread; the loop never waits for a disk."""
    site.navigation = (("/", "Overview"), *((path, path[1:].capitalize()) for path in _NAVIGATION))
    pages = [Route(path, _answering(site, show)) for path, show in PAGES.items()]
    return Starlette(routes=[*pages, Route("/api/labels", partial(label, site), methods=["POST"])])


def _answering(site: Site, show: Callable[[Site, Request], Response]) -> Callable[[Request], Response]:
    def answer(request: Request) -> Response:
        try:
            return show(site, request)
        except (ConfigurationError, InvalidRecord) as error:
            return site.say(request, str(error), 400 if isinstance(error, AskedWrongly) else 503)

    return answer
