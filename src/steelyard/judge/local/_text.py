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


# Zero-width and bidirectional controls and the soft hyphen: invisible, so they must not tell words apart.
_INVISIBLE = "\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff"
# Scripts without spaces between words are compared character by character.
_SPACELESS = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
# The first alternative is a shortcut for plain words; the last would match them too.
_WORD = re.compile(
    rf"[A-Za-z]++(?![\w'’.{_INVISIBLE}])|"
    rf"[{_SPACELESS}]"
    rf"|\d[\d{_INVISIBLE}]*(?:[.,:/]\d+)*"
    r"|(?<!\w)[^\W\d_](?:\.[^\W\d_](?!\w))+"
    rf"|[^\W\d_{_SPACELESS}][^\W\d_{_SPACELESS}{_INVISIBLE}]*(?:[{_INVISIBLE}]+[^\W\d_]+|['’][^\W\d_]+)*"
)
_VANISH = re.compile(f"[{_INVISIBLE}]")
_CLITIC = re.compile(r"['’](?:s|d|m|ll|re|ve)?$")

_CONTRACTED = {"can't": "can", "won't": "will", "shan't": "shall", "ain't": "is"}
_SCALES = {"hundr": 2, "thousand": 3, "k": 3, "million": 6, "m": 6, "billion": 9, "bn": 9, "trillion": 12}
_ORDINALS = frozenset({"st", "nd", "rd", "th", "s"})


Located = tuple[Word, int, int]
"""A word, its first character in the text and one past its last."""


def words(text: str, *, proper: Callable[[str], bool] = lambda word: False) -> list[Word]:
    """The words of a sentence, in order; arguments as for `located`."""
    return [word for word, _, _ in located(text, proper=proper)]


def located(text: str, *, proper: Callable[[str], bool] = lambda word: False) -> list[Located]:
    """The words of a sentence and where they stand.

    Args:
        text: A sentence: names are told from capitals, and the first word's capital says nothing by itself.
        proper: Whether a capitalised word that opens a sentence is a name.
    """
    found: list[Located] = []
    for match in _WORD.finditer(text):
        raw = match.group()
        read = _read(raw if raw.isascii() else _VANISH.sub("", raw))
        start, end = match.span()
        if not found and read and read[0].kind == "name":
            read = (_opening(read[0], proper),)
        elif (
            found and found[-1][0].stem[0].isdigit() and read and _completes(found, text, read[0], start, end)
        ):
            continue
        found.extend([(word, start, end) for word in read])
    return found


def _opening(word: Word, proper: Callable[[str], bool]) -> Word:
    """The first word of a sentence, which is a name only if it is rare or never written otherwise."""
    return word if word.weight >= _RARE or proper(word.surface) else word._replace(kind="word")


def _completes(found: list[Located], text: str, word: Word, start: int, end: int) -> bool:
    """Whether a word belongs to the number before it: `3rd`; `2.5 million`, which becomes 2500000."""
    number, first, last = found[-1]
    if start == last and word.stem in _ORDINALS:
        return True
    if word.stem not in _SCALES or start - last > 1:
        return False
    try:
        value = Decimal(number.stem).scaleb(_SCALES[word.stem])
    except InvalidOperation:
        return False
    stemmed = f"{value:f}".removesuffix(".0")
    found[-1] = (number._replace(stem=stemmed, surface=text[first:end]), first, end)
    return True


@lru_cache(maxsize=32_768)
def _read(surface: str) -> tuple[Word, ...]:
    """A written word as what it is compared by: none where nothing is left of it, two for `didn't`."""
    if surface[0].isdigit():
        return (Word(_number(surface), surface, _NUMBER, "number"),)
    if surface.replace(".", "") in _AMERICA:
        return (Word("america", surface, weight("america"), "name"),)
    folded = _fold(surface)
    if not folded:
        return ()
    if folded.endswith("n't") and len(folded) > 3:
        verb = _CONTRACTED.get(folded, folded[:-3])
        return (
            Word(stem(verb), surface[:-3], weight(verb), "word"),
            Word("not", "not", weight("not"), "word"),
        )
    return (Word(stem(folded), surface, weight(folded), _kind(surface, folded)),)


def _kind(surface: str, folded: str) -> Kind:
    if folded in COUNTS:
        return "number"
    return "name" if len(surface) > 1 and surface[0].isupper() and weight(folded) >= _TELLING else "word"


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
