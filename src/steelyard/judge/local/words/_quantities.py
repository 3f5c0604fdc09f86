"""Numbers of a sentence with what belongs to them: units, fractions, dates, spelled numbers."""

from __future__ import annotations

import re

from steelyard.judge.local.words._forms import NUMBERS
from steelyard.judge.local.words._numbers import MONTHS, UNITS, measure
from steelyard.judge.local.words._stems import NUMBER
from steelyard.judge.local.words._word import Located, Word


def begins(folded: str, stem: str) -> bool:
    """Whether a quantity, a fraction or a date may begin with a word: most are passed over by this."""
    return stem.lstrip("-")[:1].isdigit() or folded in _PARTS or folded in MONTHS


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
    for reading in (_iso_date, _day_of_month, _fraction):
        if (read := reading(text, found, at)) is not None:
            return read
    word, start, end = found[at]
    if not word.stem.lstrip("-")[:1].isdigit() or (word.kind != "number" and word.stem not in _SMALL):
        return 1, [_lone_month(found, at)]
    value, step = _compound(text, found, at)
    if step > 1:
        end = found[at + step - 1][2]
        word = Word(value, text[start:end], NUMBER, "number")
    unit = _unit(text, found, at + step, end)
    if unit is None:
        return step, [(word, start, end)]
    dimension, last = unit
    amount = measure(word.stem, dimension)
    end = found[last][2]
    quantity = Word(amount or word.stem, text[start:end], NUMBER, "number", word.stem)
    return last + 1 - at, [(quantity, start, end)]


_SMALL = frozenset({"0", "1", "2"})
_PARTS = {"half": "2", "third": "3", "quarter": "4", "fifth": "5", "tenth": "10", "halves": "2"}
_PARTS |= {f"{name}s": number for name, number in _PARTS.items()}
_DAY = re.compile(r"[-\s.]*(?:st|nd|rd|th)?[\s.,]*(?:of |de |the )?$")


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
        Word(f"{int(month)}-{int(day)}", text[start:last], NUMBER, "number"),
        Word(f"month{int(month)}", text[start:last], NUMBER, "number"),
        Word(year, text[start:last], NUMBER, "number"),
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
            if not _DAY.search(text[found[at][2] : found[last][1]]):
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
    following = [other.surface.casefold() for other, *_ in found[at + 1 : at + 3]]
    if name == "half" and len(following) == 2 and following[0] in ("a", "an") and following[1] in UNITS:
        last = found[at + 2][2]
        amount = measure("0.5", following[1]) or "1/2"
        return 3, [(Word(amount, text[start:last], NUMBER, "number"), start, last)]
    if name == "half":
        return 1, [(Word("1/2", word.surface, NUMBER, "number"), start, end)]
    after_a = at > 0 and found[at - 1][0].surface in ("a", "A")
    if name in _PARTS and after_a and following[:1] == ["of"]:
        return 1, [(Word(f"1/{_PARTS[name]}", word.surface, NUMBER, "number"), start, end)]
    if following and following[0] in _PARTS and following[0] not in ("half", "second"):
        count = "1" if name == "one" else word.stem
        partitive = following[0].endswith("s") or (len(following) > 1 and following[1] == "of")
        if count.isdigit() and partitive:
            last = found[at + 1][2]
            made = Word(f"{count}/{_PARTS[following[0]]}", text[start:last], NUMBER, "number")
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
