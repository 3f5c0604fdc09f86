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
from steelyard.judge.local._numbers import MONTHS, UNITS, measure

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


# Zero-width and bidirectional controls and the soft hyphen: invisible, so they must not tell words apart.
_INVISIBLE = "\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff"
# Scripts without spaces between words are compared character by character.
_SPACELESS = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
# The first alternative is a shortcut for plain words; the last would match them too.
_WORD = re.compile(
    rf"[A-Za-z]++(?![\w'’.{_INVISIBLE}])|"
    rf"[{_SPACELESS}]"
    rf"|(?:(?<![\w)\]-])[-−](?=\d))?\d[\d{_INVISIBLE}]*(?:[.,:/]\d+)*"
    r"|(?<!\w)[^\W\d_](?:\.[^\W\d_](?!\w))+"
    rf"|[^\W\d_{_SPACELESS}][^\W\d_{_SPACELESS}{_INVISIBLE}]*(?:[{_INVISIBLE}]+[^\W\d_]+|['’][^\W\d_]+)*"
)
_VANISH = re.compile(f"[{_INVISIBLE}]")
_CLITIC = re.compile(r"['’](?:s|d|m|ll|re|ve)?$")

_CONTRACTED = {"can't": "can", "won't": "will", "shan't": "shall", "ain't": "is"}
_SCALES = {"hundr": 2, "thousand": 3, "k": 3, "million": 6, "m": 6, "billion": 9, "bn": 9, "trillion": 12}
_MONEY = frozenset("$€£¥")
_ORDINALS = frozenset({"st", "nd", "rd", "th", "s"})


Located = tuple[Word, int, int]
"""A word, its first character in the text and one past its last."""


def words(text: str, *, proper: Callable[[str], bool] = lambda word: False) -> list[Word]:
    """The words of a sentence, in order; arguments as for `located`."""
    return [word for word, _, _ in located(text, proper=proper)]


def located(
    text: str, *, proper: Callable[[str], bool] = lambda word: False, measured: bool = True
) -> list[Located]:
    """The words of a sentence and where they stand.

    Args:
        text: A sentence: names are told from capitals, and the first word's capital says nothing by itself.
        proper: Whether a capitalised word that opens a sentence is a name.
        measured: Whether quantities, fractions and dates each become one number.
    """
    found: list[Located] = []
    for match in _WORD.finditer(text, _after_marker(text)):
        raw = match.group()
        read = _read(raw if raw.isascii() else _VANISH.sub("", raw))
        start, end = match.span()
        if not found and read and read[0].kind == "name":
            read = (_opening(read[0], proper),)
        elif (
            found
            and found[-1][0].stem.lstrip("-")[:1].isdigit()
            and read
            and _completes(found, text, read[0], start, end)
        ):
            continue
        found.extend([(word, start, end) for word in read])
    return in_measures(text, found) if measured else found


_MARKER = re.compile(r"\s*\(?\d{1,2}[.)]\s+(?=\S)")


def _after_marker(text: str) -> int:
    """Where a sentence begins behind the number of an item in a list."""
    match = _MARKER.match(text)
    return match.end() if match else 0


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
    # 5 m are metres, $5m are millions.
    if word.surface == "m" and text[first - 1 : first] not in _MONEY:
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
    if surface[0] in "-−":
        return (Word(f"-{_number(surface[1:])}", surface, _NUMBER, "number"),)
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


def in_measures(text: str, found: list[Located]) -> list[Located]:
    """The words of a sentence with spelled numbers, quantities, fractions and dates each as one number."""
    if not any(
        word.kind == "number" or word.stem[:1].isdigit() or word.surface in _HALF for word, *_ in found
    ):
        return found
    done: list[Located] = []
    at = 0
    while at < len(found):
        word = found[at][0]
        if not _begins(word.surface, word.stem):
            done.append(found[at])
            at += 1
            continue
        step, joined = _joined_at(text, found, at)
        done.extend(joined)
        at += step
    return done


