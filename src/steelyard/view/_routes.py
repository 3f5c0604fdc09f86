"""The pages. Each opens the database for itself, so that it may be written to, replaced or come back."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import asdict, fields
from functools import wraps
from typing import Any
from urllib.parse import quote, urlencode

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route

from steelyard.errors import ConfigurationError, InvalidRecord
from steelyard.report import (
    Label,
    ResultsReader,
    Scope,
    TurnFilter,
    TurnRow,
    build_figures,
    open_labels,
    open_results,
    remaining_turns,
)
from steelyard.report.page import chart_of, headline
from steelyard.report.period import moment
from steelyard.report.queries import EVIDENCE, STATUSES
from steelyard.scores import CAUSES, Evaluation
from steelyard.view._guard import read_body
from steelyard.view._live import LiveLook
from steelyard.view._pages import STATIC, CloserLooks, Upkeep, environment, static_file
from steelyard.view._session import session_page
from steelyard.view._turn import turn_page

_PAGE = 50
_LONGEST_FILTER = 200
_LONGEST_LABEL = 16_384
_FIRST = (float("-inf"), "")
"""Before every turn."""


def _told(page: Callable[[Pages, Request], Response]) -> Callable[[Pages, Request], Response]:
    """Show what cannot be read as a page that says so."""

    @wraps(page)
    def told(self: Pages, request: Request) -> Response:
        try:
            return page(self, request)
        except (ConfigurationError, InvalidRecord) as error:
            return self.say(request, str(error), 503)

    return told


class Pages:
    """All pages over one database."""

    def __init__(self, address: str, *, name: str, read_only: bool, asks_token: bool, live: LiveLook) -> None:
        """Name the database, and what is looked at beside it."""
        # New with each start: pages of an earlier one say that they are out of date.
        self.csrf = secrets.token_urlsafe(32)
        self._address, self._name = address, name
        self._read_only, self._asks_token = read_only, asks_token
        self._live = live
        self._closer = CloserLooks(address)
        self._labels = open_labels(address)
        self._upkeep = Upkeep(address, writes=not read_only)

    def application(self) -> Starlette:
        """The routes. A page that reads the database runs in a thread; the loop never waits for a disk."""
        return Starlette(
            routes=[
                Route("/", self.overview),
                Route("/turns", self.turns),
                Route("/turn", self.turn),
                Route("/session", self.session),
                Route("/trace/{trace_id}", self.trace),
                Route("/api/new", self.new_turns),
                Route("/api/slices", self.slices),
                Route("/api/state", self.state),
                Route("/api/labels", self.label, methods=["POST"]),
                Route("/login", self.login),
                Route("/static/{name}", self.static),
            ],
        )

    def render(self, request: Request, template: str, status: int = 200, **values: Any) -> Response:
        """A page of a template."""
        shared = {"root": request.scope.get("root_path", ""), "db": self._name, "csrf": self.csrf}
        shared["here"] = request.url.path.removeprefix(shared["root"]) or "/"
        page = environment().get_template(template)
        return HTMLResponse(page.render(**shared, read_only=self._read_only, **values), status_code=status)

    def say(self, request: Request, what: str, status: int) -> Response:
        """A page with one sentence."""
        return self.render(request, "message.html", status, message=what)

    @_told
    def overview(self, request: Request) -> Response:
        """Means, pass rates and charts of every metric, over a time."""
        asked = _asked(request)
        try:
            scope = _scope(asked)
        except ConfigurationError as error:
            return self.say(request, str(error), 400)
        # Looked at by whoever opens the overview, so that no thread runs while nobody looks.
        self._upkeep.look()
        with self._open() as results:
            figures = build_figures(results, scope, brief=True)
        charts = [chart_of(metric) for metric in figures.metrics]
        return self.render(
            request,
            "overview.html",
            figures=figures,
            charts=charts,
            headline=headline(figures.metrics),
            asked=asked,
            query=urlencode({name: value for name, value in asked.items() if value}),
            rest=remaining_turns(figures.funnel) if figures.funnel else [],
        )

    @_told
    def slices(self, request: Request) -> Response:
        """What stands out, as a piece of the overview."""
        try:
            found = self._closer.get(_scope(_asked(request)))
        except ConfigurationError as error:
            return PlainTextResponse(str(error), status_code=400)
        return self.render(
            request,
            "slices.html",
            findings=found.findings,
            slices=found.slices,
            people=found.people,
            at=found.at,
        )

    @_told
    def state(self, request: Request) -> Response:
        """What Monitors and the spool are doing, as a piece of the overview."""
        with self._open() as results:
            found = self._live.now(results)
        return self.render(request, "state.html", state=found)

    @_told
    def turns(self, request: Request) -> Response:
        """The list of turns, newest first."""
        wanted = _filter(request)
        key = _key(request, "before")
        with self._open() as results:
            # One more than is shown tells whether there is an older page.
            rows = results.turns(wanted, before=key, limit=_PAGE + 1)
        asked = {name: value for name, value in asdict(wanted).items() if value}
        shown = rows[:_PAGE]
        older = _link(asked, shown[-1]) if len(rows) > _PAGE else ""
        newest = shown[0].key if shown else (0.0, "")
        return self.render(
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

    @_told
    def new_turns(self, request: Request) -> Response:
        """The turns after a key, as rows of the list."""
        key = _key(request, "time") or (0.0, "")
        with self._open() as results:
            rows = results.turns(_filter(request), after=key, limit=_PAGE)
        newest = rows[0].key if rows else key
        page = environment().get_template("rows.html")
        html = page.render(rows=rows, root=request.scope.get("root_path", ""))
        return JSONResponse({"rows": html, "count": len(rows), "time": repr(newest[0]), "id": newest[1]})

    @_told
    def turn(self, request: Request) -> Response:
        """One turn, with its claims, evidence and labels."""
        record_id = request.query_params.get("id", "")
        found = self._evaluation(record_id)
        if found is None:
            return self.say(request, "There is no turn of this id.", 404)
        return self.render(request, "turn.html", page=turn_page(found, self._labels.of(record_id)))

    @_told
    def session(self, request: Request) -> Response:
        """A conversation in order: its turns, the worst one, and where it turned bad."""
        name = request.query_params.get("id", "")
        with self._open() as results:
            # From the first one on; a page that begins at a place is newest first all the same.
            rows = (
                results.turns(TurnFilter(session=name), after=_FIRST, limit=_PAGE + 1)[::-1] if name else []
            )
            found = [results.evaluation(row.record_id) for row in rows[:_PAGE]]
        if not rows:
            return self.say(request, "There is no evaluated turn of this session.", 404)
        turns = session_page([one for one in found if one is not None])
        return self.render(request, "session.html", session=name, turns=turns, more=len(rows) > _PAGE)

    @_told
    def trace(self, request: Request) -> Response:
        """The turn of a trace, or the list where it has several."""
        # Ids are at most 32 characters; what is longer is looked for in vain, and quickly.
        wanted = TurnFilter(trace=request.path_params["trace_id"][:_LONGEST_FILTER])
        with self._open() as results:
            rows = results.turns(wanted, limit=2)
        root = request.scope.get("root_path", "")
        if not rows:
            return self.say(request, "There is no evaluated turn of this trace.", 404)
        if len(rows) == 1:
            return RedirectResponse(f"{root}/turn?id={quote(rows[0].record_id, safe='')}", status_code=303)
        return RedirectResponse(f"{root}/turns?{urlencode({'trace': wanted.trace})}", status_code=303)

    async def label(self, request: Request) -> Response:
        """Store a label, or take one back (with the value `none`)."""
        if self._read_only:
            return PlainTextResponse("labels are not taken here", status_code=403)
        body = await read_body(request, _LONGEST_LABEL)
        if body is None:
            return PlainTextResponse("this is too long for a label", status_code=413)
        return await run_in_threadpool(self._store, body)

    def _store(self, body: bytes) -> Response:
        try:
            data = json.loads(body)
            names = ("record_id", "metric", "claim", "who")
            what = {name: data.get(name) for name in names}
            taken_back = data.get("value") == "none"
            value: Any = data.get("value")
            if taken_back:
                # Any valid value: what is taken back is told by record, claim and person alone.
                value = "good" if what["claim"] is None else "supported"
            label = Label(**what, value=value, note=data.get("note", ""), labelled_at=time.time())
            found = self._evaluation(label.record_id)
            if found is None or not _has_claim(found, label):
                return PlainTextResponse("there is no such turn or claim", status_code=404)
            if taken_back:
                self._labels.remove(
                    label.record_id, metric=label.metric, claim=label.claim, who=label.who.strip()
                )
            else:
                self._labels.put([label])
            stored = self._labels.of(label.record_id)
        except InvalidRecord as error:
            return PlainTextResponse(str(error), status_code=400)
        except ConfigurationError as error:
            return PlainTextResponse(str(error), status_code=503)
        except (ValueError, TypeError, AttributeError, RecursionError):
            return PlainTextResponse("this is not a label", status_code=400)
        return JSONResponse({"labels": [asdict(one) for one in stored]})

    def login(self, request: Request) -> Response:
        """Where the token is given."""
        if not self._asks_token:
            return RedirectResponse(f"{request.scope.get('root_path', '')}/", status_code=303)
        return self.render(request, "login.html")

    def static(self, request: Request) -> Response:
        """A script or a style; only those of a fixed list."""
        name = request.path_params["name"]
        if name not in STATIC:
            return PlainTextResponse("not found", status_code=404)
        headers = {"cache-control": "public, max-age=3600"}
        return Response(static_file(name), media_type=STATIC[name][1], headers=headers)

    def _evaluation(self, record_id: str) -> Evaluation | None:
        with self._open() as results:
            return results.evaluation(record_id)

    def _open(self) -> closing[ResultsReader]:
        return closing(open_results(self._address))


def _asked(request: Request) -> dict[str, str]:
    return {name: request.query_params.get(name, "")[:_LONGEST_FILTER] for name in ("since", "metric", "tag")}


def _scope(asked: dict[str, str]) -> Scope:
    # To the minute, so that what was found a moment ago is found again.
    since = moment(asked["since"], now=time.time() // 60 * 60)
    return Scope(since=since, metric=asked["metric"] or None, tag=asked["tag"] or None)


def _filter(request: Request) -> TurnFilter:
    given = request.query_params
    values = {field.name: given.get(field.name, "")[:_LONGEST_FILTER] for field in fields(TurnFilter)}
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


def _has_claim(evaluation: Evaluation, label: Label) -> bool:
    if label.claim is None:
        return True
    return any(
        score.metric == label.metric and label.claim < len(score.verdicts) for score in evaluation.scores
    )
