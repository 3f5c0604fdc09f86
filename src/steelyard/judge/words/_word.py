"""One word as it is compared, where it stands, its stem, and what it tells: its frequency in English."""

from __future__ import annotations

import gzip
import math
import re
from functools import cache, lru_cache
from importlib import resources
from typing import Literal, NamedTuple

from steelyard.judge.words._lists import lists

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
    data = resources.files("steelyard.judge.words").joinpath("english.txt.gz").read_bytes()
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
