"""From an address to what it asks for, and back: every state of a page is an address."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final
from urllib.parse import urlencode

from starlette.requests import Request

from steelyard.errors import ConfigurationError
from steelyard.report.period import moment
from steelyard.results.queries import CHOSEN, STATUSES, TurnFilter

LONGEST: Final = 1_000
"""Characters of a value in an address, as many as a tag has at most."""
_MOST: Final = 20
"""Values of one name."""
_OWN: Final = "in."
"""Stands before the name of a field of one's own."""
_RANGES: Final = (("24h", "24 hours"), ("7d", "7 days"), ("30d", "30 days"), ("", "All"))
"""Lengths of time to choose from."""

Pairs = Sequence[tuple[str, str]]
"""The parameters of an address, in order; a name may come several times."""


class AskedWrongly(ConfigurationError):
    """An address asks for what cannot be."""


def pairs_of(request: Request) -> Pairs:
    """The parameters, cut to size, without empty ones."""
    given = request.query_params.multi_items()
    return [(name[:LONGEST], value[:LONGEST]) for name, value in given if value][: 10 * _MOST]


def filter_of(request: Request) -> TurnFilter:
    """Which turns an address asks for."""
    pairs = pairs_of(request)
    values: dict[str, Any] = {name: _chosen(pairs, name) for name in CHOSEN}
    for name in ("text", "trace"):
        values[name] = dict(pairs).get(name, "")
    since, until = times_of(dict(pairs))
    where = [(name.removeprefix(_OWN), value) for name, value in pairs if name.startswith(_OWN)]
    if any('"' in name for name, _ in where):
        raise AskedWrongly("the name of a metadata field holds no quotation mark here")
    return TurnFilter(
        **values, where=tuple(where[:_MOST]), noted="noted" in dict(pairs), since=since, until=until
    )


def _chosen(pairs: Pairs, field: str) -> str | tuple[str, ...]:
    chosen = tuple(dict.fromkeys(value for name, value in pairs if name == field))[:_MOST]
    if field == "status":  # conditions are chosen by it
        chosen = tuple(one for one in chosen if one in STATUSES)
    return chosen[0] if len(chosen) == 1 else chosen


def times_of(asked: Mapping[str, str]) -> tuple[float | None, float | None]:
    """Since when and until when."""
    # To the minute, so that what was found a moment ago is found again.
    now = time.time() // 60 * 60
    try:
        since, until = (moment(asked.get(name, ""), now=now) for name in ("since", "until"))
    except ConfigurationError as error:
        raise AskedWrongly(str(error)) from None
    return since, until


def parameter_of(name: str) -> str:
    """How a facet is named in an address."""
    return name if name in (*CHOSEN, "noted") else f"{_OWN}{name}"


def of_metric(name: str) -> Pairs:
    """The parameters of a metric's turns, the worst first; none of a name too long for an address."""
    sort = f"metric:{name}"
    return [("metric", name), ("sort", sort)] if len(sort) <= LONGEST else []


def changed(pairs: Pairs, *, drop: Iterable[str] = (), **values: str) -> str:
    """The query of an address with some parameters left out, and others set; empty ones are left out."""
    left = {*drop, *values}
    kept = [pair for pair in pairs if pair[0] not in left]
    return urlencode([*kept, *((name, value) for name, value in values.items() if value)])


def toggled(pairs: Pairs, name: str, value: str) -> str:
    """The query of an address with a value more, or without one that was there."""
    pair = (name, value)
    left = [one for one in pairs if one != pair]
    return urlencode(left if len(left) < len(pairs) else [*pairs, pair])


def ranges(pairs: Pairs) -> list[tuple[str, str, bool]]:
    """Lengths of time: name, address, and whether it is the one that is asked for."""
    asked = dict(pairs)
    return [
        (
            name,
            changed(pairs, drop=("until",), since=length),
            (asked.get("since", ""), "until" in asked) == (length, False),
        )
        for length, name in _RANGES
    ]


def in_address(at: float) -> str:
    """A Unix time as an address has it, to the second in UTC."""
    return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%dT%H:%M:%S}"
