"""One word as it is compared, its stem, and what it tells; and the lists of words that the rules know.

Weights are frequencies in English. Lists are read from `words.toml` when needed.
"""

from __future__ import annotations

import gzip
import math
import re
import tomllib
import unicodedata
from decimal import Decimal
from functools import cache, lru_cache
from importlib import resources
from typing import Any, Literal, NamedTuple

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


class WordLists(NamedTuple):
    """The lists that are tables; words are in small letters, and folded if it says so."""

    numbers: dict[str, str]
    """Number words to digits."""
    scales: dict[str, int]
    """What multiplies the number before it, by its stem."""
    units: dict[str, tuple[str, Decimal]]
    """Names of units to their dimension and how many of its base unit they are."""
    forms: dict[str, str]
    """Irregular forms, people of a place and short months, each to the word that stands for all of them."""
    opposites: tuple[tuple[str, str], ...]
    """Pairs of words that say the opposite of one another."""
    sets: dict[str, frozenset[str]]
    """The others, for `rule`."""


@cache
def lists() -> WordLists:
    file = resources.files("steelyard.judge").joinpath("words", "words.toml")
    read: dict[str, Any] = tomllib.loads(file.read_text(encoding="utf-8"))
    small, tens, ordinals = (read[name].split() for name in ("small", "tens", "ordinals"))
    foreign = _by_first(read["foreign_numbers"])
    sets = {name: frozenset(words.split()) for name, words in read["rules"].items()}
    sets |= {
        # One and two are often said of what the text merely lists.
        "counts": frozenset([*small, *tens, *foreign]) - {"zero", "one", "two"},
        "common": frozenset(map(fold, read["common"].split())) - frozenset(read["common_in_english"].split()),
        "negations": frozenset(fold(word) for words in read["negations"].values() for word in words.split()),
    }
    return WordLists(
        numbers=_digits(small) | _digits(["", "", "", *tens], tens=10) | _digits(ordinals) | foreign,
        scales={fold(name): int(factor) for name, factor in _by_first(read["scales"]).items()},
        units={
            name.replace("_", " "): (dimension, Decimal(factor))
            for dimension, factor, *names in map(str.split, read["units"])
            for name in names
        },
        forms=_by_first(read["forms"]),
        opposites=tuple((one, other) for one, other in map(str.split, read["opposites"].split("|"))),
        sets=sets,
    )


def rule(name: str) -> frozenset[str]:
    """The words that one rule looks for, folded; nothing under an empty name."""
    return lists().sets[name] if name else frozenset()


def _digits(words: list[str], *, tens: int = 1) -> dict[str, str]:
    return {word: str(tens * value) for value, word in enumerate(words) if word}


def _by_first(groups: list[str]) -> dict[str, str]:
    """Each word of a group to the word that leads it."""
    return {word: first for first, *others in map(str.split, groups) for word in others}


Kind = Literal["word", "number", "name"]


class Word(NamedTuple):
    """One word, the same object wherever it is written the same way."""

    stem: str
    """What it is compared by: words with the same stem count as the same word."""
    surface: str
    """The word as it is written, without invisible characters."""
    weight: float
    """How much it tells: inverse sentence frequency in English."""
    kind: Kind
    """Whether it is a number or (part of) a name; both must be found, where a word may be paraphrased."""
    raw: str = ""
    """The digits of a quantity, whose stem is what it measures."""

    def __repr__(self) -> str:
        """Not what it says: words in a row are content."""
        return f"<{self.kind} of {len(self.surface)} characters>"


Located = tuple[Word, int, int]
"""A word, its first character in the text and one past its last."""


_VOWEL = re.compile(r"[aeiouy]")


@lru_cache(maxsize=65_536)
def stem(folded: str) -> str:
    """The stem of a folded English word; number words become digits.

    A light stemmer (plurals, -ed, -ing, -ly and a final e, with doubled consonants undone): it must not
    conflate words that mean different things, and what it leaves apart the word vectors bring together.
    """
    known = lists()
    if folded in known.numbers:
        return known.numbers[folded]
    word = known.forms.get(folded, folded)
    if len(word) < 4 or not word.isascii():
        return word
    word = _root(_singular(word))
    return word.removesuffix("e") if len(word) > 3 else word


def _singular(word: str) -> str:
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    if word.endswith(("sses", "shes", "ches", "xes")):
        return word[:-2]
    # "glass", "bus" and "this" end in an s of their own.
    return word[:-1] if word.endswith("s") and not word.endswith(("ss", "us", "is")) else word


def _root(word: str) -> str:
    """A word without the ending of a verb or an adverb."""
    for suffix in ("ingly", "edly", "ing", "ied", "ed", "ly"):
        root = word.removesuffix(suffix)
        # What is left must be a word: "string" and "red" keep their endings.
        if root == word or len(root) < 3 or not _VOWEL.search(root):
            continue
        if suffix == "ied":
            return root + "y"
        # "stopped" comes of "stop", but "filled" of "fill".
        doubled = len(root) > 3 and root[-1] == root[-2] and root[-1] not in "lsz"
        return root[:-1] if doubled and suffix != "ly" else root
    return word


@cache
def _frequencies() -> dict[str, float]:
    """Word to zipf frequency, log10 of occurrences in a billion words; see english.NOTICE."""
    data = resources.files("steelyard.judge").joinpath("words", "english.txt.gz").read_bytes()
    table: dict[str, float] = {}
    for line in gzip.decompress(data).decode().splitlines():
        level, _, rest = line.partition(" ")
        if level != "#":
            table.update(dict.fromkeys(rest.split(), int(level) / 10))
    return table


def _idf(zipf: float) -> float:
    """Inverse sentence frequency of a word: -log of the share of 20-word sentences that hold it."""
    return -math.log(-math.expm1(20 * math.log1p(-(10 ** (zipf - 9)))))


_RAREST = 2.9
NUMBER = _idf(3.5)
RARE = _idf(3.5)
TELLING = _idf(5.7)


@lru_cache(maxsize=65_536)
def weight(folded: str) -> float:
    """How much a folded word tells: its inverse sentence frequency, capped for words outside the table."""
    return _idf(_frequencies().get(folded, _RAREST))
