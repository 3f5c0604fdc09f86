"""The list of turns: narrowed by facets, in the order and with the columns that are asked for."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote, urlencode

from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, RedirectResponse, Response, StreamingResponse

from steelyard.results import ResultsReader
from steelyard.results.queries import Facets, TurnFilter, TurnRow
from steelyard.view._requests import (
    LONGEST,
    Pairs,
    changed,
    filter_of,
    pairs_of,
    parameter_of,
    ranges,
    toggled,
)
from steelyard.view._site import Site, environment
from steelyard.view.labelling import cell

_AT_ONCE: Final = 500
_MOST: Final = 100_000
"""Turns in one file."""
_TURN: Final = ("record_id", "happened_at", "question", "answer", "cause", "session", "cost", "duration")
_FORMS: Final = {"csv": "text/csv; charset=utf-8", "jsonl": "application/x-ndjson"}


def exported(site: Site, request: Request) -> Response:
    """What the list shows, as CSV or JSONL, in its order; 100,000 turns at most."""
    form = request.path_params["form"]
    if form not in _FORMS:
        return PlainTextResponse("not found", status_code=404)
    wanted, (by, reverse) = filter_of(request), order_of(request)
    rows = _rows(site, wanted, by, reverse=reverse)
    with site.open() as results:
        metrics = results.facets(wanted).metrics
    lines = _csv(rows, metrics) if form == "csv" else map(_line, rows)
    headers = {"content-disposition": f'attachment; filename="turns.{form}"'}
    return StreamingResponse(lines, media_type=_FORMS[form], headers=headers)


def _rows(site: Site, wanted: TurnFilter, by: str, *, reverse: bool) -> Iterator[TurnRow]:
    """All turns of a list; the texts are cut as the list cuts them."""
    found: list[TurnRow] = []
    with site.open() as results:
        for number in range(_MOST // _AT_ONCE):
            key = found[-1].key if found else None
            if by:
                found = results.ranked(wanted, by, reverse=reverse, offset=number * _AT_ONCE, limit=_AT_ONCE)
            elif reverse:
                found = results.turns(wanted, after=key or FIRST, limit=_AT_ONCE)[::-1]
            else:
                found = results.turns(wanted, before=key, limit=_AT_ONCE)
            yield from found
            if len(found) < _AT_ONCE:
                return


def _csv(rows: Iterator[TurnRow], metrics: tuple[str, ...]) -> Iterator[str]:
    file = io.StringIO()
    writer = csv.writer(file)
    writer.writerow([*_TURN, *map(cell, metrics)])
    for row in rows:
        values = {metric: value for metric, value, _, _ in row.scores}
        writer.writerow(
            [*(cell(getattr(row, name)) for name in _TURN), *(values.get(name) for name in metrics)]
        )
        yield file.getvalue()
        file.seek(0)
        file.truncate()
    yield file.getvalue()


def _line(row: TurnRow) -> str:
    turn: dict[str, Any] = {name: getattr(row, name) for name in _TURN}
    scores = {
        metric: {"value": value, "passed": passed, "status": status}
        for metric, value, passed, status in row.scores
    }
    return json.dumps({**turn, "attributes": dict(row.attributes), "scores": scores}) + "\n"


_PAGE: Final = 50
_METRICS: Final = 4
"""Columns of metrics that are shown unless others are asked for."""
_TURNS: Final = ("cause", "session", "version", "tag", "cost", "duration")
"""What else can be a column."""
FIRST: Final = (float("-inf"), "")
"""Before every turn."""
_PLACE: Final = ("before", "id", "page")
"""Parameters that say where in the list one is."""
_FACETS: Final = (
    *("metric", "status", "cause", "tag", "version", "route", "tenant", "judge"),
    *("label", "noted", "evidence", "session"),
)
"""In the order in which they are shown; fields of one's own come before the judge."""
_NAMES: Final = {"noted": "notes", "evidence": "passages"}
_OUR_WORDS: Final = ("status", "cause", "label", "evidence")
"""Whose values are words of ours; names of metrics, tags and versions are shown as they are written."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Column:
    """One column of the list."""

    name: str
    """As it stands in an address: `metric:NAME`, or one of the turn."""
    title: str
    """As it stands above the column."""
    sort: str = ""
    """The address that sorts by it; empty where nothing can."""
    sorted: str = ""
    """`ascending`, `descending` or empty."""

    @property
    def metric(self) -> str:
        return self.name.removeprefix("metric:") if self.name.startswith("metric:") else ""


def turns(site: Site, request: Request) -> Response:
    """The list of turns, newest first unless another order is asked for."""
    pairs, wanted, sort = pairs_of(request), filter_of(request), _sort(request)
    with site.open() as results:
        # One more than is shown tells whether there is an older page.
        rows = rows_of(results, request, wanted, limit=_PAGE + 1)
        facets = results.facets(wanted)
    shown = rows[:_PAGE]
    columns = _columns(pairs, facets, sort)
    paged = any(name in _PLACE for name, _ in pairs)
    live = not paged and sort == "time"
    newest = shown[0].key if shown else (0.0, "")
    kept = [pair for pair in pairs if pair[0] not in _PLACE]
    return site.render(
        request,
        "turns.html",
        rows=shown,
        wanted=wanted,
        kept=kept,
        at=number_of(request, "page") * _PAGE if order_of(request)[0] else None,
        list=urlencode(kept),
        columns=columns,
        could_be=[*(f"metric:{name}" for name in facets.metrics), *_TURNS],
        by_time=_column("time", "Began (UTC)", pairs, sort),
        facets=_views(facets, pairs),
        exact=facets.every == 1,
        turns=facets.turns,
        chips=_chips(kept),
        ranges=ranges(kept),
        older=_older(kept, rows, sort, request) if len(rows) > _PAGE else "",
        first=urlencode(kept) if paged else "",
        live=_live(kept, columns, newest) if live else "",
    )


def _live(pairs: Pairs, columns: list[Column], newest: tuple[float, str]) -> str:
    """The query by which the page asks for what is new, in the columns that it has."""
    kept = [pair for pair in pairs if pair[0] != "columns"]
    shown = [("columns", one.name) for one in columns]
    return urlencode([*kept, *shown, ("time", repr(newest[0])), ("id", newest[1])])


def rows_of(results: ResultsReader, request: Request, wanted: TurnFilter, *, limit: int) -> list[TurnRow]:
    """The rows of the page that an address asks for."""
    by, reverse = order_of(request)
    key = _key(request, "before")
    if by:
        offset = number_of(request, "page") * _PAGE
        return results.ranked(wanted, by, reverse=reverse, offset=offset, limit=limit)
    if reverse:
        return results.turns(wanted, after=key or FIRST, limit=limit)[::-1]
    return results.turns(wanted, before=key, limit=limit)


def order_of(request: Request) -> tuple[str, bool]:
    """What the list is ranked by, empty for the time, and whether it is the other way round."""
    sort = _sort(request)
    by = sort.removeprefix("-")
    return "" if by == "time" else by.removeprefix("metric:"), sort.startswith("-")


def new_turns(site: Site, request: Request) -> Response:
    """The turns after a key, as rows of the list."""
    key = _key(request, "time") or (0.0, "")
    pairs = [pair for pair in pairs_of(request) if pair[0] not in ("time", "id")]
    with site.open() as results:
        rows = results.turns(filter_of(request), after=key, limit=_PAGE)
    newest = rows[0].key if rows else key
    page = environment().get_template("rows.html")
    columns = [_column(name, "", pairs, "time") for name in _asked_columns(pairs)]
    root = request.scope.get("root_path", "")
    html = page.render(rows=rows, columns=columns, root=root, list=urlencode(pairs), at=None)
    return JSONResponse({"rows": html, "count": len(rows), "time": repr(newest[0]), "id": newest[1]})


def trace(site: Site, request: Request) -> Response:
    """The turn of a trace, or the list where it has several."""
    # Ids are at most 32 characters; what is longer is looked for in vain, and quickly.
    wanted = TurnFilter(trace=request.path_params["trace_id"][:LONGEST])
    with site.open() as results:
        rows = results.turns(wanted, limit=2)
    root = request.scope.get("root_path", "")
    if not rows:
        return site.say(request, "There is no evaluated turn of this trace.", 404)
    if len(rows) == 1:
        return RedirectResponse(f"{root}/turn?id={quote(rows[0].record_id, safe='')}", status_code=303)
    return RedirectResponse(f"{root}/turns?{urlencode({'trace': wanted.trace})}", status_code=303)


def _sort(request: Request) -> str:
    """`time`, `cost`, `duration` or `metric:NAME`, with a minus for the other way round."""
    asked = request.query_params.get("sort", "")[:LONGEST]
    by = asked.removeprefix("-")
    return asked if by in ("time", "cost", "duration") or by.startswith("metric:") else "time"


def _key(request: Request, name: str) -> tuple[float, str] | None:
    try:
        return float(request.query_params[name]), request.query_params.get("id", "")
    except (KeyError, ValueError):
        return None


def number_of(request: Request, name: str) -> int:
    """A whole number out of an address; 0 where it is none."""
    try:
        return min(max(int(request.query_params[name]), 0), 100_000)
    except (KeyError, ValueError):
        return 0


def _older(pairs: Pairs, rows: list[TurnRow], sort: str, request: Request) -> str:
    if sort.removeprefix("-") != "time":
        return changed(pairs, page=str(number_of(request, "page") + 1))
    last = rows[_PAGE - 1]
    return changed(pairs, before=repr(last.happened_at), id=last.record_id)


def _asked_columns(pairs: Pairs) -> list[str]:
    return [value for name, value in pairs if name == "columns"]


def _columns(pairs: Pairs, facets: Facets, sort: str) -> list[Column]:
    names = _asked_columns(pairs)
    if not names:
        chosen = [value for name, value in pairs if name == "metric"]
        metrics = [*chosen, *(one for one in facets.metrics if one not in chosen)][:_METRICS]
        names = [*(f"metric:{one}" for one in metrics), "cause"]
    by = sort.removeprefix("-")
    if by.startswith("metric:") and by not in names:
        names.insert(0, by)
    return [
        _column(name, name.removeprefix("metric:"), pairs, sort)
        for name in names
        if name in _TURNS or name.startswith("metric:")
    ]


def _column(name: str, title: str, pairs: Pairs, sort: str) -> Column:
    if len(name) > LONGEST or (name not in ("time", "cost", "duration") and not name.startswith("metric:")):
        return Column(name=name, title=title)
    other = f"-{name}" if sort == name else name
    direction = {name: "descending", f"-{name}": "ascending"}.get(sort, "")
    if name.startswith("metric:") and direction:
        direction = {"descending": "ascending", "ascending": "descending"}[direction]  # the worst come first
    address = changed(pairs, drop=_PLACE, sort="" if other == "time" else other)
    return Column(name=name, title=title, sort=address, sorted=direction)


def _views(facets: Facets, pairs: Pairs) -> list[dict[str, Any]]:
    """The facets beside the list; of each, the values that are asked for come first, then by number."""
    kept = [pair for pair in pairs if pair[0] not in _PLACE]
    found: Mapping[str, Mapping[str, int]] = {one.name: one.counts for one in facets.facets}
    order = {name: place for place, name in enumerate(_FACETS)}
    views = []
    for name in sorted(found, key=lambda one: order.get(one, order["judge"] - 0.5)):
        parameter = parameter_of(name)
        if '"' in name or len(parameter) > LONGEST:
            continue  # no address can ask for it
        choices: list[dict[str, Any]] = [
            {
                "value": _shown(name, value),
                "turns": count,
                "address": toggled(kept, parameter, value),
                "chosen": (parameter, value) in kept,
            }
            for value, count in found[name].items()
            if len(value) <= LONGEST
        ]
        choices.sort(key=lambda one: (not one["chosen"], -one["turns"]))
        if choices:
            views.append({"title": _NAMES.get(name, name), "parameter": parameter, "choices": choices})
    return views


def _chips(pairs: Pairs) -> list[tuple[str, str, str]]:
    return [
        (_NAMES.get(name, name.removeprefix("in.")), _shown(name, value), toggled(pairs, name, value))
        for name, value in pairs
        if name not in ("sort", "columns", *_PLACE)
    ]


def _shown(name: str, value: str) -> str:
    return value.replace("_", " ") if name in _OUR_WORDS else value
