"""How far two clusterings agree."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence


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
