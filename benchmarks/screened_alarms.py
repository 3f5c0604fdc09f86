"""After how many turns a fall is told: without a screen, beside one, and with one as an auxiliary variable.

    python benchmarks/screened_alarms.py [--runs 120]

A tenth of all turns are judged, by chance or where a screen tells least (`steelyard.online`). Two alarms see
the judge's scores alone, as a `FallAlarm` does. The third one sees every turn: in the place of a / p (y - m),
for a turn that was picked with probability p, it adds a (g - m) for every turn and a / p (y - g) for a judged
one, g being the mean verdict on earlier turns of which the screen said the same. Its mean is the same, and it
varies less; but a bet has to be able to pay for the worst of both parts.
"""

from __future__ import annotations

import argparse

import numpy as np
import numpy.typing as npt

from steelyard.online._screening import Allocation
from steelyard.stats import FallAlarm

_TARGET, _RATE, _FLOOR = 0.85, 0.1, 0.3
_BEFORE, _LATEST = 4_000, 8_000
_BINS = 8
_BETS = np.array([0.02, 0.06, 0.15, 0.4, 0.8])
_HORIZON = 4_000.0


class Assisted:
    """A bet against "the mean is at least .85", over all turns; sizes and stakes as of a `FallAlarm`."""

    def __init__(self) -> None:
        """Start before the first turn."""
        self._least = _RATE * _FLOOR
        self._stakes = np.zeros(len(_BETS))
        self._seen = 0.0
        self._bins = np.zeros((2, _BINS))
        self._weights = np.zeros(2)
        self._judged = 0

    def add(self, said: float, value: float | None, share: float) -> bool:
        """Take a turn into account, whose value is None if the judge has not seen it."""
        place = min(int(said * _BINS), _BINS - 1)
        expected = self._expected(place)
        step = self._least * (expected - _TARGET)
        if value is not None:
            step += self._least / share * (value - expected)
        most = self._least * (1 - _TARGET) + 1 - expected
        larger = max(self._weights[0] / self._weights[1] / self._least, 1.0) if self._judged else 1.0
        bets = np.minimum(_BETS * larger, 0.9 / max(most, 0.05))
        before, after = (1 / (1 + seen / _HORIZON) for seen in (self._seen, self._seen + _RATE))
        self._seen += _RATE
        self._stakes = (self._stakes + before - after) * (1 - bets * step)
        if value is not None:
            self._judged += 1
            self._weights += 1 / share, 1 / share**2
            self._bins[:, place] += 1 / share, value / share
        return float(self._stakes @ _BETS) / float(_BETS.sum()) + after >= 1 / 0.05

    def _expected(self, place: int) -> float:
        """The mean verdict in a bin, as far as ten verdicts of the mean of all leave it."""
        if not self._judged:
            return _TARGET
        mean = self._bins[1].sum() / self._bins[0].sum()
        ten = 10 * self._bins[0].sum() / self._judged
        return float((self._bins[1, place] + ten * mean) / (self._bins[0, place] + ten))


def delay(seed: int, before: float, after: float, *, follows: float, way: str) -> int:
    """The turn in which an alarm goes off, counted from the fall."""
    draw = np.random.default_rng(seed)
    turns = _BEFORE + _LATEST
    good = draw.random(turns) < np.where(np.arange(turns) < _BEFORE, before, after)
    said = 1 / (1 + np.exp(-draw.normal(follows * good)))
    place = draw.random(turns)
    allocation, alarm, assisted = Allocation(_FLOOR), FallAlarm(target=_TARGET), Assisted()
    for at in range(turns):
        own = float(said[at])
        share = _RATE if way == "no screen" else min(_RATE * allocation.share({"m": own}), 1.0)
        value = float(good[at]) if place[at] < share else None
        if value is not None:
            allocation.learn("m", own, value, share)
            alarm.smallest_inclusion = min(alarm.smallest_inclusion, share)
        if way == "every turn":
            told = assisted.add(own, value, share)
        else:
            told = value is not None and alarm.add(value, share)
        if told:
            return at - _BEFORE
    return _LATEST


def told(found: npt.NDArray[np.int64]) -> str:
    """A cell: median and mean delay, and the share of runs in which nothing was told."""
    return f"{np.median(found):,.0f} ({np.mean(found):,.0f}), {np.mean(found >= _LATEST):.0%}"


def main() -> None:
    """Print the table."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    options.add_argument("--runs", type=int, default=120)
    runs = options.parse_args().runs
    ways = ("no screen", "the judge's scores", "every turn")
    print(
        f"turns until a fall below {_TARGET} is told, median (mean) and never within {_LATEST:,}; {runs} runs"
    )
    print(f"| screen's AUROC, fall | {' | '.join(ways)} | before the fall |\n|---|" + "---:|" * 4)
    for follows, auroc in ((0.5, 0.64), (1.5, 0.86), (3.0, 0.98)):
        for before, after in ((0.90, 0.75), (0.90, 0.80)):
            found = [
                np.array([delay(seed, before, after, follows=follows, way=way) for seed in range(runs)])
                for way in ways
            ]
            early = ", ".join(str(np.count_nonzero(one < 0)) for one in found)
            cells = " | ".join(told(one[one >= 0]) for one in found)
            print(f"| {auroc}, from {before} to {after} | {cells} | {early} |", flush=True)


if __name__ == "__main__":
    main()
