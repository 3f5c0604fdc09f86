"""Two versions, judges, tags or times side by side."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Final
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import Response

from steelyard._internal.text import shorten
from steelyard.errors import ConfigurationError
from steelyard.report.compare import Compared, Side, compare
from steelyard.report.period import moment
from steelyard.results import ResultsReader
from steelyard.results.queries import Scope
from steelyard.view._requests import LONGEST
from steelyard.view._site import Site

_KINDS: Final = {
    "version": "versions",
    "time": "times",
    "judge": "judges",
    "tag": "tags",
    "route": "routes",
    "framework": "frameworks",
}
_LISTED: Final = ("version", "judge", "tag", "route")
"""What the list of turns can be cut to."""
_TIMES: Final = {"a_since": "14d", "a_until": "7d", "b_since": "7d", "b_until": ""}
"""The week before this one, and this one."""


def compared(site: Site, request: Request) -> Response:
    """Two groups, the difference of each metric with its interval, and the turns that moved most."""
    asked = {name: value[:LONGEST] for name, value in request.query_params.items()}
    with site.open() as results:
        by, groups = _groups(results, asked)
        asked = _filled(asked, by, groups)
        try:
            first, second = (_side(asked, by, name) for name in "ab")
        except ConfigurationError as error:
            return site.say(request, str(error), 400)
        ready = by == "time" or bool(asked["a"] and asked["b"])
        metric = asked.get("metric", "")
        metrics, moved = compare(results, first, second, metric=metric) if ready else ((), ())
    return site.render(
        request,
        "compare.html",
        by=by,
        kinds=_KINDS,
        groups=groups,
        asked=asked,
        names=_names(asked, by),
        links=[urlencode({by: asked[name]}) if by in _LISTED else "" for name in "ab"],
        ready=ready,
        metrics=metrics,
        moved=moved,
        said=headline(metrics),
        reach=max((max(abs(one.difference.low), abs(one.difference.high)) for one in metrics), default=1.0),
    )


def headline(metrics: Sequence[Compared]) -> str:
    """What differs, in a sentence; empty of nothing to compare."""
    if not metrics:
        return ""
    clear = [one for one in metrics if one.difference.clear]
    if not clear:
        return "No metric clearly differs."
    said = [
        f"{shorten(one.metric, 60)} is {abs(one.difference.value):.2f} "
        f"{'lower' if one.difference.value < 0 else 'higher'} ({'worse' if one.worse else 'better'})"
        for one in clear[:3]
    ]
    rest = len(metrics) - len(clear)
    more = f", {len(clear) - 3} more differ" if len(clear) > 3 else ""
    return f"{', '.join(said)}{more}{f'; {rest} cannot be told apart' if rest else ''}."


def _groups(results: ResultsReader, asked: Mapping[str, str]) -> tuple[str, list[str]]:
    """What is compared, and the groups there are; versions if there are two, else times."""
    by = asked.get("by", "")
    if by == "time":
        return by, []
    if by in _KINDS:
        return by, results.groups_seen(by)
    versions = results.groups_seen("version")
    return ("version", versions) if len(versions) > 1 else ("time", [])


def _filled(asked: Mapping[str, str], by: str, groups: Sequence[str]) -> dict[str, str]:
    """What was asked, and what is compared where nothing was: the latest two groups, the latest two weeks."""
    filled = dict(asked)
    if by == "time":
        given = any(filled.get(name) for name in _TIMES)
        return {**filled, **{name: filled.get(name, "") if given else _TIMES[name] for name in _TIMES}}
    # Of another kind than before: its groups are none of this kind.
    if filled.get("was", by) != by:
        filled |= {"a": "", "b": ""}
    filled["b"] = filled.get("b") or next(iter(groups), "")
    others = [one for one in groups if one != filled["b"]]
    filled["a"] = filled.get("a") or next(iter(others), "")
    return filled


def _side(asked: Mapping[str, str], by: str, name: str) -> Side:
    if by != "time":
        return Side(by=by, value=asked[name])
    now = time.time()
    since, until = (moment(asked[f"{name}_{end}"], now=now) for end in ("since", "until"))
    return Side(scope=Scope(since=since, until=until))


def _names(asked: Mapping[str, str], by: str) -> list[str]:
    if by != "time":
        return [shorten(asked[name], 60) for name in "ab"]
    return [f"{asked[f'{name}_since'] or 'first'} to {asked[f'{name}_until'] or 'now'}" for name in "ab"]
