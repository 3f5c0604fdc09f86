"""The words that the rules know, read from `words.toml` when needed, and what does not tell words apart."""

from __future__ import annotations

import re
import tomllib
import unicodedata
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from importlib import resources
from typing import Any

# Zero-width and bidirectional controls, selectors, tags, fillers and the soft hyphen cannot be seen.
INVISIBLE = (
    "\u00ad\u115f\u1160\u180b-\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u206f\u3164"
    "\ufe00-\ufe0f\ufeff\uffa0\U000e0000-\U000e01ef"
)
"""Ranges of invisible characters, for a class of a pattern."""
MARKS = (
    "\u0300-\u036f\u0483-\u0487\u0591-\u05bd\u05bf-\u05c7\u0610-\u061a\u064b-\u065f\u0670\u06d6-\u06ed"
    "\u0900-\u0903\u093a-\u094f\u0951-\u0957\u0981-\u0983\u09bc-\u09d7\u0a01-\u0a51\u0a81-\u0acd\u0b01-\u0b57"
    "\u0b82-\u0bcd\u0c00-\u0c56\u0c81-\u0cd6\u0d00-\u0d57\u0d81-\u0ddf"
)
"""Ranges of marks that belong to the letter before them; Python counts none of them as part of a word."""

_VANISH = re.compile(f"[{INVISIBLE}]")
_CLITIC = re.compile(r"['’](?:s|d|m|ll|re|ve)?$")
_ALIKE = str.maketrans({"ı": "i", "ـ": None, "ى": "ي", "ة": "ه"})
"""Letters that case or spelling does not keep apart: Turkish I, and Arabic endings."""


def visible(surface: str) -> str:
    """A word without the characters that cannot be seen."""
    return _VANISH.sub("", surface)


def fold(surface: str) -> str:
    """What a word is looked up by; accents fall, and with them the vowel signs of Arabic and Hebrew."""
    text = unicodedata.normalize("NFKC", surface).casefold()
    if not text.isascii():
        text = "".join(c for c in unicodedata.normalize("NFD", text) if not _falls(c)).translate(_ALIKE)
        text = unicodedata.normalize("NFC", text)
    return _CLITIC.sub("", text.replace("’", "'").replace(".", ""))


def _falls(character: str) -> bool:
    """Whether a character is an accent; the signs of Indic and Japanese syllables are part of the letter."""
    return unicodedata.combining(character) != 0 and not "\u0900" <= character <= "\u30ff"


@dataclass(frozen=True, slots=True, repr=False)
class Lists:
    """The lists as tables; words are in small letters, and folded if it says so."""

    weekdays: dict[str, int]
    """Folded names of days to their number, Monday being 1."""
    months: dict[str, int]
    """Names of months to their number."""
    numbers: dict[str, str]
    """Number words to digits."""
    counts: frozenset[str]
    """Number words that a text must have; one and two are often said of what the text merely lists."""
    scales: dict[str, int]
    """What multiplies the number before it, by its stem."""
    ones: frozenset[str]
    """What is a number behind "a"."""
    units: dict[str, tuple[str, Decimal]]
    """Names of units to their dimension and how many of its base unit they are."""
    currencies: frozenset[str]
    """Names of currencies that may stand before an amount."""
    forms: dict[str, str]
    """Irregular forms, people of a place and short months, each to the word that stands for all of them."""
    common: frozenset[str]
    """The commonest words of some twenty languages, folded, without those that are words of English too."""
    particles: frozenset[str]
    """Those that are part of a name if they have a capital."""
    opposites: tuple[tuple[str, str], ...]
    """Pairs of words that say the opposite of one another."""
    negations: frozenset[str]
    """What denies, folded."""
    rules: dict[str, frozenset[str]]
    """What single rules look for, by name."""


@cache
def lists() -> Lists:
    """All lists."""
    file = resources.files("steelyard.judge.local.words").joinpath("words.toml")
    read: dict[str, Any] = tomllib.loads(file.read_text(encoding="utf-8"))
    small, tens, ordinals = (read[name].split() for name in ("small", "tens", "ordinals"))
    foreign = _by_first(read["foreign_numbers"])
    return Lists(
        weekdays={fold(name): number for name, number in _numbered(read["weekdays"]).items()},
        months=_numbered(read["months"]),
        numbers=_digits(small) | _digits(["", "", "", *tens], tens=10) | _digits(ordinals) | foreign,
        counts=frozenset([*small, *tens, *foreign]) - {"zero", "one", "two"},
        scales={fold(name): int(factor) for name, factor in _by_first(read["scales"]).items()},
        ones=frozenset(read["ones"].split()),
        units={
            name: (dimension, Decimal(factor))
            for dimension, factor, *names in map(str.split, read["units"])
            for name in names
        },
        currencies=frozenset(read["currencies"].split()),
        forms=_by_first(read["forms"]),
        common=frozenset(map(fold, read["common"].split())) - frozenset(read["common_in_english"].split()),
        particles=frozenset(read["particles"].split()),
        opposites=tuple((one, other) for one, other in map(str.split, read["opposites"].split("|"))),
        negations=frozenset(fold(word) for words in read["negations"].values() for word in words.split()),
        rules={name: frozenset(words.split()) for name, words in read["rules"].items()},
    )


def rule(name: str) -> frozenset[str]:
    """What one rule looks for; nothing under an empty name."""
    return lists().rules[name] if name else frozenset()


def _digits(words: list[str], *, tens: int = 1) -> dict[str, str]:
    return {word: str(tens * value) for value, word in enumerate(words) if word}


def _numbered(groups: list[str]) -> dict[str, int]:
    return {name: number for number, names in enumerate(groups, start=1) for name in names.split()}


def _by_first(groups: list[str]) -> dict[str, str]:
    """Each word of a group to the word that leads it."""
    return {word: first for first, *others in map(str.split, groups) for word in others}
