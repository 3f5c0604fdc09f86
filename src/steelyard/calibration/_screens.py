"""A screen that has learnt from its judge: what the judge would say, by all that the screen found.

A screen computes more than its value: for each claim signals, probabilities, how near the nearest passage is.
From these and the judge's verdicts on the same turns a linear map is drawn for each metric (ridge regression:
Hoerl & Kennard, Technometrics 12, 1970). Claims are pooled in three ways, and the map learns what each is
worth: the mean, the worst, and all doubts together, since more of many claims can be wrong. It is kept only
where, on turns that it was not drawn through, it leaves less than a curve over the screen's own value; and it
serves only the screen and the judge that it was made for.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from steelyard._internal.files import replace_file
from steelyard._internal.typed import read
from steelyard.errors import ConfigurationError, InvalidRecord
from steelyard.scores import Evaluation, Provenance, Score
from steelyard.stats import fit_ridge, folds_of

_Array = npt.NDArray[np.float64]
_SCHEMA = 1
_LARGEST = 1_000_000
LEAST = 200
"""Turns that both judges have scored, below which nothing is learnt."""
_OWN, _OTHER = 10.0, 300.0
"""As many turns that tell nothing hold back the screen's own value, and all else. One figure for all:
picked by cross-validation for each map, it came out worse on 100 to 200 verdicts in eight of nine sets."""
_FOLDS = 5
_END = 1e-3
_MOST_FEATURES = 60


@dataclass(frozen=True, kw_only=True, slots=True)
class Lesson:
    """One turn that both judges have scored by one metric."""

    found: Mapping[str, float]
    """What the screen found, by `findings_of`."""
    judged: float
    """The judge's value in 0..1."""
    inclusion: float
    """The probability with which the judge was asked."""
    session: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class ScreenMap:
    """From what the screen found to the judge's value, of one metric."""

    names: tuple[str, ...]
    centre: tuple[float, ...]
    """The mean of each, which stands in where one is missing."""
    slopes: tuple[float, ...]
    """By how much the judge's value grows with each."""
    level: float
    turns: int
    left: float
    """Mean squared error on turns that it was not drawn through."""
    left_by_value: float
    """The same of a curve over the screen's value alone."""

    def __post_init__(self) -> None:
        if not len(self.names) == len(self.centre) == len(self.slopes) <= _MOST_FEATURES:
            raise ValueError("its columns are of different lengths")

    def expected(self, found: Mapping[str, float]) -> float:
        moved = sum(
            slope * (found.get(name, centre) - centre)
            for name, centre, slope in zip(self.names, self.centre, self.slopes, strict=True)
        )
        return min(max(self.level + moved, 0.0), 1.0)


