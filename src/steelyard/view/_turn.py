"""The page of a turn, with the turns before and after it in the list it was opened from."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote, urlencode

from starlette.requests import Request
from starlette.responses import Response

from steelyard.report import ResultsReader, TurnFilter, TurnRow
from steelyard.scores import Evaluation
from steelyard.view._asked import LONGEST, filter_of, pairs_of
from steelyard.view._list import number_of, order_of
from steelyard.view._site import Site
from steelyard.view._turn_view import turn_page

_SESSION: Final = 50
FIRST: Final = (float("-inf"), "")
"""Before every turn."""
_OWN: Final = ("id", "show", "claim", "at")
"""What an address says of the turn itself; the rest is the list it was opened from."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Beside:
    """The turns around one."""

    above: TurnRow | None
    """The one above it in the list."""
    below: TurnRow | None
    """The one below it."""
    at: int | None
    """Its place in the list, from 0, where that is not in order of time."""
    session: tuple[TurnRow, ...]
    """The turns of its conversation, in order; empty if it is alone."""


def turn(site: Site, request: Request) -> Response:
    """One turn, with its claims, evidence and labels."""
    given = request.query_params
    record_id = given.get("id", "")
    with site.open() as results:
        found = results.evaluation(record_id)
        if found is None:
            return site.say(request, "There is no turn of this id.", 404)
        beside = _beside(results, found, request)
    focus = None
    with suppress(ValueError):
        focus = int(given["claim"]) if "claim" in given else None
    page = turn_page(
        found,
        site.labels.of(record_id),
        metric=given.get("show", given.get("metric", ""))[:LONGEST],
        focus=focus,
    )
    listed = [pair for pair in pairs_of(request) if pair[0] not in _OWN]
    return site.render(
        request,
        "turn.html",
        page=page,
        beside=beside,
        listed=urlencode(listed),
        trace=_link(site.trace_url, found),
    )


def _link(template: str, evaluation: Evaluation) -> str:
    """Where the turn's trace is; empty if nobody said, or it has none."""
    if not template or not (evaluation.trace and evaluation.trace.trace_id):
        return ""
    ids = {"trace_id": evaluation.trace.trace_id, "span_id": evaluation.trace.span_id or ""}
    for name, value in {**ids, "record_id": evaluation.record_id}.items():
        template = template.replace(f"{{{name}}}", quote(value, safe=""))
    return template


def _beside(results: ResultsReader, evaluation: Evaluation, request: Request) -> Beside:
    wanted, (by, reverse) = filter_of(request), order_of(request)
    session = _of_session(results, evaluation.session) if evaluation.session else []
    own = tuple(session[:_SESSION]) if len(session) > 1 else ()
    if by:
        at = number_of(request, "at")
        near = results.ranked(wanted, by, reverse=reverse, offset=max(at - 1, 0), limit=3)
        ids = [row.record_id for row in near]
        place = ids.index(evaluation.record_id) if evaluation.record_id in ids else -1
        above = near[place - 1] if place > 0 else None
        below = near[place + 1] if 0 <= place < len(near) - 1 else None
        return Beside(above=above, below=below, at=at, session=own)
    key = (evaluation.at, evaluation.record_id)
    newer = next(iter(results.turns(wanted, after=key, limit=1)), None)
    older = next(iter(results.turns(wanted, before=key, limit=1)), None)
    if reverse:
        newer, older = older, newer
    return Beside(above=newer, below=older, at=None, session=own)


def _of_session(results: ResultsReader, name: str) -> list[TurnRow]:
    # From the first one on; a page that begins at a place is newest first all the same.
    return results.turns(TurnFilter(session=name), after=FIRST, limit=_SESSION + 1)[::-1]
