"""Numbers as they are compared: however their digits are grouped, and with their unit (6,200 cm is 62 m)."""

from __future__ import annotations

import re
import unicodedata
from decimal import Decimal, InvalidOperation

from steelyard.judge.words._lists import lists
from steelyard.judge.words._word import NUMBER, Located, Word

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
    try:
        return _written(Decimal(digits) * factor) if factor else ""
    except InvalidOperation:
        return ""


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
