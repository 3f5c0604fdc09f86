"""Words as the verifier compares them: folded, stemmed, weighed, with their places in the text."""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import Decimal, InvalidOperation
from functools import lru_cache

from steelyard.judge.local.words._figures import (
    CHARACTERS,
    COUNTED,
    GROUPED,
    GROUPED_BY_SPACES,
    chinese_number,
    figure,
    has_decimal_comma,
)
from steelyard.judge.local.words._lists import INVISIBLE, MARKS, fold, lists, visible
from steelyard.judge.local.words._quantities import begins, in_measures, plain
from steelyard.judge.local.words._word import NUMBER, RARE, TELLING, Kind, Located, Word, stem, weight

# Scripts without spaces between words are compared character by character, but for what a character alone
# does not say: numbers, days of the week, and negations.
_SPACELESS = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_SPELLED = (
    "(?:星期|礼拜|禮拜|周|週)[一二三四五六日天]|[月火水木金土日]曜日?|ませんでした|ません|(?<![少危汚切])(?:なかった|ない)"
    "|ไม่|没有|沒有|不仅|不僅|不但|非常|未来|未來"
)
_LETTER = rf"[^\W\d_{_SPACELESS}{INVISIBLE}]"
# The first alternative is a shortcut for plain words; the last would match them too.
_PATTERN = (
    rf"[A-Za-z]++(?![\w'’.{INVISIBLE}{MARKS}])"
    # At most so many, and from the first one on: a page of numerals would be read again from each of them.
    rf"|(?P<chinese>(?<![{CHARACTERS}])[{CHARACTERS}]{{1,24}}+(?=\s?[{COUNTED}]))|{_SPELLED}|[{_SPACELESS}]"
    rf"|(?:(?<![\w)\]-])[-−](?=\d))?(?:GROUPS|\d[\d{INVISIBLE}]*(?:[.,:/٫٬]\d+)*)"
    r"|(?<!\w)[^\W\d_](?:\.[^\W\d_](?!\w))+"
    rf"|{_LETTER}+(?:(?:[{MARKS}]|[{INVISIBLE}]++(?=[^\W\d_])|['’](?=[^\W\d_])){_LETTER}*)*"
)
_PATTERNS = {
    False: re.compile(_PATTERN.replace("GROUPS", GROUPED)),
    True: re.compile(_PATTERN.replace("GROUPS", f"{GROUPED}|{GROUPED_BY_SPACES}")),
}
"""What is a word, by whether the text has decimal commas: then spaces may group the digits of a number."""

_CONTRACTED = {"can't": "can", "won't": "will", "shan't": "shall", "ain't": "is"}
_MONEY = frozenset("$€£¥")
_ORDINALS = frozenset({"st", "nd", "rd", "th", "s"})
_VERSIONED = frozenset({"version", "versions", "release", "v", "section", "chapter"})
"""What stands before a number in which 2.10 is not 2.1."""
_LITTLE = 2.0
"""What one of the commonest words of other languages tells: as much as "with"."""


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
    comma = has_decimal_comma(text)
    for match in _PATTERNS[comma].finditer(text, _after_marker(text)):
        read = _forms(match, comma)
        if not read:
            continue
        raw, word = match[0], read[0]
        start, end = match.span()
        if not found:
            word = _opening(word, proper)
        elif (found[-1][0].opens or raw in lists().ones) and _completes(found, text, word, start, end):
            continue
        elif word.kind == "number":
            word = _numbered(word, raw, found[-1][0])
        counted = counted or word.opens
        found.append((word, start, end))
        found.extend([(more, start, end) for more in read[1:]])
    return in_measures(text, found) if measured and counted else found


def _forms(match: re.Match[str], comma: bool) -> tuple[Word, ...]:
    raw = match[0]
    if match.lastgroup:
        return _chinese(raw)
    return _read(raw if raw.isascii() else visible(raw), comma)


_MARKER = re.compile(r"\s*\(?\d{1,2}[.)]\s+(?=\S)")


def _after_marker(text: str) -> int:
    """Where a sentence begins behind the number of an item in a list."""
    match = _MARKER.match(text)
    if match is None or text[match.end() :].partition(" ")[0].casefold() in lists().months:  # "3. Mai"
        return 0
    return match.end()


