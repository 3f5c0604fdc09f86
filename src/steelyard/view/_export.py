"""The list of turns as a file: what the address asks for, all pages of it."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse

from steelyard.report import TurnFilter, TurnRow
from steelyard.view._asked import filter_of
from steelyard.view._list import order_of
from steelyard.view._site import Site
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
                found = results.turns(wanted, after=key or (float("-inf"), ""), limit=_AT_ONCE)[::-1]
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
