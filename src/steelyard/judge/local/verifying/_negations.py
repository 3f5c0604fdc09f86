"""Negations: words that say that something is not so, in the larger languages, and where they are none."""

from __future__ import annotations

import re
from collections.abc import Sequence

from steelyard.judge.local.words import Word, fold, lists, rule

# Korean and Turkish put the negation into the verb, which a list of words cannot hold.
_HANGUL = re.compile(r"(?:않|없|못하|아니|아닙)\w*|못|안")
_TURKISH = re.compile(r"\w{2,}(?:m[ae]z(?:l[ae]r)?|m[ıiuü]yor\w*|m[ae]d[ıi](?:l[ae]r)?)")
_TURKISH_LETTERS = frozenset("ığşİĞŞ")


def first_negation(words: Sequence[Word]) -> int | None:
    """The place of the first negation in a clause. "Not only" is not one, nor is the "never" of a title."""
    return next((at for at in range(len(words)) if denies(words[at]) and _is_meant(words, at)), None)


def denies(word: Word) -> bool:
    """Whether a word by itself is a negation."""
    surface = word.surface
    if surface.isascii():
        return surface.casefold() in lists().negations or surface == "not"
    folded = fold(surface) in lists().negations
    return folded or _HANGUL.fullmatch(surface) is not None or _is_turkish(surface)


def prefixes(words: Sequence[Word], at: int) -> bool:
    """Whether the negation at a place turns round the next word alone: "non-toxic" in English."""
    return words[at].surface.casefold() == "non" and at + 1 < len(words) and _is_english(words)


def _is_meant(words: Sequence[Word], at: int) -> bool:
    """Whether what is a negation by itself is one where it stands."""
    surface = words[at].surface
    lower = surface.casefold()
    after = words[at + 1] if at + 1 < len(words) else None
    # "No 5" is a number, and "not only" says that it is so.
    numbered = lower == "no" and after is not None and after.surface[0].isdigit()
    if numbered or (after and after.surface.casefold() in rule("not_only")):
        return False
    if lower in rule("qualifies") and at and words[at - 1].surface.casefold() in rule("before_qualities"):
        return False
    if lower in rule("ambiguous") and _is_english(words) and not prefixes(words, at):
        return False
    return not _is_named(surface, after, at)


def _is_named(surface: str, after: Word | None, at: int) -> bool:
    """Whether a word is part of a title: capitalised inside of a clause, or before another capital."""
    if not surface[0].isupper() or surface.isupper():
        return False
    titled = after is not None and after.surface[0].isupper()
    return at > 0 or (titled and surface not in ("No", "Not"))


def _is_english(words: Sequence[Word]) -> bool:
    return any(word.surface.casefold() in rule("english") for word in words)


def _is_turkish(surface: str) -> bool:
    return not _TURKISH_LETTERS.isdisjoint(surface) and _TURKISH.fullmatch(surface.casefold()) is not None
