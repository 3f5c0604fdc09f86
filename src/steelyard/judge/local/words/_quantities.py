"""Numbers of a sentence with what belongs to them: units, fractions, dates, spelled numbers."""

from __future__ import annotations

import re
from collections.abc import Sequence
from decimal import Decimal

from steelyard.judge.local.words._calendar import MONTHS
from steelyard.judge.local.words._forms import NUMBERS
from steelyard.judge.local.words._numbers import (
    CURRENCIES,
    POWERS,
    SYMBOLS,
    UNITS,
    measure,
    plain,
)
from steelyard.judge.local.words._stems import NUMBER
from steelyard.judge.local.words._word import Located, Word


def begins(folded: str, stem: str) -> bool:
    """Whether a quantity, a fraction or a date may begin with a word: most are passed over by this."""
    return stem.lstrip("-")[:1].isdigit() or folded in _OPENING or folded in MONTHS


def in_measures(text: str, found: list[Located]) -> list[Located]:
    """The words of a sentence with spelled numbers, quantities, fractions and dates each as one number."""
    done: list[Located] = []
    at = 0
    while at < len(found):
        if not found[at][0].opens:
            done.append(found[at])
            at += 1
            continue
        step, joined = _joined_at(text, found, at)
        done.extend(joined)
        at += step
    return done


def _joined_at(text: str, found: list[Located], at: int) -> tuple[int, list[Located]]:
    """What begins at a word, and how many words it takes."""
    for reading in (_written_date, _day_of_month, _fraction, _below_zero, _clock, _and_a_half, _money):
        if (read := reading(text, found, at)) is not None:
            return read
    word, start, end = found[at]
    if not word.stem.lstrip("-")[:1].isdigit() or (word.kind != "number" and word.stem not in _SMALL):
        return 1, [_lone_month(found, at)]
    if word.surface == "one" and at > 0 and found[at - 1][0].surface.casefold() == "no":
        return 1, [(word._replace(stem="nobody", kind="word"), start, end)]
    value, step = _compound(text, found, at)
    if step > 1:
        end = found[at + step - 1][2]
        word = Word(value, text[start:end], NUMBER, "number")
    unit = _unit(text, found, at + step, end) or _symbol(text, start, end, at + step)
    if unit is None:
        return step, [(word, start, end)]
    name, last = unit
    end = found[last][2]
    return last + 1 - at, [(_quantity(text, start, end, word.stem, name), start, end)]


def _quantity(text: str, start: int, end: int, value: str, unit: str) -> Word:
    """An amount of something; pounds weigh, but where the sentence speaks of paying."""
    raw = value
    if unit in ("pound", "pounds"):
        money, mass = measure(value, "gbp") or value, measure(value, "lb") or value
        made, raw = (money, mass) if _PAYING.search(text) else (mass, money)
    else:
        made = measure(value, unit) or value
    return Word(made, text[start:end], NUMBER, "number", raw)


_PAYING = re.compile(
    r"\b(?:cost|pric|fee|paid|pay|budget|charg|salar|rent|wage|fine|tax|loan|grant|earn|revenue|profit|sold|worth"
    r"|sell|bought|spen[dt]|sterling|raised|donat|invest)|£",
    re.IGNORECASE,
)


_SMALL = frozenset({"0", "1", "2"})
_PARTS = {"half": "2", "third": "3", "quarter": "4", "fifth": "5", "tenth": "10", "halves": "2"}
_PARTS |= {f"{name}s": number for name, number in _PARTS.items()}
_OPENING = frozenset({*_PARTS, *CURRENCIES, "minus", "moins"})
_DAY = re.compile(r"[-\s.]{0,4}(?:st|nd|rd|th)?[\s.,]{0,4}(?:of |de |the )?")


