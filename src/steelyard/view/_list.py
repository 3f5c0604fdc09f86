"""The list of turns."""

from __future__ import annotations

from dataclasses import asdict, fields
from urllib.parse import quote, urlencode

from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response

from steelyard.report import TurnFilter, TurnRow
from steelyard.report.queries import EVIDENCE, STATUSES
from steelyard.scores import CAUSES
from steelyard.view._pages import environment
from steelyard.view._site import Site

_PAGE = 50
_LONGEST = 200


def turns(site: Site, request: Request) -> Response:
    """The list of turns, newest first."""
    wanted = _filter(request)
    key = _key(request, "before")
    with site.open() as results:
        # One more than is shown tells whether there is an older page.
        rows = results.turns(wanted, before=key, limit=_PAGE + 1)
    asked = {name: value for name, value in asdict(wanted).items() if value}
    shown = rows[:_PAGE]
    older = _link(asked, shown[-1]) if len(rows) > _PAGE else ""
    newest = shown[0].key if shown else (0.0, "")
    return site.render(
        request,
        "turns.html",
        rows=shown,
        asked=asdict(wanted),
        statuses=STATUSES,
        evidence=EVIDENCE,
        causes=(*CAUSES, "fine"),
        older=older,
        live="" if key else urlencode({**asked, "time": repr(newest[0]), "id": newest[1]}),
        first=urlencode(asked),
        paged=key is not None,
    )


def new_turns(site: Site, request: Request) -> Response:
    """The turns after a key, as rows of the list."""
    key = _key(request, "time") or (0.0, "")
    with site.open() as results:
        rows = results.turns(_filter(request), after=key, limit=_PAGE)
    newest = rows[0].key if rows else key
    page = environment().get_template("rows.html")
    html = page.render(rows=rows, root=request.scope.get("root_path", ""))
    return JSONResponse({"rows": html, "count": len(rows), "time": repr(newest[0]), "id": newest[1]})


def trace(site: Site, request: Request) -> Response:
    """The turn of a trace, or the list where it has several."""
    # Ids are at most 32 characters; what is longer is looked for in vain, and quickly.
    wanted = TurnFilter(trace=request.path_params["trace_id"][:_LONGEST])
    with site.open() as results:
        rows = results.turns(wanted, limit=2)
    root = request.scope.get("root_path", "")
    if not rows:
        return site.say(request, "There is no evaluated turn of this trace.", 404)
    if len(rows) == 1:
        return RedirectResponse(f"{root}/turn?id={quote(rows[0].record_id, safe='')}", status_code=303)
    return RedirectResponse(f"{root}/turns?{urlencode({'trace': wanted.trace})}", status_code=303)


def _filter(request: Request) -> TurnFilter:
    given = request.query_params
    values = {field.name: given.get(field.name, "")[:_LONGEST] for field in fields(TurnFilter)}
    status = values.pop("status")
    # Taken from the fixed list, since conditions are chosen by it.
    return TurnFilter(**values, status=next((one for one in STATUSES if one == status), ""))


def _key(request: Request, name: str) -> tuple[float, str] | None:
    try:
        return float(request.query_params[name]), request.query_params.get("id", "")
    except (KeyError, ValueError):
        return None


def _link(asked: dict[str, str], last: TurnRow) -> str:
    return urlencode({**asked, "before": repr(last.happened_at), "id": last.record_id})
