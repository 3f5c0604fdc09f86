"""Sessions that are under way while turns come one by one, in bounded memory."""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Mapping, MutableMapping
from dataclasses import asdict, dataclass, field
from typing import Any, Self, TypeVar

from steelyard.stats._moments import Moments

_T = TypeVar("_T")
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

    A session that comes back after 500 others is taken for another one.
    """

    turns: Moments = field(default_factory=Moments)
    """Of all turns."""
    open: dict[str, tuple[float, float]] = field(default_factory=dict)
    """By session: the sum of the weights 1 / inclusion of its turns, and of weight times value."""
    pairs: tuple[float, float, float] = (0.0, 0.0, 0.0)
    """Over pairs of turns of one session: sums of w w', of w w' (x + x') / 2 and of w w' x x'."""

    def add(self, value: float, inclusion: float = 1.0, *, session: Hashable = None) -> None:
        """Take a value into account."""
        self.turns.add(value, inclusion)
        key = unit_key(session)
        if key is None:
            return
        weight = 1 / inclusion
        before, values = self.open.get(key, (0.0, 0.0))
        weights, mixed, products = self.pairs
        self.pairs = (
            weights + 2 * before * weight,
            mixed + weight * (values + before * value),
            products + 2 * values * weight * value,
        )
        remember(self.open, key, (before + weight, values + weight * value))

    def state(self) -> dict[str, Any]:
        """What `resumed` needs, as plain JSON."""
        units = {key: (round(weight, 6), round(value, 6)) for key, (weight, value) in self.open.items()}
        return {"turns": asdict(self.turns), "open": units, "pairs": self.pairs}

    @classmethod
    def resumed(cls, state: Mapping[str, Any]) -> Self:
        """Sums that go on where others stopped, in an earlier process say."""
        units = {str(key): (float(weight), float(value)) for key, (weight, value) in state["open"].items()}
        weights, mixed, products = map(float, state["pairs"])
        return cls(Moments(**state["turns"]), units, (weights, mixed, products))

    @property
    def design_effect(self) -> float:
        """How many times the variance of the mean is what it would be if turns were independent, at least 1.

        The linearised variance with sessions as units over the one without, times g / (g - 1) for g sessions
        of effectively equal weight.
        """
        sums, (weights, mixed, products) = self.turns, self.pairs
        mean = sums.mean
        if mean is None or not weights:
            return 1.0
        spread = sums.square_value_value - 2 * mean * sums.square_value + mean * mean * sums.square
        if spread <= 0:
            return 1.0
        units = sums.weight**2 / (sums.square + weights)
        grown = 1 + (products - 2 * mean * mixed + mean * mean * weights) / spread
        return max(grown * units / max(units - 1, 1.0), 1.0)
