"""Who judged, what probes say of the judges, how far people agree, and what a calibration makes of it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response

from steelyard.calibration import Calibration, Judged, Key, Labelled, collect
from steelyard.errors import ConfigurationError
from steelyard.report import labelled_turns
from steelyard.results import ResultsReader
from steelyard.results.labels import Label, StoredCheck
from steelyard.results.queries import Scope
from steelyard.stats import Estimate, auroc, cohen_kappa, weighted_mean
from steelyard.view._site import Site

_BEFORE: Final = 5
"""Earlier checks of a judge that are shown."""
_BINS: Final = 10
_ENDS: Final = {"good": "value", "low": "low", "high": "high"}
_GRID: Final = tuple(step / 20 for step in range(21))


def judges(site: Site, request: Request) -> Response:
    """The judges, their checks and canaries, their agreement with people, the calibration file."""
    calibration, problem = _calibration(site.settings.calibration if site.settings else "")
    with site.open() as results:
        made = results.made(Scope())
        found = _labelled(results, site.labels)
        canaries = site.live.canaries(results)
        checked = _checked(results.checks())
    keys = sorted(found, key=lambda key: -len(found[key]))
    return site.render(
        request,
        "judges.html",
        made=made,
        held=[_held(key, found[key]) for key in keys],
        checked=checked,
        charts=[
            *(_chart(key, found[key], calibration) for key in keys),
            *(_probabilities(one["latest"]) for one in checked),
        ],
        calibration=calibration,
        problem=problem,
        canaries=canaries,
    )


def _checked(checks: Iterable[StoredCheck]) -> list[dict[str, Any]]:
    """By judge, wording and set; given and returned with the latest first."""
    found: defaultdict[tuple[str, str, bool], list[StoredCheck]] = defaultdict(list)
    for one in checks:
        found[one.judge, one.prompt_version, one.published].append(one)
    return [{"latest": latest, "before": before[:_BEFORE]} for latest, *before in found.values()]


def _probabilities(check: StoredCheck) -> dict[str, Any]:
    """Tenths of the probability of yes against the share of probes whose right answer is yes."""
    points: dict[float, float | None] = {0.0: None, 1.0: None}
    points |= {probability: yes for probability, yes, _ in check.bins}
    xs = sorted(points) if check.bins else []
    nothing = [None] * len(xs)
    return {
        **{"kind": "calibration", "x": xs, "good": [points[x] for x in xs]},
        **{"map": nothing, "low": nothing, "high": nothing},
    }


def _calibration(path: str) -> tuple[Calibration | None, str]:
    """The calibration that `steelyard.toml` names, and why it cannot be read."""
    if not path or not Path(path).is_file():
        return None, f"{path!r}, which steelyard.toml names, is not there." if path else ""
    try:
        return Calibration.load(path), ""
    except ConfigurationError as error:
        return None, str(error)


def _labelled(results: ResultsReader, labels: Iterable[Label]) -> dict[Key, Sequence[Labelled]]:
    materials = collect(*labelled_turns(results, labels))
    return {one.key: one.labelled for one in materials if one.labelled}


def _held(key: Key, pairs: Sequence[Labelled]) -> dict[str, Any]:
    """One metric by one judge, held against people's labels; a score of one half or more is read as good."""
    good = [pair.good for pair in pairs]
    values = [pair.judged.value for pair in pairs]
    said = [value >= 0.5 for value in values]
    units = [pair.judged.unit for pair in pairs]
    return {
        "key": key,
        "n": len(pairs),
        "kappa": cohen_kappa(said, good, sessions=units) if len({*said, *good}) > 1 else None,
        "area": auroc(values, good, sessions=units) if len(set(good)) > 1 else None,
    }


def _chart(key: Key, pairs: Sequence[Labelled], calibration: Calibration | None) -> dict[str, Any]:
    """Tenths of the score: their mean, the share that people call good with its interval; and the map."""
    points = _tenths(pairs)
    xs = sorted({*_GRID, *points})
    shares = [points.get(x) for x in xs]
    return {
        "kind": "calibration",
        "x": xs,
        "map": [_mapped(calibration, key, x) if x in _GRID else None for x in xs],
        **{name: [one and getattr(one, end) for one in shares] for name, end in _ENDS.items()},
    }


def _tenths(pairs: Sequence[Labelled]) -> dict[float, Estimate]:
    """By the mean score of each tenth, the share of its turns that people call good."""
    bins: defaultdict[int, list[Labelled]] = defaultdict(list)
    for pair in pairs:
        bins[min(int(pair.judged.value * _BINS), _BINS - 1)].append(pair)
    points = {}
    for part in bins.values():
        share = weighted_mean([float(pair.good) for pair in part])
        assert share is not None
        points[sum(pair.judged.value for pair in part) / len(part)] = share
    return points


def _mapped(calibration: Calibration | None, key: Key, value: float) -> float | None:
    """What the map says; None without one, or where it goes by something else than the score."""
    if calibration is None:
        return None
    judged = Judged(record_id="", value=value, worst=None, inclusion=1.0, claims=0)
    return calibration.chance(key, judged)
