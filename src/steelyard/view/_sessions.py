"""The list of conversations."""

from __future__ import annotations

from typing import Final
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import Response

from steelyard.report.looks import ORDERS, Order
from steelyard.view._site import Site

_PAGE: Final = 50
_MOST_PAGES: Final = 10_000


def sessions(site: Site, request: Request) -> Response:
    """Conversations, the latest or those with the most turns that did not pass first."""
    asked = request.query_params.get("order")
    order: Order = next((one for one in ORDERS if one == asked), "latest")
    given = request.query_params.get("page", "")
    page = min(int(given), _MOST_PAGES) if given.isdecimal() and len(given) < 9 else 0
    with site.open() as results:
        # One more than is shown tells whether there is a further page.
        rows = results.sessions(order, skip=page * _PAGE, limit=_PAGE + 1)
    return site.render(
        request,
        "sessions.html",
        rows=rows[:_PAGE],
        order=order,
        page=page,
        before=urlencode({"order": order, "page": page - 1}) if page else "",
        after=urlencode({"order": order, "page": page + 1}) if len(rows) > _PAGE else "",
    )
