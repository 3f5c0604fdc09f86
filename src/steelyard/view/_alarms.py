"""What is watched, how it stands, and how the evidence of a fall has grown."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from steelyard.alarms import Alarm, AlarmStatus, AlarmWatcher, alarms_from
from steelyard.view._site import Site


def alarms(site: Site, request: Request) -> Response:
    """The alarms of `steelyard.toml`: where each stands, its evidence over time, what was told."""
    given = alarms_from(site.settings.alarm) if site.settings else ()
    file = site.settings.alarm_file if site.settings else ""
    status = _status(given, file)
    return site.render(
        request,
        "alarms.html",
        alarms=given,
        stands=status,
        charts=[_chart(one) for one in status],
    )


def went_off(site: Site) -> list[tuple[float, str]]:
    """When alarms went off, and their names; of those that were told lately."""
    given = alarms_from(site.settings.alarm) if site.settings else ()
    told = [
        one
        for status in _status(given, site.settings.alarm_file if site.settings else "")
        for one in status.messages
    ]
    events = {one.event: (one.created, one.name) for one in told if one.body.get("kind") == "fell"}
    return sorted(events.values())


def _status(given: Sequence[Alarm], file: str) -> list[AlarmStatus]:
    """Where they stand; nothing where no turn has come yet: a look must not make the file."""
    if not given or not Path(file).is_file():
        return []
    with closing(AlarmWatcher(given, file=file)) as watcher:
        return watcher.status()


def _chart(one: AlarmStatus) -> dict[str, Any]:
    return {
        "kind": "evidence",
        "times": [at for at, _ in one.course],
        # On a scale of powers: less than a twentieth of the first stake is as good as none.
        "values": [max(stake, 0.05) for _, stake in one.course],
        "bar": one.bar,
    }