@lru_cache(maxsize=32_768)
def _begins(surface: str, stem: str) -> bool:
    """Whether a quantity, a fraction or a date can begin with a word: most words are passed over by this."""
    return stem.lstrip("-")[:1].isdigit() or surface.casefold() in _BEGINNINGS or surface.casefold() in MONTHS


def _joined_at(text: str, found: list[Located], at: int) -> tuple[int, list[Located]]:
    """What begins at a word, and how many words it takes."""
    for reading in (_iso_date, _day_of_month, _fraction):
        if (read := reading(text, found, at)) is not None:
            return read
    word, start, end = found[at]
    if not word.stem.lstrip("-")[:1].isdigit() or (word.kind != "number" and word.stem not in _SMALL):
        return 1, [_lone_month(found, at)]
    value, step = _compound(text, found, at)
    if step > 1:
        end = found[at + step - 1][2]
        word = Word(value, text[start:end], _NUMBER, "number")
    unit = _unit(text, found, at + step, end)
    if unit is None:
        return step, [(word, start, end)]
    dimension, last = unit
    amount = measure(word.stem, dimension)
    end = found[last][2]
    quantity = Word(amount or word.stem, text[start:end], _NUMBER, "number", word.stem)
    return last + 1 - at, [(quantity, start, end)]


_BEGINNINGS = frozenset({"half", "a", "one"})
_SMALL = frozenset({"0", "1", "2"})
_HALF = frozenset({"half", "Half", "quarter", "third", "thirds", "quarters", "tenth"})
_PARTS = {"half": "2", "third": "3", "quarter": "4", "fifth": "5", "tenth": "10", "halves": "2"}
_PARTS |= {f"{name}s": number for name, number in _PARTS.items()}
_DAY = re.compile(r"[-\s.]{0,4}(?:st|nd|rd|th)?[\s.,]{0,4}(?:of |de |the )?")


def _iso_date(text: str, found: list[Located], at: int) -> tuple[int, list[Located]] | None:
    """`1998-06-03`, which is read as a year and two numbers below zero, and `3.6.1998`, one number."""
    word, start, end = found[at]
    if word.stem.count(".") == 2 and word.stem.replace(".", "").isdigit():
        day, month, year = word.stem.split(".")
        step, last = 1, end
    elif at + 2 < len(found) and re.fullmatch(r"\d{4}-\d{2}-\d{2}", text[start : found[at + 2][2]]):
        year, month, day = text[start : found[at + 2][2]].split("-")
        step, last = 3, found[at + 2][2]
    else:
        return None
    if len(year) != 4 or not (1 <= int(month) <= 12 and 1 <= int(day) <= 31):
        return None
    made = [
        Word(f"{int(month)}-{int(day)}", text[start:last], _NUMBER, "number"),
        Word(f"month{int(month)}", text[start:last], _NUMBER, "number"),
        Word(year, text[start:last], _NUMBER, "number"),
    ]
    return step, [(one, start, last) for one in made]


def _day_of_month(text: str, found: list[Located], at: int) -> tuple[int, list[Located]] | None:
    """`14 March`, `March 14`, `14th of March`, `el 14 de marzo`: the day and the month."""
    if at + 1 >= len(found):
        return None
    last = at + 1
    if found[last][0].surface in ("of", "de") and at + 2 < len(found):
        last += 1
    (one, start, _), (other, _, end) = found[at], found[last]
    for day, month in ((one, other), (other, one)):
        number = MONTHS.get(month.surface.casefold())
        if number and day.stem.isdigit() and 1 <= int(day.stem) <= 31 and day.surface[0].isdigit():
            if not _DAY.fullmatch(text[found[at][2] : found[last][1]]):
                return None
            named = Word(f"month{number}", month.surface, _NUMBER, "number")
            both = Word(f"{number}-{int(day.stem)}", text[start:end], _NUMBER, "number")
            return last + 1 - at, [(both, start, end), (named, start, end)]
    return None