def _written_date(text: str, found: list[Located], at: int) -> tuple[int, list[Located]] | None:
    """`1998-06-03`, read as a year and two numbers below zero, `3.6.1998`, `25/12/1998`, `1998/12/25`."""
    word, start, end = found[at]
    following = found[at + 2][2] if at + 2 < len(found) else start
    if re.fullmatch(r"\d{4}-\d{2}-\d{2}", text[start:following]):
        parts, step, last = text[start:following].split("-"), 3, following
    else:
        parts, step, last = re.split(r"[./]", word.stem), 1, end
    if len(parts) != 3 or not all(part.isdigit() for part in parts):
        return None
    ordered = parts if len(parts[0]) == 4 else _day_last(parts, slashes="/" in word.stem)
    if ordered is None:
        return None
    year, month, day = ordered
    if len(year) != 4 or not (1 <= int(month) <= 12 and 1 <= int(day) <= 31):
        return None
    made = [
        Word(f"{int(month)}-{int(day)}", text[start:last], NUMBER, "number"),
        Word(f"month{int(month)}", text[start:last], NUMBER, "number"),
        Word(year, text[start:last], NUMBER, "number"),
    ]
    return step, [(one, start, last) for one in made]


def _day_last(parts: Sequence[str], *, slashes: bool) -> Sequence[str] | None:
    """A date that begins with its day as year, month and day; with slashes it may begin with the month.

    None where both may be either: 3/6/1998 is two days.
    """
    day, month, year = parts
    if slashes and int(month) > 12:
        return year, day, month
    if slashes and int(day) <= 12 and int(day) != int(month):
        return None
    return year, month, day


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
            named = Word(f"month{number}", month.surface, NUMBER, "number")
            both = Word(f"{number}-{int(day.stem)}", text[start:end], NUMBER, "number")
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
        return Word(f"month{number}", word.surface, NUMBER, "number"), start, end
    return found[at]


def _fraction(text: str, found: list[Located], at: int) -> tuple[int, list[Located]] | None:
    """`half a kilogram` is a quantity; `half of`, `a third of` and `two thirds` are numbers."""
    word, start, end = found[at]
    name = word.surface.casefold()
    behind = [other.surface.casefold() for other, *_ in found[at + 1 : at + 3]]
    first, second = (*behind, "", "")[:2]
    if name == "half" and first in ("a", "an") and second in UNITS:
        last = found[at + 2][2]
        amount = measure("0.5", second) or "1/2"
        return 3, [(Word(amount, text[start:last], NUMBER, "number"), start, last)]
    if name == "half":
        return 1, [(Word("1/2", word.surface, NUMBER, "number", "50 %"), start, end)]
    if name in _PARTS and first == "of" and at > 0 and found[at - 1][0].surface in ("a", "A"):
        return 1, [(_share(1, int(_PARTS[name]), word.surface), start, end)]
    count = "1" if name == "one" else word.stem
    if not count.isdigit() or not _counted(first, second):
        return None
    last = found[at + 1][2]
    return 2, [(_share(int(count), int(_PARTS[first]), text[start:last]), start, last)]


def _counted(name: str, following: str) -> bool:
    """Whether a word is parts that can be counted; "one half" is left to "half", a number by itself."""
    return name in _PARTS and name != "half" and (name.endswith("s") or following == "of")


def _share(count: int, parts: int, surface: str) -> Word:
    """A fraction, which a text may have in percent."""
    raw = "" if 100 * count % parts else f"{100 * count // parts} %"
    return Word(f"{count}/{parts}", surface, NUMBER, "number", raw)


def _below_zero(text: str, found: list[Located], at: int) -> tuple[int, list[Located]] | None:
    """`minus 5 °C`."""
    minus, start, end = found[at]
    if minus.surface.casefold() not in ("minus", "moins") or at + 1 == len(found):
        return None
    number, first, last = found[at + 1]
    if number.kind != "number" or not number.stem[0].isdigit() or first - end != 1:
        return None
    if at and found[at - 1][0].kind == "number":
        return None
    below = (number._replace(stem=f"-{number.stem}", surface=text[start:last]), start, last)
    step, joined = _joined_at(text, [*found[:at], below, *found[at + 2 :]], at)
    return step + 1, joined


def _clock(text: str, found: list[Located], at: int) -> tuple[int, list[Located]] | None:
    """`3 p.m.`, `3:30 pm` and `15 Uhr` as the time on a clock of 24 hours."""
    word, start, end = found[at]
    if at + 1 == len(found) or found[at + 1][1] - end > 1:
        return None
    half = found[at + 1][0].surface.casefold().replace(".", "")
    hour, _, minutes = word.stem.partition(":")
    if half not in ("am", "pm", "uhr") or not hour.isdigit() or int(hour) > (24 if half == "uhr" else 12):
        return None
    turned = int(hour) % 12 + 12 * (half == "pm") if half != "uhr" else int(hour)
    last = found[at + 1][2]
    time = Word(f"{turned}:{minutes or '00'}", text[start:last], NUMBER, "number", word.stem)
    return 2, [(time, start, last)]


