"""Words as the verifier compares them: folded, stemmed, weighed, with their places in the text."""

from __future__ import annotations

import gzip
import math
import re
import unicodedata
from functools import cache, lru_cache
from importlib import resources
from typing import Literal, NamedTuple

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
    rf"|[^\W\d_{_SPACELESS}][^\W\d_{_SPACELESS}{_INVISIBLE}]*(?:[{_INVISIBLE}]+[^\W\d_]+|['’][^\W\d_]+|(?<=\b\w)\.(?=\w\b))*"
)
_VANISH = re.compile(f"[{_INVISIBLE}]")
_CLITIC = re.compile(r"['’](?:s|d|m|ll|re|ve)?$")

_NUMBERS = """
zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen
seventeen eighteen nineteen twenty
"""
_TENS = "thirty forty fifty sixty seventy eighty ninety"
_ORDINALS = "zeroth first second third fourth fifth sixth seventh eighth ninth tenth"
_NUMBER_WORDS: dict[str, str] = {
    **{word: str(value) for value, word in enumerate(_NUMBERS.split())},
    **{word: str(value * 10) for value, word in enumerate(_TENS.split(), start=3)},
    **{word: str(value) for value, word in enumerate(_ORDINALS.split())},
}
_ORDINAL = re.compile(r"^(?:st|nd|rd|th|s)$")


def words(text: str) -> list[Word]:
    """The words of a text, in order.

    Args:
        text: A sentence: names are told from capitals, and the first word's capital says nothing.
    """
    found: list[Word] = []
    for match in _WORD.finditer(text):
        raw = match.group()
        surface = _VANISH.sub("", raw) if not raw.isascii() else raw
        key, tells, number = _read(surface)
        if not key:
            continue
        if found and found[-1].kind == "number" and found[-1].end == match.start() and _ORDINAL.match(key):
            continue
        kind: Kind = "number" if number else "name" if _is_name(surface, tells, first=not found) else "word"
        found.append(Word(key, surface, match.start(), match.end(), tells, kind))
    return found


def _is_name(surface: str, tells: float, *, first: bool) -> bool:
    if not surface[0].isupper() or len(surface) < 2:
        return False
    return tells >= _RARE if first else tells >= _TELLING


@lru_cache(maxsize=65_536)
def _read(surface: str) -> tuple[str, float, bool]:
    """Stem and weight of a written word, and whether it is a number."""
    if surface[0].isdigit():
        return _number(surface), _NUMBER, True
    folded = _fold(surface)
    return stem(folded), weight(folded), False


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
    if folded in _NUMBER_WORDS:
        return _NUMBER_WORDS[folded]
    word = _IRREGULAR.get(folded, folded)
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


_FORMS = """
be am is are was were been being|have has had having|do does did done doing|go goes went gone|say said
make made|take took taken|come came|see saw seen|get got gotten|give gave given|find found|think thought
tell told|become became|leave left|feel felt|bring brought|begin began begun|keep kept|hold held
write wrote written|stand stood|hear heard|mean meant|meet met|run ran|pay paid|sit sat|speak spoke spoken
lead led|grow grew grown|lose lost|fall fell fallen|send sent|build built|understand understood
draw drew drawn|break broke broken|spend spent|rise rose risen|drive drove driven|buy bought
wear wore worn|choose chose chosen|win won|teach taught|catch caught|fight fought|sell sold|fly flew flown
throw threw thrown|know knew known|show shown|sing sang sung|swim swam swum|drink drank drunk
eat ate eaten|forget forgot forgotten|steal stole stolen|shoot shot|sleep slept|seek sought
hide hid hidden|bear bore born borne|die dying|lie lying|man men|woman women|child children|person people
life lives|wife wives|leaf leaves|foot feet|tooth teeth|mouse mice|century centuries|a an
"""
_IRREGULAR = {
    form: group.split()[0]
    for line in _FORMS.split("\n")
    for group in line.split("|")
    for form in group.split()[1:]
}


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
