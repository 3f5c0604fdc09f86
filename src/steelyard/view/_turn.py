"""The page of a turn, with the turns before and after it in the list it was opened from."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, fields
from typing import Final
from urllib.parse import quote, urlencode

from starlette.requests import Request
from starlette.responses import Response

from steelyard.report import ResultsReader, TurnFilter, TurnRow
from steelyard.report.queries import STATUSES
from steelyard.scores import Evaluation
from steelyard.view._site import Site
from steelyard.view._turn_view import turn_page

_LONGEST: Final = 200
_SESSION: Final = 50
FIRST: Final = (float("-inf"), "")
"""Before every turn."""
_OWN: Final = ("id", "show", "claim")
"""What an address says of the turn itself; the rest is the list it was opened from."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Beside:
    """The turns around one."""

    newer: TurnRow | None
    """The one above it in the list."""
    older: TurnRow | None
    """The one below it."""
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
        beside = _beside(results, found, filter_of(given))
    focus = None
    with suppress(ValueError):
        focus = int(given["claim"]) if "claim" in given else None
    page = turn_page(
        found,
        site.labels.of(record_id),
        metric=given.get("show", given.get("metric", ""))[:_LONGEST],
        focus=focus,
    )
    listed = {name: value[:_LONGEST] for name, value in given.items() if name not in _OWN and value}
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


def filter_of(given: Mapping[str, str]) -> TurnFilter:
    """The turns that an address asks for."""
    values = {field.name: given.get(field.name, "")[:_LONGEST] for field in fields(TurnFilter)}
    status = values.pop("status")
    # Taken from the fixed list, since conditions are chosen by it.
    return TurnFilter(**values, status=next((one for one in STATUSES if one == status), ""))


def _beside(results: ResultsReader, evaluation: Evaluation, wanted: TurnFilter) -> Beside:
    key = (evaluation.at, evaluation.record_id)
    session = _of_session(results, evaluation.session) if evaluation.session else []
    return Beside(
        newer=next(iter(results.turns(wanted, after=key, limit=1)), None),
        older=next(iter(results.turns(wanted, before=key, limit=1)), None),
        session=tuple(session[:_SESSION]) if len(session) > 1 else (),
    )


def _of_session(results: ResultsReader, name: str) -> list[TurnRow]:
    # From the first one on; a page that begins at a place is newest first all the same.
    return results.turns(TurnFilter(session=name), after=FIRST, limit=_SESSION + 1)[::-1]
