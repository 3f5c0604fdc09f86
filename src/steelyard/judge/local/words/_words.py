"""Words as the verifier compares them: folded, stemmed, weighed, with their places in the text."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from decimal import Decimal, InvalidOperation
from functools import lru_cache

from steelyard.judge.local.words._forms import COUNTS
from steelyard.judge.local.words._quantities import begins, in_measures
from steelyard.judge.local.words._stems import NUMBER, RARE, TELLING, stem, weight
from steelyard.judge.local.words._word import Kind, Located, Word

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
    counted = False
    for match in _WORD.finditer(text, _after_marker(text)):
        raw = match[0]
        read = _read(raw if raw.isascii() else _VANISH.sub("", raw))
        if not read:
            continue
        start, end = match.span()
        word = read[0]
        if not found:
            word = _opening(word, proper) if word.kind == "name" else word
        elif found[-1][0].opens and _completes(found, text, word, start, end):
            continue
        counted = counted or word.opens
        found.append((word, start, end))
        found.extend([(more, start, end) for more in read[1:]])
    return in_measures(text, found) if measured and counted else found


_MARKER = re.compile(r"\s*\(?\d{1,2}[.)]\s+(?=\S)")


def _after_marker(text: str) -> int:
    """Where a sentence begins behind the number of an item in a list."""
    match = _MARKER.match(text)
    return match.end() if match else 0


def _opening(word: Word, proper: Callable[[str], bool]) -> Word:
    """The first word of a sentence, which is a name only if it is rare or never written otherwise."""
    return word if word.weight >= RARE or proper(word.surface) else word._replace(kind="word")


def _completes(found: list[Located], text: str, word: Word, start: int, end: int) -> bool:
    """Whether a word belongs to the number before it: `3rd`; `2.5 million`, which becomes 2500000."""
    number, first, last = found[-1]
    if not number.stem.lstrip("-")[:1].isdigit():
        return False
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
        return (Word(_number(surface), surface, NUMBER, "number", opens=True),)
    if surface[0] in "-−":
        return (Word(f"-{_number(surface[1:])}", surface, NUMBER, "number", opens=True),)
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
    stemmed = stem(folded)
    opens = begins(surface.casefold(), stemmed)
    return (Word(stemmed, surface, weight(folded), _kind(surface, folded), opens=opens),)


def _kind(surface: str, folded: str) -> Kind:
    if folded in COUNTS:
        return "number"
    return "name" if len(surface) > 1 and surface[0].isupper() and weight(folded) >= TELLING else "word"


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
