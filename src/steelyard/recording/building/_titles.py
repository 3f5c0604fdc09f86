"""Which texts are titles, addresses and headings of others: they say where a passage is from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from typing import Any

from steelyard.recording.building._sources import Sources, Text
from steelyard.recording.building._steps import MOSTLY, Steps, is_telling, size_of
from steelyard.recording.reading import Leaf, about_documents, leaves_in

_MUCH_SHORTER = 0.5
_STOPS = (".", "!", "\u3002", "\uff01")
_MOST_ORIGINS = 50
"""Titles and addresses that are taken out of one text: each takes a search through it."""


def of_main_columns(texts: Sequence[Text], sources: Sources) -> list[Text]:
    """The texts without those of columns that say much less than another one of theirs: titles, addresses.

    That other one may hold known passages, and so be none of the texts. What ends as a sentence is no title.
    """
    if not any(one.row or one.column for one in texts):
        return list(texts)
    sizes: Counter[tuple[float, int, str]] = Counter()
    for one in sources.texts:
        if one.column is not None:
            sizes[one.column] += len(one.text)
    most: dict[tuple[float, int], int] = {}
    for column, size in sizes.items():
        most[column[:2]] = max(size, most.get(column[:2], 0))
    left = _without_titles(texts, sources)
    return [
        one
        for one in left
        if one.column is None or sizes[one.column] >= MOSTLY * most[one.column[:2]] or _is_sentence(one.text)
    ]


def _is_sentence(text: str) -> bool:
    return is_telling(text) and text.rstrip().endswith(_STOPS)


def _without_titles(texts: Sequence[Text], sources: Sources) -> list[Text]:
    """The texts without what stands in one entry with a known passage and is not much longer: its title."""
    known = {one.text.strip() for one in sources.documents}
    rows: dict[tuple[float, int] | None, int] = {
        one.row: len(one.text) for one in sources.texts if one.row and one.text.strip() in known
    }
    return [one for one in texts if len(one.text) >= rows.get(one.row, 0) / _MUCH_SHORTER]


def without_headings(texts: Sequence[Text], sources: Sources) -> list[Text]:
    """The texts without what is much shorter than one of them, or a known passage, beside it in any entry.

    It stands there under another name, and does not end as a sentence. What was found by its title may have
    been read later.
    """
    listed = {one.text for one in texts if one.row is not None}
    passages = listed | {one.text.strip() for one in sources.documents}
    if not listed or min(map(size_of, listed)) > max(map(size_of, passages)) * _MUCH_SHORTER:
        return list(texts)
    headings = {text for passed in sources.passed for text in _headings_in(passed.value, passages)}
    return [one for one in texts if one.text not in headings or _is_sentence(one.text)]


def _headings_in(value: object, passages: Collection[str]) -> Iterator[str]:
    """Of these texts those that stand in an entry of a value beside a much longer one of another name."""
    rows: dict[int, list[Leaf]] = {}
    for leaf in leaves_in(value):
        if leaf.row and leaf.text.strip() in passages:
            rows.setdefault(leaf.row, []).append(leaf)
    for row in rows.values():
        longest = max(row, key=lambda leaf: size_of(leaf.text))
        most = size_of(longest.text) * _MUCH_SHORTER
        yield from (leaf.text for leaf in row if size_of(leaf.text) <= most and leaf.name != longest.name)


def is_column(parts: Sequence[tuple[Text, str]], able: Sequence[Text]) -> bool:
    """Whether several parts are all that stands in one column; what else a text says then labels its rows."""
    columns = Counter(one.column for one, _ in parts if one.column is not None)
    whole = Counter(one.column for one in able)
    return any(count > 1 and count == whole[column] for column, count in columns.items())


def origins_of(parts: Collection[str], sources: Sources, turn: Steps) -> list[str]:
    """What stands beside one of these texts, and is none: titles, addresses, ids; the longest first.

    In what steps handed on, and in what retrievers returned: steps may have handed on only its texts.
    """
    known = {part.strip() for part in parts}
    values = [*(one.value for one in sources.passed), *(one.returned for one in turn.retrievals)]
    found = {text.strip() for value in values for text in beside(value, known)}
    origins = sorted(filter(None, found - known), key=len, reverse=True)
    return origins if len(origins) <= _MOST_ORIGINS else []


def beside(value: Any, texts: Collection[str]) -> Iterator[str]:
    """What stands in one entry of a list with one of these texts, and these: titles, addresses.

    And what a document that says one of them has beside it: its id, its metadata.
    """
    leaves = [leaf for leaf in leaves_in(value) if leaf.row]
    rows = {leaf.row for leaf in leaves if leaf.text.strip() in texts}
    yield from (leaf.text for leaf in leaves if leaf.row in rows)
    yield from (about for text, own in about_documents(value) if text.strip() in texts for about in own)
