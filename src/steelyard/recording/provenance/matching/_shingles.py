"""Shingles of four words as arrays of hashes, and where each first stands in a text."""

from __future__ import annotations

import random

import numpy as np
import numpy.typing as npt

from steelyard.recording.provenance.matching._rows import Hashes, Places

SHINGLE = 4
"""Words in a shingle."""

_ABSENT = -1
# Four buckets a hash: most hashes are then alone in theirs, and a second table is small.
_BUCKETS = 4
_BITS = 64
_odd = random.SystemRandom()
# Odd factors lose no bits in arithmetic modulo 2**64.
_FACTORS = np.array([_odd.getrandbits(_BITS) | 1 for _ in range(SHINGLE)], dtype=np.uint64)
_SPREADS = np.array([_odd.getrandbits(_BITS) | 1 for _ in range(8)], dtype=np.uint64)


def shingles(words: Hashes) -> Hashes:
    """Hashes of each four words in a row, from those of the words.

    The factors are random, as the words' own hashes are, so that no text is made to collide.
    """
    if len(words) < SHINGLE:
        return np.empty(0, dtype=np.uint64)
    row: Hashes = words[: 1 - SHINGLE] * _FACTORS[0]
    for at in range(1, SHINGLE):
        row += words[at : len(words) - SHINGLE + 1 + at] * _FACTORS[at]
    return row


class Index:
    """Where each hash of a row first stands.

    A table of buckets takes the first hash of each; what shares a bucket with another goes on to a table of
    its own, and so on. Making and asking it takes a few operations on whole arrays.

    Args:
        row: Hashes that are spread evenly.
    """

    def __init__(self, row: Hashes) -> None:
        self.row = row
        self._tables: list[Places] = []
        left = np.arange(len(row), dtype=np.intp)
        while len(left):
            hashes = row[left]
            table = np.zeros(1 << (_BUCKETS * len(left)).bit_length(), dtype=np.intp)
            buckets = self._buckets(hashes, len(self._tables), len(table))
            table[buckets[::-1]] = left[::-1]  # of several, the last to be written stays
            self._tables.append(table)
            # Equal hashes stand in the first table by their first place already; only others go on.
            left = left[row[table[buckets]] != hashes]

    def places(self, hashes: Hashes) -> Places:
        """The place at which each hash first stands in the row; -1 where it does not."""
        found = np.full(len(hashes), _ABSENT, dtype=np.intp)
        for level, table in enumerate(self._tables):
            places = table[self._buckets(hashes, level, len(table))]
            np.copyto(found, places, where=self.row[places] == hashes)
        return found

    @staticmethod
    def _buckets(hashes: Hashes, level: int, size: int) -> npt.NDArray[np.uint64]:
        spread: Hashes = hashes * _SPREADS[level % len(_SPREADS)]
        return spread >> np.uint64(_BITS + 1 - size.bit_length())
