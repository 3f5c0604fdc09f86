"""Rows of tables, each read as a sentence of its own: what the header calls a cell stands beside the cell."""

from __future__ import annotations

import re
from collections.abc import Callable

from steelyard.judge.local.words import Located, located

Cell = tuple[frozenset[str], frozenset[str]]
"""The stems of a column's header and of the cell below it, digits of quantities with them."""

_CELL = re.compile(r"[^|]+")


def cells(text: str, proper: Callable[[str], bool]) -> list[list[Located]]:
    """The words of each cell of a row; empty cells too, so that columns keep their number."""
    found: list[list[Located]] = []
    for match in _CELL.finditer(text):
        start = match.start()
        words = located(match[0], proper=proper)
        found.append([(word, start + first, start + last) for word, first, last in words])
    return found


def row(header: list[list[Located]], body: list[list[Located]]) -> tuple[list[Located], tuple[Cell, ...]]:
    """The words of a row with those of its header, and its cells.

    The label comes before its header ("Basic plan"), every other cell behind it ("storage 500 GB").
    """
    words: list[Located] = []
    pairs: list[Cell] = []
    for column, cell in enumerate(body):
        above = header[column] if column < len(header) else []
        at = cell[0][1] if cell else (words[-1][2] if words else 0)
        named = [(word, at, at) for word, _, _ in above] if cell else []
        words += [*cell, *named] if column == 0 else [*named, *cell]
        stems = frozenset(word.stem for word, _, _ in cell) | {word.raw for word, _, _ in cell if word.raw}
        pairs.append((frozenset(word.stem for word, _, _ in above), stems))
    return words, tuple(pairs)
