"""Which turns to label next, so that the next labels tell the most."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterable

from steelyard.calibration._signals import Judged

_FLOOR = 0.15
"""Weight of a turn of which nothing is unsure: without it such turns would never be looked at."""


def next_to_label(
    judged: Iterable[Judged],
    labelled: Iterable[str] = (),
    *,
    chance: Callable[[Judged], float | None] = lambda _: None,
    limit: int = 20,
) -> list[Judged]:
    """The turns whose labels would narrow the corrected mean most, the most useful first.

    Each turn is drawn with a probability that grows with how unsure its verdict is, sqrt(p (1 - p)) (Zrnic &
    Candes, Active statistical inference, ICML 2024), and never with none: sequential Poisson sampling by a
    hash of the record's id (Ohlsson 1998). The order is the same every time, so that several people can work
    on one list, and a turn that was labelled simply drops out of it.

    Args:
        judged: The turns.
        labelled: Ids of the records that have a label.
        chance: The calibrated probability of a turn; the score itself where it gives None.
        limit: How many.
    """
    known = set(labelled)
    waiting = [one for one in judged if one.record_id not in known]
    return sorted(waiting, key=lambda one: _place(one, chance(one)))[:limit]


def _place(judged: Judged, chance: float | None) -> tuple[float, str]:
    """Where a turn stands in the order: a number drawn in 0..1, over its weight."""
    value = judged.value if chance is None else chance
    weight = (_FLOOR + math.sqrt(max(value * (1 - value), 0.0))) / judged.inclusion
    drawn = int.from_bytes(hashlib.sha256(judged.record_id.encode()).digest()[:8]) / 2**64
    return drawn / weight, judged.record_id