def _opening(word: Word, proper: Callable[[str], bool]) -> Word:
    """The first word of a sentence, which is a name only if it is rare or never written otherwise."""
    if word.kind != "name":
        return word
    named = word.weight >= RARE or proper(word.surface)
    return word if named and not _ADVERB.search(word.surface) else word._replace(kind="word")


def _numbered(word: Word, raw: str, before: Word) -> Word:
    """A number behind another word, which may say that it is the number of a version."""
    version = "." in raw and before.surface.casefold() in _VERSIONED
    return word._replace(stem=raw) if version else word


_ADVERB = re.compile(r"[a-z]{4}(?:ally|[ai]bly|edly|ingly|ously|[ae]ntly|[ai]tely|ively|fully|arly)$")


def _completes(found: list[Located], text: str, word: Word, start: int, end: int) -> bool:
    """Whether a word belongs to the number before it: `3rd`; `2.5 million`, which becomes 2500000."""
    number, first, last = found[-1]
    digits = "1" if number.surface in ("a", "A") else number.stem
    if not digits.lstrip("-")[:1].isdigit():
        return False
    if start == last and word.stem in _ORDINALS:
        return True
    if start - last > 1 or word.stem not in lists().scales:
        return False
    # 5 m are metres, $5m are millions.
    if word.surface == "m" and text[first - 1 : first] not in _MONEY:
        return False
    try:
        value = Decimal(digits) * lists().scales[word.stem]
    except InvalidOperation:
        return False
    made = Word(plain(value), text[first:end], NUMBER, "number", opens=True)
    found[-1] = (made, first, end)
    return True


@lru_cache(maxsize=4096)
def _chinese(surface: str) -> tuple[Word, ...]:
    """A number in Chinese characters; one and two are often said of what is merely named."""
    value = chinese_number(surface)
    if value is None:
        return (Word(surface, surface, NUMBER, "word"),)
    return (Word(str(value), surface, NUMBER, "number" if value > 2 else "word", opens=True),)


@lru_cache(maxsize=32_768)
def _read(surface: str, comma: bool) -> tuple[Word, ...]:
    """A written word as what it is compared by: none where nothing is left of it, two for `didn't`."""
    if surface[0].isdigit():
        return (Word(figure(surface, comma=comma), surface, NUMBER, "number", opens=True),)
    if surface[0] in "-−":
        return (Word(f"-{figure(surface[1:], comma=comma)}", surface, NUMBER, "number", opens=True),)
    if surface.replace(".", "") in _AMERICA:
        return (Word("america", surface, weight("america"), "name"),)
    folded = fold(surface)
    if not folded:
        return ()
    if (day := _weekday(folded)) is not None:
        return (Word(f"weekday{day}", surface, NUMBER, "name"),)
    if folded.endswith("n't") and len(folded) > 3:
        verb = _CONTRACTED.get(folded, folded[:-3])
        return (
            Word(stem(verb), surface[:-3], weight(verb), "word"),
            Word("not", "not", weight("not"), "word"),
        )
    stemmed = stem(folded)
    opens = begins(surface.casefold(), stemmed)
    tells = _LITTLE if folded in lists().common and not _is_named(surface, folded) else weight(folded)
    return (Word(stemmed, surface, tells, _kind(surface, folded, tells), opens=opens),)


def _weekday(folded: str) -> int | None:
    """Which day of the week a word names, Monday being 1; Korean has its particle in the same word."""
    days = lists().weekdays
    return days.get(folded) or (days.get(folded[:3]) if folded[1:3] == "요일" else None)


def _is_named(surface: str, folded: str) -> bool:
    """Whether a little word of another language is an acronym or part of a name: "MIT", "Los Angeles"."""
    return surface.isupper() or (folded in lists().particles and surface[0].isupper())


def _kind(surface: str, folded: str, tells: float) -> Kind:
    if folded in lists().counts:
        return "number"
    return "name" if len(surface) > 1 and surface[0].isupper() and tells >= TELLING else "word"


_AMERICA = frozenset({"US", "USA"})
"""The one acronym that is a pronoun in small letters."""