def _and_a_half(text: str, found: list[Located], at: int) -> tuple[int, list[Located]] | None:
    """`two and a half hours`, `two hours and a half`."""
    word, start, _ = found[at]
    folded = [other.surface.casefold() for other, *_ in found[at + 1 : at + 5]]
    if not word.stem.isdigit() or "half" not in folded:
        return None
    if folded[:3] == ["and", "a", "half"]:
        unit, last = (folded[3], at + 4) if len(folded) > 3 and folded[3] in UNITS else ("", at + 3)
    elif folded[1:4] == ["and", "a", "half"] and folded[0] in UNITS:
        unit, last = folded[0], at + 4
    else:
        return None
    value, end = plain(Decimal(word.stem) + Decimal("0.5")), found[last][2]
    return last + 1 - at, [(_quantity(text, start, end, value, unit), start, end)]


def _money(text: str, found: list[Located], at: int) -> tuple[int, list[Located]] | None:
    """`EUR 35`, `Rs. 500`: the currency before the amount."""
    name, start, end = found[at]
    if name.surface.casefold() not in CURRENCIES or at + 1 == len(found):
        return None
    number, first, last = found[at + 1]
    if number.kind != "number" or not number.stem[0].isdigit() or text[end:first].strip(". \u00a0"):
        return None
    return 2, [(_quantity(text, start, last, number.stem, name.surface.casefold()), start, last)]


def _symbol(text: str, start: int, end: int, following: int) -> tuple[str, int] | None:
    """The sign of a currency on either side of a number."""
    before, behind = text[start - 1 : start] if start else "", text[end : end + 2].strip()[:1]
    sign = before if before in SYMBOLS else behind if behind in SYMBOLS else ""
    return (sign, following - 1) if sign else None


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
    """The unit behind a number that ends at `end`, and the place of its last word."""
    if text[end : end + 2].strip()[:1] in ("%", "٪", "％"):
        return "%", at - 1
    if at >= len(found):
        return None
    gap, name = text[end : found[at][1]], found[at][0].surface.casefold()
    after = found[at + 1][0].surface.casefold() if at + 1 < len(found) else ""
    if name in _DEGREES:
        return (after, at + 1) if after in ("celsius", "fahrenheit") else None
    if gap.strip() == "°":
        name = f"°{name}"
    elif gap.strip(" -\u00a0\u202f") or len(gap) > 1:
        return None
    if name in UNITS and name not in POWERS:
        return _composed(text, found, at, name, after)
    pair = _of_two_words(name, after)
    return (pair, at + 1) if pair else None


def _of_two_words(name: str, after: str) -> str | None:
    """A unit that is written as two words: `per cent`, `percentage points`, `square metres`."""
    if name in POWERS:
        return f"{name} {after}" if UNITS.get(after, ("", 0))[0] == "m" else None
    return _PAIRS.get((name, after))


_DEGREES = frozenset({"degree", "degrees", "grad"})
_PAIRS = {
    ("per", "cent"): "%",
    ("percentage", "point"): "prozentpunkt",
    ("percentage", "points"): "prozentpunkt",
}


def _composed(text: str, found: list[Located], at: int, name: str, after: str) -> tuple[str, int]:
    """A unit with what belongs to it: `km/h`, `miles per hour`, `m2`."""
    between = text[found[at][2] : found[at + 1][1]] if after else ""
    speed = f"{name}/{after}"
    if between == "/" and speed in UNITS:
        return speed, at + 1
    if after == "per" and at + 2 < len(found) and found[at + 2][0].surface == "hour" and name in _LONG:
        return _LONG[name], at + 2
    if not between and after in ("2", "3") and UNITS[name][0] == "m" and at + 1 < len(found):
        return f"{'square' if after == '2' else 'cubic'} {name}", at + 1
    return name, at


_LONG = {"miles": "mph", "kilometres": "km/h", "kilometers": "km/h", "km": "km/h"}