def _lone_month(found: list[Located], at: int) -> Located:
    """A month beside a year, or with a capital inside of a sentence, must be found like a number."""
    word, start, end = found[at]
    number = MONTHS.get(word.surface.casefold())
    if number is None:
        return found[at]
    beside = [found[place][0] for place in (at - 1, at + 1, at + 2) if 0 <= place < len(found)]
    dated = any(len(other.stem) == 4 and other.stem.isdigit() for other in beside)
    if dated or (at > 0 and word.surface[0].isupper() and len(word.surface) > 3):
        return Word(f"month{number}", word.surface, _NUMBER, "number"), start, end
    return found[at]


def _fraction(text: str, found: list[Located], at: int) -> tuple[int, list[Located]] | None:
    """`half a kilogram` is a quantity; `half of`, `a third of` and `two thirds` are numbers."""
    word, start, end = found[at]
    name = word.surface.casefold()
    following = [other.surface.casefold() for other, *_ in found[at + 1 : at + 3]]
    if name == "half" and len(following) == 2 and following[0] in ("a", "an") and following[1] in UNITS:
        last = found[at + 2][2]
        amount = measure("0.5", following[1]) or "1/2"
        return 3, [(Word(amount, text[start:last], _NUMBER, "number"), start, last)]
    if name == "half":
        return 1, [(Word("1/2", word.surface, _NUMBER, "number"), start, end)]
    if following and following[0] in _PARTS and following[0] not in ("half", "second"):
        count = "1" if name in ("a", "one") else word.stem
        plural = following[0].endswith("s")
        partitive = plural or (len(following) > 1 and following[1] == "of")
        if count.isdigit() and partitive:
            last = found[at + 1][2]
            made = Word(f"{count}/{_PARTS[following[0]]}", text[start:last], _NUMBER, "number")
            return 2, [(made, start, last)]
    return None


def _compound(text: str, found: list[Located], at: int) -> tuple[str, int]:
    """`twenty-five` and `three hundred and twenty` as one value, and how many words they are."""
    value, step = found[at][0].stem, 1
    while at + step < len(found):
        gap = text[found[at + step - 1][2] : found[at + step][1]]
        following, skip = found[at + step][0], 1
        if following.surface == "and" and at + step + 1 < len(found):
            following, skip = found[at + step + 1][0], 2
        small = following.stem
        spelled = following.surface.isalpha() and small.isdigit() and following.surface.casefold() in NUMBERS
        if (
            not spelled
            or gap not in ("-", " ")
            or not value.isdigit()
            or not found[at][0].surface[0].isalpha()
        ):
            break
        tens = skip == 1 and int(value) % 10 == 0 and int(value) % 100 >= 20 and int(small) < 10
        hundreds = int(value) >= 100 and int(value) % 100 == 0 and int(small) < 100
        if not tens and not hundreds:
            break
        value, step = str(int(value) + int(small)), step + skip
    return value, step


def _unit(text: str, found: list[Located], at: int, end: int) -> tuple[str, int] | None:
    """The unit behind a number that ends at `end`, and its place; "degrees Celsius" counts as one."""
    if at < len(found) and found[at][0].surface.casefold() in ("degree", "degrees", "grad"):
        name = found[at + 1][0].surface.casefold() if at + 1 < len(found) else ""
        return (name, at + 1) if name in ("celsius", "fahrenheit") else None
    if at >= len(found):
        return ("%", at - 1) if text[end : end + 2].strip()[:1] == "%" else None
    gap, name = text[end : found[at][1]], found[at][0].surface.casefold()
    if gap.lstrip().startswith("%"):
        return "%", at - 1
    if gap.strip() == "°":
        name = f"°{name}"
    elif gap.strip(" -\u00a0\u202f") or len(gap) > 1:
        return None
    return (name, at) if name in UNITS else None


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
