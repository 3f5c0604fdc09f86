"""Words of a text as the demo's retriever and model compare them: lower case, without endings or filler."""

from __future__ import annotations

import re

_WORD = re.compile(r"\w+")
_ENDINGS = ("ations", "ation", "ings", "ing", "ies", "ied", "ers", "es", "ed", "er", "ly", "s", "y", "e")
_FILLER_WORDS = """
a an and are as at be been before but by can did do does for from had has have he her his how i if in into
is it its many more most much no not of on one or still that the their them then they this to was were what
when where which who why with would year
"""
_FILLER = frozenset(_FILLER_WORDS.split())


def words(text: str) -> list[str]:
    """Content words, cut to something like their stem.

    >>> words("How is the weight read from a steelyard?")
    ['weight', 'read', 'steelyard']
    """
    return [_stem(word) for word in _WORD.findall(text.lower()) if word not in _FILLER]


def _stem(word: str) -> str:
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word[: -len(ending)]
    return word
