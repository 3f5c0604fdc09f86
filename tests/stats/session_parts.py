"""Traffic whose turns come in sessions, sampled as a Monitor samples it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
Sampling = Literal["all", "fifth", "suspicion", "halving", "two processes"]
_PICKED = {"all": 1.0, "fifth": 0.2, "suspicion": 0.14, "halving": 0.3, "two processes": 0.21}


@dataclass(frozen=True)
class Turns:
    """Judged turns in order."""

    values: Array
    inclusion: Array
    sessions: npt.NDArray[np.intp]


@dataclass(frozen=True)
class Traffic:
    """How an application's turns are, and how they are picked."""

    size: int = 1
    """Turns of a session on average; geometric."""
    alike: float = 0.0
    """Intraclass correlation."""
    sample: Sampling = "all"
    interleaved: bool = False
    mean: float = 0.9
    swing: float = 0.0
    """How far the mean is above and below in the course of a week."""
    days: float = 0.0
    """The standard deviation of the means of days."""
    a_day: int = 200

    def __str__(self) -> str:
        order = " interleaved" if self.interleaved else ""
        return f"{self.size} alike {self.alike} {self.sample}{order}"

    def stream(self, draw: np.random.Generator, count: int) -> Turns:
        """The first turns of all that there are."""
        sizes = draw.geometric(1 / self.size, count) if self.size > 1 else np.ones(count, int)
        sessions = np.repeat(np.arange(count), sizes)[:count]
        if self.interleaved:
            place = np.concatenate([np.arange(size) for size in sizes[: sessions[-1] + 1]])[:count]
            pace = draw.uniform(0.5, 3.0, count)
            sessions = sessions[np.argsort(sessions * self.size + place * self.size * pace, kind="stable")]
        nu = 1 / self.alike - 1 if self.alike and self.size > 1 else 0.0
        rates = draw.beta(self.mean * nu, (1 - self.mean) * nu, count) if nu else np.full(count, self.mean)
        week = np.arange(count) / self.a_day / 7
        swing = self.swing * np.sin(2 * np.pi * week)
        if self.days:
            swing += draw.normal(0, self.days, count // self.a_day + 1)[np.arange(count) // self.a_day]
        # A share of good answers goes wrong, or of bad ones right: the mean over sessions swings by no more.
        room = np.where(swing > 0, (1 - rates[sessions]) / (1 - self.mean), rates[sessions] / self.mean)
        rate = np.clip(rates[sessions] + swing * room, 0.0, 1.0)
        values = (draw.random(count) < rate).astype(float)
        return Turns(values, self._inclusion(draw, values), sessions)

    def judged(self, draw: np.random.Generator, count: int) -> Turns:
        """The first so many turns that were picked."""
        turns = self.stream(draw, int(count / _PICKED[self.sample] * 1.5) + 60)
        picked = np.flatnonzero(draw.random(len(turns.values)) < turns.inclusion)[:count]
        return Turns(turns.values[picked], turns.inclusion[picked], turns.sessions[picked])

    def _inclusion(self, draw: np.random.Generator, values: Array) -> Array:
        if self.sample == "all":
            return np.ones_like(values)
        if self.sample == "fifth":
            return np.full_like(values, 0.2)
        if self.sample == "halving":
            return np.where(np.arange(len(values)) < len(values) / 3, 0.4, 0.2)
        if self.sample == "two processes":
            return np.where(draw.random(len(values)) < 0.5, 0.4, 0.02)
        noticed = draw.random(len(values)) < np.where(values < 0.5, 0.6, 0.05)
        return np.where(noticed, 1.0, 0.1)


def adjusted_rand(first: Sequence[int], second: Sequence[int]) -> float:
    """How far two clusterings agree: 1 for the same, about 0 by chance (Hubert & Arabie 1985, eq. 5).

    >>> adjusted_rand([0, 0, 1, 1], [5, 5, 3, 3])
    1.0
    """
    pairs = Counter(zip(first, second, strict=True))
    together = sum(math.comb(count, 2) for count in pairs.values())
    rows = sum(math.comb(count, 2) for count in Counter(first).values())
    columns = sum(math.comb(count, 2) for count in Counter(second).values())
    chance = rows * columns / max(math.comb(len(first), 2), 1)
    most = (rows + columns) / 2
    return 1.0 if most == chance else (together - chance) / (most - chance)
