"""Names, numbers and dates of a text, told from capitals and digits."""

from __future__ import annotations

import re
from collections.abc import Callable

from steelyard.judge.words._lists import rule
from steelyard.judge.words._word import Located, Word
from steelyard.judge.words._words import located

_BETWEEN_NAMES = re.compile(
    r"^(?:[\s\-–.'’]{1,2}|\s(?:of|of the|de|de la|la|van|van der|von|du|di|da|bin|al|the)\s)$"
)
_BETWEEN_DATES = re.compile(r"^(?:st|nd|rd|th)?(?:,? |\. | of )$")


def entities(sentence: str, proper: Callable[[str], bool]) -> list[str]:
    """The entities of a sentence, in order; `proper`: whether a word that opens it is a name."""
    return [
        sentence[start:end]
        for start, end in _spans(sentence, located(sentence, proper=proper, measured=False))
    ]


def _spans(text: str, found: list[Located]) -> list[tuple[int, int]]:
    spans: list[tuple[int, int]] = []
    previous: Located | None = None
    for place, (word, start, end) in enumerate(found):
        if not _counts(found, place):
            continue
        if previous is not None and _joined(text[previous[2] : start], previous[0], word):
            spans[-1] = (spans[-1][0], end)
        else:
            spans.append((start, end))
        previous = (word, start, end)
    return spans


def _counts(found: list[Located], place: int) -> bool:
    word, _, end = found[place]
    if word.kind != "word":
        return True
    # The capital of a first word says something only next to another name: "Shah Jahan", "New York".
    if place > 0 or len(found) < 2 or not word.surface[0].isupper():
        return False
    follower, start, _ = found[1]
    return follower.kind == "name" and start == end + 1 and word.weight > _FUNCTION


_FUNCTION = 4.0
"""Weight below which a word is one of the two hundred that hold sentences together."""


def _joined(gap: str, one: Word, other: Word) -> bool:
    if one.kind == "number" or other.kind == "number":
        dated = not rule("months").isdisjoint((one.surface.casefold(), other.surface.casefold()))
        return dated and bool(_BETWEEN_DATES.match(gap))
    return bool(_BETWEEN_NAMES.match(gap))
