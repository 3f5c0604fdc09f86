"""Figures as one HTML file that needs no network and runs nothing but its own script."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from steelyard._internal.text import shorten, utc, visible
from steelyard.errors import MissingDependency
from steelyard.report._people import describe_agreement
from steelyard.report.figures import MetricFigure, ReportFigures
from steelyard.report.lights import change_words, lights_of, verdict_of
from steelyard.report.turn import (
    bounds_words,
    evidence_words,
    remaining_turns,
    shown_words,
    turn_view,
    words,
    worth_words,
)

if TYPE_CHECKING:
    from jinja2 import Environment


def render_html(figures: ReportFigures) -> str:
    """The page, as text.

    Judged text is escaped, and characters that steer direction or control are replaced. A content security
    policy allows the page's own style and script by their hashes, and nothing else.

    Raises:
        MissingDependency: If Jinja2 is not installed.
    """
    lights = lights_of(figures.metrics, figures.findings)
    script = _static("uPlot.iife.min.js") + "\n" + _static("report.js")
    style = _static("uPlot.min.css") + "\n" + _static("steelyard.css")
    policy = (
        f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(style)}'; "
        "base-uri 'none'; form-action 'none'"
    )
    return (
        _environment()
        .get_template("report.html")
        .render(
            figures=figures,
            lights=lights,
            verdict=verdict_of(lights),
            charts=[chart_of(metric) for metric in figures.metrics],
            turns={
                worst.metric: [turn_view(turn, worst.metric) for turn in worst.turns]
                for worst in figures.worst
            },
            groups=_groups(figures),
            shown=shown_words(figures.metrics),
            rest=remaining_turns(figures.funnel) if figures.funnel else [],
            script=script,
            style=style,
            policy=policy,
        )
    )


def _groups(figures: ReportFigures) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {}
    for one in figures.groups:
        found.setdefault(one.metric, []).append(one)
    return found


def chart_of(metric: MetricFigure) -> dict[str, Any]:
    """What `report.js` draws a metric from."""
    estimates = [point.estimate for point in metric.points]
    shift = metric.change if metric.change and metric.change.difference.clear else None
    return {
        "times": [point.time for point in metric.points],
        # Finer than a pixel of the chart; all digits would double the file.
        "mean": [round(one.value, 4) for one in estimates],
        "low": [round(one.low, 4) for one in estimates],
        "high": [round(one.high, 4) for one in estimates],
        "n": [one.n for one in estimates],
        "smooth": [round(value, 4) for value in metric.smooth],
        "threshold": metric.threshold,
        "change": None if shift is None else {"time": shift.since, "worse": shift.worse},
        "shares": [round(share, 5) for share in metric.shares],
    }


@cache
def _static(name: str) -> str:
    return (files("steelyard.report") / "static" / name).read_text(encoding="utf-8").strip()


def _hash(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


@cache
def _environment() -> Environment:
    return templates("steelyard.report", amount=_amount, when=_when, safe_text=visible)


def templates(*rooms: str, **filters: Callable[..., Any]) -> Environment:
    """The templates of some rooms, the first that has one; every value is escaped."""
    try:
        from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
    except ImportError:
        raise MissingDependency("jinja2", extra="report") from None
    made = Environment(
        loader=ChoiceLoader([PackageLoader(room, "templates") for room in rooms]),
        autoescape=True,
        # A misspelt name fails in a test instead of leaving a gap in a page.
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    shared = {"words": words, "signed": _signed, "line": shorten, "people": describe_agreement}
    said = {"change": change_words, "evidence": evidence_words, "bounds": bounds_words, "worth": worth_words}
    made.filters.update({**shared, **said, **filters})
    return made


def _amount(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"


def _signed(value: float) -> str:
    # The typographic minus is as wide as the plus, so columns stay aligned.
    return f"{value:+.3f}".replace("-", "−")


def _when(time: float | None) -> str:
    return "–" if time is None else utc(time, "%Y-%m-%d %H:%M")
