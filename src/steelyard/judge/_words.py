"""Words as the verifier compares them: folded, stemmed, weighed, with their places in the text.

Numbers are compared however their digits are grouped, and with their unit (6,200 cm is 62 m).
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from decimal import Decimal
from functools import lru_cache

from steelyard.judge._word import (
    INVISIBLE,
    MARKS,
    NUMBER,
    RARE,
    TELLING,
    Kind,
    Located,
    Word,
    fold,
    lists,
    rule,
    stem,
    visible,
    weight,
)

_GROUP = "\u00a0\u202f\u2009'’"
"""What groups digits and never separates numbers: spaces that do not break, and the Swiss apostrophe."""
GROUPED = rf"\d{{1,3}}(?:[{_GROUP}]\d{{3}})+(?!\d)(?:[.,]\d+)?|\d{{1,3}}(?: \d{{3}}){{2,}}(?!\d)(?:[.,]\d+)?"
"""Pattern of a number in groups; with plain spaces from two groups on, for "2 500" may be two numbers."""

_BY_COMMAS = re.compile(r"\d{1,3}(?:,\d{2,3})*,\d{3}(?:\.\d+)?")
_BY_DOTS = re.compile(r"\d{1,3}(?:\.\d{3}){2,}(?:,\d+)?|\d{1,3}\.\d{3},\d+")
_DECIMAL_COMMA = re.compile(r"\d+,\d+")
_DECIMAL = re.compile(r"\d+\.\d+")
_PLAIN = re.compile(r"-?\d+(?:\.\d+)?")
_ORDINALS = frozenset({"st", "nd", "rd", "th", "s"})
_SYMBOLS = frozenset("$€£₹₺₩")
_PERCENT = frozenset("%٪％")
_SPACE = " -\u00a0\u202f"


def figure(surface: str) -> str:
    """A number as it is compared: `1250000`, `2.5`; what is not one number stays as it is (`3.11.4`)."""
    if surface.isascii() and surface.isdigit():
        return surface.lstrip("0") or "0"
    text = "".join(str(unicodedata.digit(c)) if c.isdigit() else c for c in surface)
    text = re.sub(rf"[{_GROUP} ]", "", text.replace("٫", ".").replace("٬", ","))
    if _BY_COMMAS.fullmatch(text):
        text = text.replace(",", "")
    elif _BY_DOTS.fullmatch(text):
        text = text.replace(".", "").replace(",", ".")
    elif _DECIMAL_COMMA.fullmatch(text):
        text = text.replace(",", ".")
    if _DECIMAL.fullmatch(text):
        text = text.rstrip("0").rstrip(".")
    return re.sub(r"^0+(?=\d)", "", text)


def is_figure(word: Word) -> bool:
    """Whether a word is compared as digits, "one" and "third" among them."""
    return word.stem[0].isdigit() or (word.stem[0] == "-" and len(word.stem) > 1)


def completes(text: str, before: Located, word: Word, start: int, end: int) -> Located | None:
    """The number that a word completes: `3rd`, `2.5 million`, `twenty-five`; None if it does not."""
    number, first, last = before
    if not is_figure(number) or start - last > 1:
        return None
    if start == last and word.stem in _ORDINALS:
        return before
    # 5 m are metres, $5m are millions.
    if word.surface == "m" and text[first - 1 : first] not in _SYMBOLS:
        return None
    value = _scaled(number.stem, word.stem) or _added(number, word)
    return (Word(value, text[first:end], NUMBER, "number"), first, end) if value else None


def _scaled(digits: str, scale: str) -> str:
    factor = lists().scales.get(scale)
    return _written(Decimal(digits) * factor) if factor and _PLAIN.fullmatch(digits) else ""


def _added(number: Word, word: Word) -> str:
    """Spelled tens or hundreds and what follows them, as one value."""
    spelled = number.stem.isdigit() and number.surface[0].isalpha() and word.surface[0].isalpha()
    if not spelled or not word.stem.isdigit() or word.surface.casefold() not in lists().numbers:
        return ""
    value, more = int(number.stem), int(word.stem)
    fits = (20 <= value < 100 and more < 10) or (100 <= value < 1000 and more < 100)
    return str(value + more) if fits and value % (10 if more < 10 else 100) == 0 else ""


def with_units(text: str, found: list[Located]) -> list[Located]:
    """The words of a sentence with each number and its unit as one quantity."""
    done: list[Located] = []
    at = 0
    while at < len(found):
        word, start, end = found[at]
        unit, last = _unit(text, found, at) if is_figure(word) else ("", at)
        if (
            word.surface.isupper()
            and (code := word.surface.casefold()) in lists().units
            and at + 1 < len(found)
        ):
            number, first, _ = found[at + 1]
            # "EUR 35": the currency before the amount.
            if is_figure(number) and text[end:first] == " ":
                word, unit, last = number, code, at + 1
        if unit:
            end = found[last][2]
            word = Word(_measured(word.stem, unit), text[start:end], NUMBER, "number", word.stem)
        done.append((word, start, end))
        at = last + 1
    return done


def _unit(text: str, found: list[Located], at: int) -> tuple[str, int]:
    """The unit of a number, empty without one, and the place of its last word."""
    _, start, end = found[at]
    behind = text[end : end + 2].strip()[:1]
    if behind in _PERCENT:
        return "%", at
    gap = text[end : found[at + 1][1]] if at + 1 < len(found) else "none"
    if gap.strip() == "°" or (len(gap) < 2 and not gap.strip(_SPACE)):
        for last in (at + 2, at + 1):
            name = text[found[at + 1][1] : found[last][2]].casefold() if last < len(found) else ""
            if (name := f"{gap.strip(_SPACE)}{name}") in lists().units:
                return name, last
    before = text[start - 1 : start]
    sign = before if before in _SYMBOLS else behind
    return (sign, at) if sign in _SYMBOLS else ("", at)


def _measured(value: str, unit: str) -> str:
    """A number with its unit as an amount of the base unit, such as `62 m`."""
    dimension, factor = lists().units[unit]
    return f"{_written(Decimal(value) * factor)} {dimension}" if _PLAIN.fullmatch(value) else value


def _written(amount: Decimal) -> str:
    """An amount without an exponent and without zeros that say nothing."""
    text = f"{amount:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


_BETWEEN_NAMES = re.compile(
    r"^(?:[\s\-–.'’]{1,2}|\s(?:of|of the|de|de la|la|van|van der|von|du|di|da|bin|al|the)\s)$"
)
_BETWEEN_DATES = re.compile(r"^(?:st|nd|rd|th)?(?:,? |\. | of )$")


def entities(sentence: str, proper: Callable[[str], bool]) -> list[str]:
    """The entities of a sentence, in order; `proper`: whether a word that opens it is a name."""
    return [
        sentence[start:end]
        for start, end in _spans(sentence, located(sentence, proper=proper, measured=False))
    ]


def _spans(text: str, found: list[Located]) -> list[tuple[int, int]]:
    spans: list[tuple[int, int]] = []
    previous: Located | None = None
    for place, (word, start, end) in enumerate(found):
        if not _counts(found, place):
            continue
        if previous is not None and _joined(text[previous[2] : start], previous[0], word):
            spans[-1] = (spans[-1][0], end)
        else:
            spans.append((start, end))
        previous = (word, start, end)
    return spans


def _counts(found: list[Located], place: int) -> bool:
    word, _, end = found[place]
    if word.kind != "word":
        return True
    # The capital of a first word says something only next to another name: "Shah Jahan", "New York".
    if place > 0 or len(found) < 2 or not word.surface[0].isupper():
        return False
    follower, start, _ = found[1]
    return follower.kind == "name" and start == end + 1 and word.weight > _FUNCTION


_FUNCTION = 4.0
"""Weight below which a word is one of the two hundred that hold sentences together."""


def _joined(gap: str, one: Word, other: Word) -> bool:
    if one.kind == "number" or other.kind == "number":
        dated = not rule("months").isdisjoint((one.surface.casefold(), other.surface.casefold()))
        return dated and bool(_BETWEEN_DATES.match(gap))
    return bool(_BETWEEN_NAMES.match(gap))


# Scripts without spaces between words are compared character by character, but for negations of several.
_SPACELESS = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_SPELLED = "ませんでした|ません|(?<![少危汚切])(?:なかった|ない)|ไม่|没有|沒有|不仅|不僅|不但|非常|未来|未來"
_LETTER = rf"[^\W\d_{_SPACELESS}{INVISIBLE}]"
# The first alternative is a shortcut for plain words; the last would match them too.
_PATTERN = re.compile(
    rf"[Nn]o one\b|[A-Za-z]++(?![\w'’.{INVISIBLE}{MARKS}])|{_SPELLED}|[{_SPACELESS}]"
    rf"|(?:(?<![\w)\]-])[-−](?=\d))?(?:{GROUPED}|\d[\d{INVISIBLE}]*(?:[.,:/٫٬]\d+)*)"
    r"|(?<!\w)[^\W\d_](?:\.[^\W\d_](?!\w))+"
    rf"|{_LETTER}+(?:(?:[{MARKS}]|[{INVISIBLE}]++(?=[^\W\d_])|['’](?=[^\W\d_])){_LETTER}*)*"
)
_CONTRACTED = {"can't": "can", "won't": "will", "shan't": "shall", "ain't": "is"}
_AMERICA = frozenset({"US", "USA"})
"""The one acronym that is a pronoun in small letters."""
_LITTLE = 2.0
"""What one of the commonest words of other languages tells: as much as "with"."""
_MARKER = re.compile(r"\s*\(?\d{1,2}[.)]\s+(?=\S)")
_ADVERB = re.compile(r"[a-z]{4}(?:ally|[ai]bly|edly|ingly|ously|[ae]ntly|[ai]tely|ively|fully|arly)$")


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
        measured: Whether a number and its unit become one number.
    """
    found: list[Located] = []
    counted = False
    marker = _MARKER.match(text)
    for match in _PATTERN.finditer(text, marker.end() if marker else 0):
        raw = match[0]
        read = _read(raw if raw.isascii() else visible(raw))
        if not read:
            continue
        word, (start, end) = read[0], match.span()
        if not found:
            word = _opening(word, proper)
        elif counted and (whole := completes(text, found[-1], word, start, end)) is not None:
            found[-1] = whole
            continue
        counted = counted or is_figure(word)
        found.append((word, start, end))
        found.extend([(more, start, end) for more in read[1:]])
    return with_units(text, found) if measured and counted else found


