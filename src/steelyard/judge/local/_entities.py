"""Names, numbers and dates of a text, told from capitals and digits."""

from __future__ import annotations

import re
from collections.abc import Callable

from steelyard.judge.local._text import Word, words
from steelyard.text import sentences

__all__ = ["entities"]

_MONTH_NAMES = """
january february march april may june july august september october november december
jan feb mar apr jun jul aug sep sept oct nov dec
"""
_MONTHS = frozenset(_MONTH_NAMES.split())
_BETWEEN_NAMES = re.compile(
    r"^(?:[\s\-–.'’]{1,2}|\s(?:of|of the|de|de la|la|van|van der|von|du|di|da|bin|al|the)\s)$"
)
_BETWEEN_DATES = re.compile(r"^(?:st|nd|rd|th)?(?:,? |\. | of )$")


def entities(text: str, proper: Callable[[str], bool]) -> tuple[str, ...]:
    """The entities of a text in order, each once.

    Args:
        text: Any text.
        proper: Whether a capitalised word that opens a sentence is a name.
    """
    found: dict[str, str] = {}
    for sentence in sentences(text):
        for start, end in _spans(sentence.text, words(sentence.text, proper=proper)):
            piece = sentence.text[start:end]
            found.setdefault(" ".join(piece.split()).casefold(), piece)
    return tuple(found.values())


def _spans(text: str, found: list[Word]) -> list[tuple[int, int]]:
    spans: list[tuple[int, int]] = []
    previous: Word | None = None
    for place, word in enumerate(found):
        if not _counts(found, place):
            continue
        if previous is not None and _joined(text[previous.end : word.start], previous, word):
            spans[-1] = (spans[-1][0], word.end)
        else:
            spans.append((word.start, word.end))
        previous = word
    return spans


def _counts(found: list[Word], place: int) -> bool:
    word = found[place]
    if word.kind == "number" or (word.kind == "name" and len(word.surface) > 1):
        return True
    # The capital of a first word says something only next to another name: "Shah Jahan", "New York".
    follows = place == 0 and word.surface[0].isupper() and len(found) > 1 and found[1].kind == "name"
    return follows and found[1].start == word.end + 1 and word.weight > _FUNCTION


_FUNCTION = 4.0
"""Weight below which a word is one of the two hundred that hold sentences together."""


def _joined(gap: str, one: Word, other: Word) -> bool:
    if one.kind == "number" or other.kind == "number":
        month = one.surface.casefold() in _MONTHS or other.surface.casefold() in _MONTHS
        return month and bool(_BETWEEN_DATES.match(gap))
    return bool(_BETWEEN_NAMES.match(gap))
