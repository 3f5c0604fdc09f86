"""The first page: is it fine, what changed, since when, where and why; then every metric on one time axis."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, Final
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import Response

from steelyard.report import build_figures
from steelyard.report.figures import MetricFigure, ReportFigures
from steelyard.report.html import chart_of
from steelyard.report.lights import Light, MetricNews, lights_of, verdict_of
from steelyard.results.queries import Scope
from steelyard.view._live import went_off
from steelyard.view._requests import (
    Pairs,
    changed,
    in_address,
    of_metric,
    pairs_of,
    parameter_of,
    ranges,
    times_of,
)
from steelyard.view._site import Closer, Site

_ASKED: Final = ("since", "until", "metric", "tag")
_PATIENCE: Final = 0.15
"""Seconds that a page waits for a closer look; small files need no more."""
_A_CLOSER_LOOK: Final = 60.0
_MARKS: Final = 12
"""Deploys that are marked, the latest ones: more lines than that say nothing."""


def overview(site: Site, request: Request) -> Response:
    """A light and a sentence for each metric, and their charts, over a time."""
    pairs, scope = _asked(request)
    closer = site.closer.get(tuple(pairs), scope, wait=_PATIENCE)
    with site.open() as results:
        figures = build_figures(results, scope, brief=True)
        marks = results.marks(scope, width=figures.width, deploys=_MARKS)
        state = site.live.now(results)
    alarms = [one for one in went_off(site) if (scope.since or 0) <= one[0] < (scope.until or 1e300)]
    labelled = sum(count for _, count in marks.labels)
    return site.render(
        request,
        "overview.html",
        **_answer(request, figures.metrics, closer, pairs),
        figures=figures,
        charts={"metrics": [chart_of(one) for one in figures.metrics], **asdict(marks), "alarms": alarms},
        marks=marks,
        alarms=alarms,
        labelled=labelled,
        axis=_axis(figures, scope),
        chips=_chips(pairs),
        ranges=ranges(pairs),
        query=urlencode(pairs),
        turns_of=lambda metric: urlencode([*of_metric(metric), *_without_metric(pairs)]),
        kept=urlencode(_without_metric(pairs)),
        state=state,
    )


def closer_look(site: Site, request: Request) -> Response:
    """What a closer look finds, as the pieces of the overview that it fills."""
    pairs, scope = _asked(request)
    closer = site.closer.get(tuple(pairs), scope, wait=_A_CLOSER_LOOK)
    metrics = closer.metrics if closer else ()
    return site.render(request, "closer.html", **_answer(request, metrics, closer, pairs))


def state(site: Site, request: Request) -> Response:
    """What Monitors and the spool are doing, as a piece of the overview."""
    with site.open() as results:
        found = site.live.now(results)
    return site.render(request, "state.html", state=found)


def _asked(request: Request) -> tuple[Pairs, Scope]:
    pairs = [pair for pair in pairs_of(request) if pair[0] in _ASKED]
    asked = dict(pairs)
    since, until = times_of(asked)
    return pairs, Scope(since=since, until=until, metric=asked.get("metric"), tag=asked.get("tag"))


def _answer(
    request: Request, metrics: tuple[MetricFigure, ...], closer: Closer | None, pairs: Pairs
) -> dict[str, Any]:
    lights = lights_of(metrics, closer.findings if closer else ())
    root = request.scope.get("root_path", "")

    def to(light: Light, told: MetricNews) -> str:
        return f"{root}/turns?{_turns_of(light, told, pairs)}"

    return {"lights": lights, "verdict": verdict_of(lights), "closer": closer, "to": to}


def _turns_of(light: Light, told: MetricNews, pairs: Pairs) -> str:
    """The list of what is told: those turns alone, since then, the worst first."""
    kept = [*_without_metric(pairs)]
    if told.since is not None:
        kept = [*(pair for pair in kept if pair[0] != "since"), ("since", in_address(told.since))]
    # Clusters of questions are made while looking; nothing in the results tells which turns they hold.
    if told.slice is not None and told.slice[0] != "questions about":
        kept.append((parameter_of(told.slice[0]), told.slice[1]))
    return urlencode([*kept, *of_metric(light.metric.metric)])


def _axis(figures: ReportFigures, scope: Scope) -> tuple[float, float]:
    first, last = figures.totals.first or 0.0, figures.totals.last or 0.0
    width = figures.width
    return scope.since or first // width * width, scope.until or (last // width + 1) * width


def _chips(pairs: Pairs) -> list[tuple[str, str, str]]:
    asked = dict(pairs)
    found: list[tuple[str, str, str]] = []
    if "until" in asked:
        shown = " to ".join(asked.get(name, "")[:16].replace("T", " ") for name in ("since", "until"))
        found.append(("time", shown, changed(pairs, since="", until="")))
    narrowed = [name for name in ("metric", "tag") if name in asked]

    found += [(name, asked[name], changed(pairs, drop=(name,))) for name in narrowed]
    return found


def _without_metric(pairs: Pairs) -> Pairs:
    return [pair for pair in pairs if pair[0] != "metric"]
