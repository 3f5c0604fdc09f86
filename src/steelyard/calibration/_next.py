"""Which turns to label next, so that the next labels tell the most."""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence

import numpy as np
import numpy.typing as npt

from steelyard.calibration._collect import Judged, Labelled
from steelyard.calibration._maps import PlattMap

_FLOOR = 0.1
"""Weight of a turn of which nothing is unsure, going by people: such turns must be looked at too."""
_BLIND_FLOOR = 0.25
"""The same where only the judge says how sure it is."""
_PARTS = 10
_LEAST = 10
_LEAST_OF_EACH = 2

Chance = Callable[[Judged], float | None]
"""The probability that people call a turn good; None where it is not known."""


def drawn_to_label(
    judged: Iterable[Judged],
    labelled: Iterable[str] = (),
    *,
    chance: Chance = lambda _: None,
    limit: int = 20,
) -> list[tuple[Judged, float]]:
    """The turns whose labels would narrow the corrected mean most, the most useful first.

    The number of labels is to grow with how unsure a turn is, sqrt(p (1 - p)) (Neyman's allocation, 1934;
    Zrnic & Candes, Active statistical inference, ICML 2024): turns in order of their scores are cut into ten
    parts of equal such weight, and the part with the fewest labels comes next. Within a part turns are drawn
    by a hash of the record's id, so that the order is the same every time, several people can work on one
    list, and a turn that was labelled simply drops out of it.

    Args:
        judged: The turns, also those with a label.
        labelled: Ids of the records that have a label.
        chance: The probability of a turn, as by `chances_by`; the score itself where it gives None.
        limit: How many.

    Returns:
        Each with the probability with which it came up this time.
    """
    turns = list(judged)
    if not turns:
        return []
    known = set(labelled)
    draws = np.array([_drawn(one.record_id) for one in turns])
    weights = np.array([_weight(one, chance(one)) for one in turns])
    parts = _parts(np.array([one.value for one in turns]), draws, weights)
    waiting: list[list[int]] = [[] for _ in range(_PARTS)]
    counts = [0] * _PARTS
    # The smallest quotient first is a draw in proportion to the weights (sequential Poisson sampling, Ohlsson
    # 1998).
    for place in np.argsort(draws / weights, kind="stable").tolist():
        if turns[place].record_id in known:
            counts[parts[place]] += 1
        else:
            waiting[parts[place]].append(place)
    chosen = _evenly(waiting, counts, limit)
    there = [float(weights[part].sum()) for part in waiting]
    taken = Counter(parts[place] for place in chosen)
    return [
        (turns[place], min(taken[part] * float(weights[place]) / there[part], 1.0))
        for place in chosen
        for part in (parts[place],)
    ]


def chances_by(labelled: Sequence[Labelled]) -> Chance:
    """How likely each turn is good, going by the labels so far: Platt's curve over the score.

    Ten labels, two of each kind, are enough to choose further ones by, though far too few to calibrate with.
    With fewer it knows nothing.
    """
    good = np.array([pair.good for pair in labelled], bool)
    if len(good) < _LEAST or min(good.sum(), (~good).sum()) < _LEAST_OF_EACH:
        return lambda _: None
    curve = PlattMap.fit(np.array([pair.judged.value for pair in labelled]), good)
    return lambda one: curve(one.value)


def _drawn(record_id: str) -> float:
    """A number in (0, 1], always the same for a record."""
    return (int.from_bytes(hashlib.sha256(record_id.encode()).digest()[:8]) + 1) / 2**64


def _weight(judged: Judged, chance: float | None) -> float:
    floor, value = (_BLIND_FLOOR, judged.value) if chance is None else (_FLOOR, chance)
    return (floor + math.sqrt(max(value * (1 - value), 0.0))) / judged.inclusion


def _parts(
    values: npt.NDArray[np.float64], draws: npt.NDArray[np.float64], weights: npt.NDArray[np.float64]
) -> list[int]:
    """In which of ten parts of equal weight each turn is, by order of scores; equal ones by chance."""
    order = np.lexsort((draws, values))
    middles = np.cumsum(weights[order]) - weights[order] / 2
    found = np.empty(len(values), int)
    found[order] = np.minimum(middles / weights.sum() * _PARTS, _PARTS - 1).astype(int)
    return [int(part) for part in found]


def _evenly(waiting: Sequence[list[int]], counts: list[int], limit: int) -> list[int]:
    """From the part with the fewest labels each time, as far from the last one as possible."""
    turn = {part: place for place, part in enumerate((0, 5, 2, 7, 4, 9, 1, 6, 3, 8))}
    at, chosen = [0] * len(waiting), list[int]()
    while len(chosen) < limit:
        open_ = [part for part in turn if at[part] < len(waiting[part])]
        if not open_:
            break
        part = min(open_, key=lambda one: (counts[one], turn[one]))
        chosen.append(waiting[part][at[part]])
        at[part], counts[part] = at[part] + 1, counts[part] + 1
    return chosen