@dataclass(frozen=True, kw_only=True)
class FittedScreen:
    """Maps of one screen for one judge, with a version and a file."""

    screen: tuple[str, str]
    """Name and prompt version of the screen."""
    judge: tuple[str, str]
    """Name and prompt version of the judge."""
    maps: Mapping[str, ScreenMap]

    @property
    def version(self) -> str:
        """12 characters of a hash over the maps: it stands on every Score that they served."""
        return hashlib.sha256(json.dumps(self._content(), sort_keys=True).encode()).hexdigest()[:12]

    def apply(self, evaluation: Evaluation) -> Evaluation:
        """The Evaluation with what the judge is expected to say on each of the screen's Scores."""
        version = self.version
        return evaluation.replace(screen=tuple(self._expected(one, version) for one in evaluation.screen))

    def _expected(self, score: Score, version: str) -> Score:
        known = self.maps.get(score.metric)
        if known is None or score.value is None or made_by(score.provenance) != self.screen:
            return score
        return replace(score, calibrated_value=known.expected(findings_of(score)), calibration=version)

    def _content(self) -> dict[str, Any]:
        maps = {name: asdict(one) for name, one in sorted(self.maps.items())}
        return {"screen": list(self.screen), "judge": list(self.judge), "maps": maps}

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write it to a file, which is replaced as a whole."""
        data = {"steelyard_screen": _SCHEMA, "version": self.version, **self._content()}
        replace_file(path, json.dumps(data, indent=2) + "\n")

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> FittedScreen | None:
        """Read a file that `save` wrote; None if there is none yet."""
        try:
            with Path(path).open("rb") as file:
                data = json.loads(file.read(_LARGEST))
            schema, version = data.pop("steelyard_screen"), data.pop("version")
            found = read(FittedScreen, data, what="screen file")
            if schema != _SCHEMA or version != found.version:
                raise ValueError("it was edited, or is of another version")
        except FileNotFoundError:
            return None
        except OSError as error:
            raise ConfigurationError(
                f"screen_file {os.fspath(path)!r}: {error.strerror}; give a file that can be read and written"
            ) from None
        except (InvalidRecord, AttributeError, KeyError, TypeError, ValueError, RecursionError) as error:
            why = f"no {error}" if isinstance(error, KeyError) else str(error) or type(error).__name__
            raise ConfigurationError(
                f"screen_file {os.fspath(path)!r} is not one: {why}; delete it, or give another path"
            ) from None
        return found


def made_by(provenance: Provenance | None) -> tuple[str, str]:
    """Name and prompt version of who made a Score."""
    return ("", "") if provenance is None else (provenance.judge, provenance.prompt_version)


def findings_of(score: Score) -> dict[str, float]:
    """What a screen found of a turn: its value, the number of its claims, and their signals, pooled."""
    value = score.value or 0.0
    found = {
        "value": value,
        "square": value * value,
        "all": float(value >= 1 - _END),
        "none": float(value <= _END),
        "hard": value if score.hard_value is None else score.hard_value,
        "claims": math.log1p(len(score.verdicts)),
    }
    columns: dict[str, list[float]] = {}
    for verdict in score.verdicts:
        columns.setdefault("length", []).append(math.log1p(len(verdict.about)))
        if verdict.probability_of_good is not None:
            columns.setdefault("probability", []).append(verdict.probability_of_good)
        for evidence in verdict.evidence:
            for name, number in _signals(evidence.notes):
                columns.setdefault(name, []).append(number)
    for name, numbers in columns.items():
        found[f"{name}.mean"] = sum(numbers) / len(numbers)
        found[f"{name}.least"] = min(numbers)
        if name != "length":
            found[f"{name}.doubt"] = math.log1p(sum(max(1 - number, 0.0) for number in numbers))
    return dict(list(found.items())[:_MOST_FEATURES])


def _signals(notes: Mapping[str, Any]) -> list[tuple[str, float]]:
    signals = notes.get("signals")
    given = dict(signals) if isinstance(signals, Mapping) else {}
    missing = {name: notes.get(name) for name in ("missing_numbers", "missing_names")}
    given |= {name: 1 / (1 + len(one)) for name, one in missing.items() if isinstance(one, list | tuple)}
    return [
        (str(name), float(number))
        for name, number in given.items()
        if isinstance(number, int | float) and math.isfinite(number)
    ]


_BY_VALUE = ("value", "square", "all", "none")


def fit_screen(lessons: Sequence[Lesson]) -> ScreenMap | None:
    """The map of one metric; None where it would not help, or too little was seen."""
    if len(lessons) < LEAST:
        return None
    names, table = _table(lessons)
    judged = np.array([one.judged for one in lessons], float)
    weights = np.array([1 / one.inclusion for one in lessons], float)
    folds = folds_of([one.session for one in lessons], _FOLDS)
    own = np.isin(names, _BY_VALUE)
    held = np.where(own, _OWN, _OTHER)
    by_value = _left(table[:, own], judged, weights, folds, held[own])
    left = _left(table, judged, weights, folds, held)
    if left >= by_value:
        return None
    middle, slopes, level = fit_ridge(table, judged, weights, held)
    return ScreenMap(
        names=names,
        centre=tuple(round(float(one), 9) for one in middle),
        slopes=tuple(round(float(one), 9) for one in slopes),
        level=round(level, 9),
        turns=len(lessons),
        left=round(left, 6),
        left_by_value=round(by_value, 6),
    )


def _table(lessons: Sequence[Lesson]) -> tuple[tuple[str, ...], _Array]:
    """What was found of each turn, by name; the mean of the others where something was not."""
    names = tuple(sorted(set[str]().union(*(one.found for one in lessons))))
    table = np.array([[one.found.get(name, np.nan) for name in names] for one in lessons], float)
    return names, np.where(np.isnan(table), np.nanmean(table, axis=0), table)


def _left(
    table: _Array, judged: _Array, weights: _Array, folds: npt.NDArray[np.int64], ridge: _Array
) -> float:
    away = np.zeros(len(judged))
    for fold in range(_FOLDS):
        here = folds == fold
        middle, slopes, level = fit_ridge(table[~here], judged[~here], weights[~here], ridge)
        away[here] = judged[here] - np.clip(level + (table[here] - middle) @ slopes, 0.0, 1.0)
    return float(weights @ away**2 / weights.sum())
