"""The first page: how every metric does, over a time."""

from __future__ import annotations

import time
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from steelyard.errors import ConfigurationError
from steelyard.report import Scope, build_figures, remaining_turns
from steelyard.report.page import chart_of, headline
from steelyard.report.period import moment
from steelyard.view._site import Site

_LONGEST = 200


def overview(site: Site, request: Request) -> Response:
    """Means, pass rates and charts of every metric, over a time."""
    asked = _asked(request)
    try:
        scope = _scope(asked)
    except ConfigurationError as error:
        return site.say(request, str(error), 400)
    # Looked at by whoever opens the overview, so that no thread runs while nobody looks.
    site.upkeep.look()
    with site.open() as results:
        figures = build_figures(results, scope, brief=True)
    charts = [chart_of(metric) for metric in figures.metrics]
    return site.render(
        request,
        "overview.html",
        figures=figures,
        charts=charts,
        headline=headline(figures.metrics),
        asked=asked,
        query=urlencode({name: value for name, value in asked.items() if value}),
        rest=remaining_turns(figures.funnel) if figures.funnel else [],
    )


def slices(site: Site, request: Request) -> Response:
    """What stands out, as a piece of the overview."""
    try:
        found = site.closer.get(_scope(_asked(request)))
    except ConfigurationError as error:
        return PlainTextResponse(str(error), status_code=400)
    return site.render(
        request,
        "slices.html",
        findings=found.findings,
        slices=found.slices,
        people=found.people,
        at=found.at,
    )


def state(site: Site, request: Request) -> Response:
    """What Monitors and the spool are doing, as a piece of the overview."""
    with site.open() as results:
        found = site.live.now(results)
    return site.render(request, "state.html", state=found)


def _asked(request: Request) -> dict[str, str]:
    return {name: request.query_params.get(name, "")[:_LONGEST] for name in ("since", "metric", "tag")}


def _scope(asked: dict[str, str]) -> Scope:
    # To the minute, so that what was found a moment ago is found again.
    since = moment(asked["since"], now=time.time() // 60 * 60)
    return Scope(since=since, metric=asked["metric"] or None, tag=asked["tag"] or None)
