"""A month of an application's traffic, drawn at random, with an incident in one slice or none."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from steelyard.stats import Sample

Array = npt.NDArray[np.float64]
DAY = 86400.0
MONDAY = 1_759_708_800.0
METRICS = ("faithfulness", "answer_relevancy", "context_relevance")
_NORMAL = NormalDist()


@dataclass(frozen=True)
class Incident:
    """What happens: one metric falls in one slice, from one day on."""

    metric: str
    attribute: str
    value: str
    day: int
    fall: float


@dataclass(frozen=True)
class Month:
    """The judged turns of four weeks."""

    times: Array
    sessions: npt.NDArray[np.intp]
    inclusion: Array
    columns: dict[str, list[str | None]] = field(repr=False)
    values: dict[str, Array] = field(repr=False)
    incident: Incident | None
    power: float
    """With which probability somebody who knows slice and moment, and looks at all slices of all metrics
    (Bonferroni), finds the incident."""


def month(seed: int, *, incident: bool, days: int = 28) -> Month:
    """Draw a month: weekly cycles, sessions that are alike, a sample, a judge that is weak in a language."""
    draw = np.random.default_rng(seed)
    a_day, size, alike = draw.integers(60, 400), draw.choice([1, 3, 6]), draw.uniform(0.02, 0.25)
    sessions = np.repeat(np.arange(a_day * days), draw.geometric(1 / size, a_day * days))[: a_day * days]
    number = int(sessions[-1]) + 1
    begin = np.sort(draw.choice(days, number, p=_weekly(draw, days)) + draw.random(number))
    place = np.arange(len(sessions)) - np.searchsorted(sessions, sessions)
    at = begin[sessions] + place * 90 / DAY
    by_session = {
        "tenant": _values(draw, number, "t", 8),
        "language": draw.choice(["en", "de", "ja"], number, p=[0.7, 0.2, 0.1]).astype(object),
        "route": _values(draw, number, "r", 4),
        "tag": _values(draw, number, "g", 5),
    }
    # One tenant speaks a language of its own, and comes by a tag of its own: the same turns by three names.
    own = by_session["tenant"] == "t3"
    by_session["language"][own], by_session["tag"][own] = "fi", "pilot"
    columns = {name: column[sessions] for name, column in by_session.items()}
    columns["topic"] = _values(draw, len(at), "q", 7)
    picked = draw.random(len(at)) < (rate := float(draw.choice([1.0, 1.0, 0.5, 0.25])))
    happened = _incident(draw, columns, days) if incident else None
    values, power = {}, 0.0
    for metric in METRICS:
        level = draw.uniform(0.75, 0.95) + draw.uniform(0, 0.04) * np.sin(2 * np.pi * at / 7)
        nu = 1 / alike - 1
        rate_of = draw.beta(np.clip(level, 0.02, 0.98) * nu, np.clip(1 - level, 0.02, 0.98) * nu)
        rate_of = rate_of[np.searchsorted(sessions, sessions)] - 0.2 * (columns["language"] == "ja")
        if happened is not None and happened.metric == metric:
            hit = (columns[happened.attribute] == happened.value) & (at >= happened.day)
            inside = (columns[happened.attribute] == happened.value) & picked
            power = _power(happened.fall, inside & ~hit, inside & hit, sessions, float(level.mean()), alike)
            rate_of = np.where(hit, rate_of - happened.fall, rate_of)
        rate_of = np.clip(rate_of, 0, 1)
        values[metric] = (draw.random(len(at)) < rate_of).astype(float)
        if metric == METRICS[1]:  # graded, as means of a few verdicts are
            values[metric] = draw.binomial(4, rate_of) / 4
    order = np.flatnonzero(picked)
    return Month(
        times=MONDAY + DAY * at[order],
        sessions=sessions[order],
        inclusion=np.full(len(order), rate),
        columns={name: column[order].tolist() for name, column in columns.items()},
        values={name: found[order] for name, found in values.items()},
        incident=happened,
        power=power,
    )


def _weekly(draw: np.random.Generator, days: int) -> Array:
    """Fewer turns at weekends."""
    share = np.where(np.arange(days) % 7 >= 5, draw.uniform(0.3, 1), 1.0)
    shares: Array = share / share.sum()
    return shares


def _values(draw: np.random.Generator, count: int, name: str, most: int) -> npt.NDArray[np.object_]:
    shares = draw.dirichlet(np.full(most, 1.5))
    return np.array([f"{name}{one}" for one in draw.choice(most, count, p=shares)], dtype=object)


def _incident(
    draw: np.random.Generator, columns: dict[str, npt.NDArray[np.object_]], days: int
) -> Incident | None:
    """One slice of 2 to 20 % of the traffic, any day but the first and the last."""
    choices = [
        (name, str(value))
        for name, column in columns.items()
        for value in sorted(set(column))
        if 0.02 <= float(np.mean(column == value)) <= 0.2
    ]
    attribute, value = choices[draw.integers(len(choices))]
    return Incident(
        str(draw.choice(METRICS)), attribute, value, int(draw.integers(1, days)), draw.uniform(0.1, 0.5)
    )


def _power(
    fall: float,
    before: npt.NDArray[np.bool_],
    after: npt.NDArray[np.bool_],
    sessions: npt.NDArray[np.intp],
    level: float,
    alike: float,
) -> float:
    if not before.any() or not after.any():
        return 0.0
    variance = 0.0
    for where, mean in ((before, level), (after, max(level - fall, 0.02))):
        sizes = np.bincount(sessions[where]).astype(float)
        turns = sizes.sum()
        # Of turns that are zeros and ones; graded ones vary less, and are found more easily.
        variance += mean * (1 - mean) * (turns + alike * (sizes @ sizes - turns)) / turns**2
    looks = 31 * len(METRICS)
    bar = _NORMAL.inv_cdf(1 - 0.05 / looks / 2)
    return _NORMAL.cdf(fall / math.sqrt(variance) - bar)


COMPONENTS = ("prompt", "model", "index", "code")


@dataclass(frozen=True)
class Deployed:
    """Judged turns of a fortnight in which a metric falls."""

    sample: Sample
    times: Array
    versions: dict[str, list[str | None]]
    guilty: str | None
    """The component whose version did it; None if something that no version tells did."""


def deployed(seed: int, *, turns: int = 500) -> Deployed:
    """Draw a fortnight: up to four components change on days of their own, at once or slowly."""
    draw = np.random.default_rng(seed)
    sessions = np.repeat(np.arange(turns), draw.geometric(0.5, turns))[:turns]
    times = np.sort(draw.uniform(0, 14, int(sessions[-1]) + 1))[sessions]
    guilty = COMPONENTS[draw.integers(4)] if draw.random() < 0.8 else None
    worse = times >= draw.uniform(2, 12)
    versions: dict[str, list[str | None]] = {}
    for component in COMPONENTS:
        if component != guilty and draw.random() < 0.4:
            versions[component] = ["1"] * turns
            continue
        start, takes = draw.uniform(2, 12), draw.choice([0.0, 0.0, 1.0, 3.0])
        done = np.clip((times - start) / takes, 0, 1) if takes else (times >= start).astype(float)
        new = draw.random(int(sessions[-1]) + 1)[sessions] < done
        versions[component] = np.where(new, "2", "1").tolist()
        if component == guilty:
            worse = new
    rates = draw.beta(0.9 * 9, 0.1 * 9, int(sessions[-1]) + 1)[sessions]
    rates = np.clip(rates - draw.uniform(0.2, 0.5) * worse, 0, 1)
    values = (draw.random(turns) < rates).astype(float)
    order = np.argsort(times, kind="stable")
    return Deployed(
        sample=Sample(values=values[order], weights=np.ones(turns), units=sessions[order].astype(np.int64)),
        times=MONDAY + DAY * times[order],
        versions={name: [column[at] for at in order] for name, column in versions.items()},
        guilty=guilty,
    )
