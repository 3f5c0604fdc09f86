"""The list of conversations; and one of them: turns in order, the worst of them, and where it turned bad."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import Response

from steelyard.results.looks import ORDERS, Order
from steelyard.results.queries import TurnFilter, of_session
from steelyard.scores import Evaluation, Score
from steelyard.view._list import FIRST
from steelyard.view._site import Site

_PAGE = 50
_MOST_PAGES: Final = 10_000
_METRICS = 6
"""Columns of metrics: more would not fit."""


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


def session(site: Site, request: Request) -> Response:
    """A conversation in order: its turns, the worst one, and where it turned bad."""
    name = request.query_params.get("id", "")
    with site.open() as results:
        # Who leaves the tenant out is shown the one who spoke last.
        last = results.turns(TurnFilter(session=name), limit=1) if name else []
        latest = next(filter(None, (results.evaluation(row.record_id) for row in last)), None)
        tenant = request.query_params.get("tenant", (latest and latest.tenant) or "")
        # From the first one on; a page that begins at a place is newest first all the same.
        rows = results.turns(of_session(name, tenant), after=FIRST, limit=_PAGE + 1)[::-1] if name else []
        found = [results.evaluation(row.record_id) for row in rows[:_PAGE]]
    if not rows:
        return site.say(request, "There is no evaluated turn of this session.", 404)
    turns = session_page([one for one in found if one is not None])
    metrics = list(dict.fromkeys(score.metric for one in turns for score in one["evaluation"].scores))
    return site.render(
        request,
        "session.html",
        session=name,
        tenant=tenant,
        turns=turns,
        metrics=metrics[:_METRICS],
        more=len(rows) > _PAGE,
    )


def session_page(turns: Sequence[Evaluation]) -> list[dict[str, Any]]:
    """The turns of a conversation, in order, with its worst one and the one that it turned bad at."""
    passed = [_passed(turn) for turn in turns]
    lowest = min(
        (_quality(turn) for turn, good in zip(turns, passed, strict=True) if good is False), default=None
    )
    worst = next((place for place, turn in enumerate(turns) if _quality(turn) == lowest), None)
    bad = turning_point(passed)
    return [
        {"evaluation": turn, "is_worst": place == worst, "turned_bad": place == bad}
        for place, turn in enumerate(turns)
    ]


def turning_point(passed: Sequence[bool | None]) -> int | None:
    """The place from which on most turns did not pass, None if there is none.

    It is the cut that leaves the least squares around the shares that passed on both sides (Bai, Journal of
    Time Series Analysis 15, 1994). No probability is given: a conversation has few turns. A turn without a
    score that has a threshold is None.
    """
    known = [(place, good) for place, good in enumerate(passed) if good is not None]
    best, least = None, float("inf")
    for cut in range(len(known)):
        before, after = [good for _, good in known[:cut]], [good for _, good in known[cut:]]
        worse = not before or sum(after) / len(after) < sum(before) / len(before)
        squares = _squares(before) + _squares(after)
        if worse and sum(after) < len(after) / 2 and squares < least:
            best, least = known[cut][0], squares
    return best


def _squares(passed: Sequence[bool]) -> float:
    return sum(passed) * (1 - sum(passed) / len(passed)) if passed else 0.0


def _passed(turn: Evaluation) -> bool | None:
    known = [score.passed for score in turn.scores if score.passed is not None]
    return all(known) if known else None


def _quality(turn: Evaluation) -> float:
    return min((_better(score) for score in turn.scores if score.passed is False), default=float("inf"))


def _better(score: Score) -> float:
    assert score.value is not None
    return score.value if score.direction == "higher" else -score.value
