"""Words as the verifier compares them: folded, stemmed, weighed, with their places in the text."""

from __future__ import annotations

import gzip
import math
import re
import unicodedata
from collections.abc import Callable
from decimal import Decimal, InvalidOperation
from functools import cache, lru_cache
from importlib import resources
from typing import Literal, NamedTuple

from steelyard.judge.local._forms import COUNTS, FORMS, NUMBERS

__all__ = ["Word", "stem", "weight", "words"]

Kind = Literal["word", "number", "name"]


class Word(NamedTuple):
    """One word of a text."""

    stem: str
    """What it is compared by: words with the same stem count as the same word."""
    surface: str
    """The word as it is written, without invisible characters."""
    start: int
    """First character in the text."""
    end: int
    """One past its last character."""
    weight: float
    """How much it tells: inverse sentence frequency in English."""
    kind: Kind
    """Whether it is a number or (part of) a name; both must be found, where a word may be paraphrased."""


# Zero-width and bidirectional controls and the soft hyphen: invisible, so they must not tell words apart.
_INVISIBLE = "\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff"
# Scripts without spaces between words are compared character by character.
_SPACELESS = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_WORD = re.compile(
    rf"[{_SPACELESS}]"
    rf"|\d[\d{_INVISIBLE}]*(?:[.,:/]\d+)*"
    r"|(?<!\w)[^\W\d_](?:\.[^\W\d_](?!\w))+"
    rf"|[^\W\d_{_SPACELESS}][^\W\d_{_SPACELESS}{_INVISIBLE}]*(?:[{_INVISIBLE}]+[^\W\d_]+|['’][^\W\d_]+)*"
)
_VANISH = re.compile(f"[{_INVISIBLE}]")
_CLITIC = re.compile(r"['’](?:s|d|m|ll|re|ve)?$")

_CONTRACTED = {"can't": "can", "won't": "will", "shan't": "shall", "ain't": "is"}
_SCALES = {"hundr": 2, "thousand": 3, "k": 3, "million": 6, "m": 6, "billion": 9, "bn": 9, "trillion": 12}
_ORDINAL = re.compile(r"^(?:st|nd|rd|th|s)$")


def words(text: str, *, proper: Callable[[str], bool] = lambda word: False) -> list[Word]:
    """The words of a text, in order.

    Args:
        text: A sentence: names are told from capitals, and the first word's capital says nothing by itself.
        proper: Whether a capitalised word that opens a sentence is a name.
    """
    found: list[Word] = []
    for match in _WORD.finditer(text):
        raw = match.group()
        surface = _VANISH.sub("", raw) if not raw.isascii() else raw
        key, tells, number = _read(surface)
        if not key:
            continue
        before = found[-1] if found else None
        if before and before.stem[0].isdigit():
            if before.end == match.start() and _ORDINAL.match(key):
                continue
            if key in _SCALES and match.start() - before.end <= 1:
                found[-1] = _scaled(before, key, text[before.start : match.end()])
                continue
        if key.endswith("n't") and len(key) > 3:
            verb = stem(_CONTRACTED.get(key, key[:-3]))
            middle = match.end() - 3
            found.append(Word(verb, surface[:-3], match.start(), middle, weight(verb), "word"))
            found.append(Word("not", "not", middle, match.end(), weight("not"), "word"))
            continue
        kind: Kind = "word"
        if number:
            kind = "number"
        elif surface[0].isupper() and len(surface) > 1:
            named = tells >= _RARE or proper(surface) if not found else tells >= _TELLING
            kind = "name" if named else "word"
        found.append(Word(key, surface, match.start(), match.end(), tells, kind))
    return found


def _scaled(number: Word, scale: str, surface: str) -> Word:
    """`2.5 million` is the number 2500000."""
    try:
        value = Decimal(number.stem).scaleb(_SCALES[scale])
    except InvalidOperation:
        return number
    return number._replace(
        stem=f"{value:f}".removesuffix(".0"), surface=surface, end=number.start + len(surface)
    )


@lru_cache(maxsize=65_536)
def _read(surface: str) -> tuple[str, float, bool]:
    """Stem and weight of a written word, and whether it is a number."""
    if surface[0].isdigit():
        return _number(surface), _NUMBER, True
    if surface.replace(".", "") in _AMERICA:
        return "america", weight("america"), False
    folded = _fold(surface)
    return stem(folded), weight(folded), folded in COUNTS


_AMERICA = frozenset({"US", "USA"})
"""The one acronym that is a pronoun in small letters."""


def _fold(surface: str) -> str:
    """Case, width, accents, possessives and the stops of `U.S.` do not tell words apart."""
    text = unicodedata.normalize("NFKC", surface).casefold()
    if not text.isascii():
        text = "".join(c for c in unicodedata.normalize("NFD", text) if not unicodedata.combining(c))
    return _CLITIC.sub("", text.replace("’", "'").replace(".", ""))


def _number(surface: str) -> str:
    """1,000 is 1000, 2.50 is 2.5, and Arabic digits are the same in every script."""
    digits = "".join(str(unicodedata.digit(c)) if c.isdigit() else c for c in surface)
    digits = re.sub(r",(?=\d{3}(?:\D|$))", "", digits)
    if re.fullmatch(r"\d+\.\d+", digits):
        digits = digits.rstrip("0").rstrip(".")
    return digits.lstrip("0") or "0"


_VOWEL = re.compile(r"[aeiouy]")


@lru_cache(maxsize=65_536)
def stem(folded: str) -> str:
    """The stem of a folded English word; number words become digits.

    A light stemmer (plurals, -ed, -ing, -ly and a final e, with doubled consonants undone): it must not
    conflate words that mean different things, and what it leaves apart the word vectors bring together.
    """
    if folded in NUMBERS:
        return NUMBERS[folded]
    word = FORMS.get(folded, folded)
    if len(word) < 4 or not word.isascii():
        return word
    if word.endswith("ies") and len(word) > 4:
        word = word[:-3] + "y"
    elif word.endswith(("sses", "shes", "ches", "xes")):
        word = word[:-2]
    elif word.endswith("s") and not word.endswith(("ss", "us", "is")):
        word = word[:-1]
    for suffix in ("ingly", "edly", "ing", "ied", "ed", "ly"):
        root = word.removesuffix(suffix)
        if root != word and len(root) >= 3 and _VOWEL.search(root):
            word = root + "y" if suffix == "ied" else root
            if len(word) > 3 and word[-1] == word[-2] and word[-1] not in "lsz" and suffix != "ly":
                word = word[:-1]
            break
    return word.removesuffix("e") if len(word) > 3 else word


@cache
def _frequencies() -> dict[str, float]:
    """Word to zipf frequency, log10 of occurrences in a billion words; see english.NOTICE."""
    data = resources.files("steelyard.judge.local").joinpath("english.txt.gz").read_bytes()
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
_NUMBER = _idf(3.5)
_RARE = _idf(3.5)
_TELLING = _idf(5.7)


@lru_cache(maxsize=65_536)
def weight(folded: str) -> float:
    """How much a folded word tells: its inverse sentence frequency, capped for words outside the table."""
    return _idf(_frequencies().get(folded, _RAREST))