def _opening(word: Word, proper: Callable[[str], bool]) -> Word:
    """The first word of a sentence, which is a name only if it is rare or never written otherwise."""
    if word.kind != "name":
        return word
    named = word.weight >= RARE or proper(word.surface)
    return word if named and not _ADVERB.search(word.surface) else word._replace(kind="word")


@lru_cache(maxsize=32_768)
def _read(surface: str) -> tuple[Word, ...]:
    """A written word as what it is compared by: none where nothing is left of it, two for `didn't`."""
    surface = "nobody" if surface[2:] == " one" else surface
    if surface[0].isdigit():
        return (Word(figure(surface), surface, NUMBER, "number"),)
    if surface[0] in "-−":
        return (Word(f"-{figure(surface[1:])}", surface, NUMBER, "number"),)
    if surface.replace(".", "") in _AMERICA:
        return (Word("america", surface, weight("america"), "name"),)
    folded = fold(surface)
    if not folded:
        return ()
    if folded.endswith("n't") and len(folded) > 3:
        verb = _CONTRACTED.get(folded, folded[:-3])
        return (
            Word(stem(verb), surface[:-3], weight(verb), "word"),
            Word("not", "not", weight("not"), "word"),
        )
    tells = _LITTLE if folded in rule("common") and not _is_named(surface, folded) else weight(folded)
    return (Word(stem(folded), surface, tells, _kind(surface, folded, tells)),)


def _is_named(surface: str, folded: str) -> bool:
    """Whether a little word of another language is an acronym or part of a name: "MIT", "Los Angeles"."""
    return surface.isupper() or (folded in rule("particles") and surface[0].isupper())


def _kind(surface: str, folded: str, tells: float) -> Kind:
    if folded in rule("counts"):
        return "number"
    return "name" if len(surface) > 1 and surface[0].isupper() and tells >= TELLING else "word"
