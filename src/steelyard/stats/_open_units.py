"""Sessions that are under way while turns come one by one, in bounded memory."""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Mapping, MutableMapping
from dataclasses import asdict, dataclass, field
from typing import Any, Self, TypeVar

from steelyard.stats._estimate import Estimate
from steelyard.stats._moments import Moments

_T = TypeVar("_T")
LONGEST = 100
"""After so many turns a session counts as another one."""
_MOST = 500
"""Sessions remembered; the one without a turn for the longest time is forgotten first."""


def unit_key(session: Hashable) -> str | None:
    """A short name for a session, however long its id is; None for a turn of its own (None or empty)."""
    if session is None or session == "":
        return None
    return hashlib.blake2b(str(session).encode(errors="surrogatepass"), digest_size=8).hexdigest()


def remember(units: MutableMapping[str, _T], key: str, value: _T) -> None:
    """Put a unit in last place, and forget the first one if there are too many."""
    units.pop(key, None)
    units[key] = value
    if len(units) > _MOST:
        del units[next(iter(units))]


@dataclass(slots=True)
class OpenSums:
    """Running sums over turns that may be of one session, and how alike such turns are.

    A session is taken for another one after a hundred turns, or if it comes back after 500 others.
    """

    turns: Moments = field(default_factory=Moments)
    """Of all turns."""
    open: dict[str, tuple[int, float, float]] = field(default_factory=dict)
    """By session: its turns, the sum of their weights 1 / inclusion, and of weight times value."""
    pairs: tuple[float, float, float] = (0.0, 0.0, 0.0)
    """Over pairs of turns of one session: sums of w w', of w w' (x + x') / 2 and of w w' x x'."""

    def add(self, value: float, inclusion: float = 1.0, *, session: Hashable = None) -> None:
        """Take a value into account."""
        self.turns.add(value, inclusion)
        key = unit_key(session)
        if key is None:
            return
        weight = 1 / inclusion
        turns, before, values = self.open.get(key, (0, 0.0, 0.0))
        if turns >= LONGEST:
            turns, before, values = 0, 0.0, 0.0
        weights, mixed, products = self.pairs
        self.pairs = (
            weights + 2 * before * weight,
            mixed + weight * (values + before * value),
            products + 2 * values * weight * value,
        )
        remember(self.open, key, (turns + 1, before + weight, values + weight * value))

    def estimate(self) -> Estimate | None:
        """The mean of all turns with its 95 % interval; None of nothing."""
        return self.turns.estimate(design_effect=self.design_effect)

    def state(self) -> dict[str, Any]:
        """What `resumed` needs, as plain JSON."""
        units = {
            key: (turns, round(weight, 6), round(value, 6))
            for key, (turns, weight, value) in self.open.items()
        }
        return {"turns": asdict(self.turns), "open": units, "pairs": self.pairs}

    @classmethod
    def resumed(cls, state: Mapping[str, Any]) -> Self:
        """Sums that go on where others stopped, in an earlier process say."""
        units = {
            str(key): (int(turns), float(weight), float(value))
            for key, (turns, weight, value) in state["open"].items()
        }
        weights, mixed, products = map(float, state["pairs"])
        return cls(Moments(**state["turns"]), units, (weights, mixed, products))

    @property
    def units(self) -> float:
        """As many sessions of equal weight would tell as much of how sessions differ; 0 of nothing."""
        spread = self.turns.square + self.pairs[0]
        return self.turns.weight**2 / spread if spread else 0.0

    @property
    def design_effect(self) -> float:
        """How many times the variance of the mean is what it would be if turns were independent, at least 1.

        The linearised variance with sessions as units over the one without, times g / (g - 1), g = `units`.
        """
        sums, (weights, mixed, products) = self.turns, self.pairs
        mean = sums.mean
        if mean is None or not weights:
            return 1.0
        spread = sums.square_value_value - 2 * mean * sums.square_value + mean * mean * sums.square
        if spread <= 0:
            return 1.0
        grown = 1 + (products - 2 * mean * mixed + mean * mean * weights) / spread
        return max(grown * self.units / max(self.units - 1, 1.0), 1.0)
