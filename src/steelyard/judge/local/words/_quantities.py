"""Numbers of a sentence with what belongs to them: units, currencies, dates, spelled numbers.

A quantity is compared by what it measures ("6,200 cm" is "62 m", and is not "6,200 m").
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from decimal import Decimal, InvalidOperation

from steelyard.judge.local.words._lists import lists
from steelyard.judge.local.words._word import NUMBER, Located, Word

_Joined = tuple[int, list[Located]]
"""How many words belong together, and what they are read as."""

_SYMBOLS = frozenset("$€£₹₺₩")
_POWERS = {"square": 2, "sq": 2, "cubic": 3}
"""What stands before a length that is an area or a volume."""
_PAIRS = {
    ("per", "cent"): "%",
    ("percentage", "point"): "prozentpunkt",
    ("percentage", "points"): "prozentpunkt",
    ("degrees", "celsius"): "celsius",
    ("degrees", "fahrenheit"): "fahrenheit",
}
_HOURLY = {"miles": "mph", "kilometres": "km/h", "kilometers": "km/h", "km": "km/h"}
_DAY = re.compile(r"[-\s.]{0,4}(?:st|nd|rd|th)?[\s.,]{0,4}(?:of |de |the )?")
_PLAIN = re.compile(r"-?\d+(?:\.\d+)?")
_PAYING = re.compile(
    r"\b(?:cost|pric|fee|paid|pay|budget|charg|salar|rent|wage|fine|tax|loan|grant|earn|revenue|profit|sold|worth"
    r"|sell|bought|spen[dt]|sterling|raised|donat|invest)|£",
    re.IGNORECASE,
)


def begins(folded: str, stem: str) -> bool:
    """Whether a quantity or a date may begin with a word: most are passed over by this."""
    return stem.lstrip("-")[:1].isdigit() or folded in lists().currencies or folded in lists().months


def measure(value: str, unit: str) -> str | None:
    """A number with its unit as an amount of the base unit, e.g. `62 m`; None if there is no such unit."""
    power, _, name = unit.rpartition(" ")
    known = lists().units.get(name)
    if known is None or not _PLAIN.fullmatch(value):
        return None
    (dimension, factor), exponent = known, _POWERS.get(power, 1)
    try:
        amount = Decimal(value) * factor**exponent
    except InvalidOperation:
        return None
    return f"{plain(amount)} {dimension}{exponent if exponent > 1 else ''}"


def plain(amount: Decimal) -> str:
    """An amount without an exponent and without zeros that say nothing."""
    text = f"{amount:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def in_measures(text: str, found: list[Located]) -> list[Located]:
    """The words of a sentence with spelled numbers, quantities and dates each as one number."""
    done: list[Located] = []
    at = 0
    while at < len(found):
        step, joined = _joined_at(text, found, at) if found[at][0].opens else (1, [found[at]])
        done.extend(joined)
        at += step
    return done


def _joined_at(text: str, found: list[Located], at: int) -> _Joined:
    """What begins at a word, and how many words it takes."""
    for reading in (_written_date, _day_of_month, _money):
        if (read := reading(text, found, at)) is not None:
            return read
    word, start, end = found[at]
    if not word.stem.lstrip("-")[:1].isdigit() or (word.kind != "number" and word.stem not in "012"):
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


def _written_date(text: str, found: list[Located], at: int) -> _Joined | None:
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


def _day_of_month(text: str, found: list[Located], at: int) -> _Joined | None:
    """`14 March`, `March 14`, `14th of March`, `el 14 de marzo`: the day and the month."""
    if at + 1 >= len(found):
        return None
    last = at + 1
    if found[last][0].surface in ("of", "de") and at + 2 < len(found):
        last += 1
    (one, start, _), (other, _, end) = found[at], found[last]
    for day, month in ((one, other), (other, one)):
        number = lists().months.get(month.surface.casefold())
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
    number = lists().months.get(word.surface.casefold())
    if number is None:
        return found[at]
    beside = [found[place][0] for place in (at - 1, at + 1, at + 2) if 0 <= place < len(found)]
    dated = any(len(other.stem) == 4 and other.stem.isdigit() for other in beside)
    if dated or (at > 0 and word.surface[0].isupper() and len(word.surface) > 3):
        return Word(f"month{number}", word.surface, NUMBER, "number"), start, end
    return found[at]


def _money(text: str, found: list[Located], at: int) -> _Joined | None:
    """`EUR 35`, `Rs. 500`: the currency before the amount."""
    name, start, end = found[at]
    if name.surface.casefold() not in lists().currencies or at + 1 == len(found):
        return None
    number, first, last = found[at + 1]
    if number.kind != "number" or not number.stem[0].isdigit() or text[end:first].strip(". \u00a0"):
        return None
    return 2, [(_quantity(text, start, last, number.stem, name.surface.casefold()), start, last)]


def _symbol(text: str, start: int, end: int, following: int) -> tuple[str, int] | None:
    """The sign of a currency on either side of a number."""
    before, behind = text[start - 1 : start] if start else "", text[end : end + 2].strip()[:1]
    sign = before if before in _SYMBOLS else behind if behind in _SYMBOLS else ""
    return (sign, following - 1) if sign else None


def _compound(text: str, found: list[Located], at: int) -> tuple[str, int]:
    """`twenty-five` and `three hundred and twenty` as one value, and how many words they are."""
    value, step = found[at][0].stem, 1
    if not (value.isdigit() and found[at][0].surface[0].isalpha()):
        return value, step
    while at + step < len(found):
        gap = text[found[at + step - 1][2] : found[at + step][1]]
        skip = 1 + (found[at + step][0].surface == "and" and at + step + 1 < len(found))
        following = found[at + step + skip - 1][0]
        small = lists().numbers.get(following.surface.casefold())
        if small is None or following.stem != small or gap not in ("-", " "):
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
    if gap.strip() == "°":
        name = f"°{name}"
    elif gap.strip(" -\u00a0\u202f") or len(gap) > 1:
        return None
    if (pair := _PAIRS.get((name, after))) is not None:
        return pair, at + 1
    if name in _POWERS:
        return (f"{name} {after}", at + 1) if lists().units.get(after, ("", 0))[0] == "m" else None
    return _composed(text, found, at, name, after) if name in lists().units else None


def _composed(text: str, found: list[Located], at: int, name: str, after: str) -> tuple[str, int]:
    """A unit with what belongs to it: `km/h`, `miles per hour`."""
    between = text[found[at][2] : found[at + 1][1]] if after else ""
    speed = f"{name}/{after}"
    if between == "/" and speed in lists().units:
        return speed, at + 1
    if after == "per" and name in _HOURLY and at + 2 < len(found) and found[at + 2][0].surface == "hour":
        return _HOURLY[name], at + 2
    return name, at
