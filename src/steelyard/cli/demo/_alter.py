"""Inventing facts: a number, a name or a negation of an answer becomes another one. Nothing else changes."""

from __future__ import annotations

import random
import re
import zlib
from collections.abc import Callable

from steelyard.text import sentences

_DIGITS = re.compile(r"\d+(?:,\d{3})*(?:\.\d+)?")
_COUNTS = ("two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "twelve", "twenty")
_COUNT = re.compile(rf"\b(?:one|{'|'.join(_COUNTS)})\b")
_PEOPLE = (
    *(
        "Archimedes",
        "Aston",
        "Bunge",
        "Cavendish",
        "Coulomb",
        "Fairbanks",
        "Galilei",
        "Gauss",
        "Hooke",
        "Kibble",
    ),
    *("Lavoisier", "Mettler", "Pitrat", "Quintenz", "Roberval", "Ruge", "Salter", "Simmons", "Wheatstone"),
)
_PLACES = (
    *("Birmingham", "Dayton", "Gottingen", "Hamburg", "London", "Merv", "Ohio", "Padua", "Paris", "Pompeii"),
    *("Scandinavia", "Sevres", "Strasbourg", "Syracuse", "Toledo", "Vermont"),
)
_DENIED = re.compile(
    r"\b(?:(does|do|did) not (\w+)|(is|are|was|were|can|could|has|have|had) not|(no longer))\b"
)
_VERB = re.compile(r"\b(is|are|was|were|can|could|has|have)\b")

_Change = Callable[[str, random.Random], str]


def alter(answer: str) -> str:
    """An answer like this one with invented facts in it, always the same for the same answer.

    One sentence is changed for certain and each other one with even odds, by the first that can be done of:
    another number, another name, a negation more or less; the order is drawn for each sentence. A sentence
    to which none can be done stays.
    """
    draw = random.Random(zlib.crc32(answer.encode()))
    pieces = [sentence.text for sentence in sentences(answer)]
    certain = draw.randrange(len(pieces)) if pieces else 0
    changed = [
        _changed(piece, draw) if index == certain or draw.random() < 0.5 else piece
        for index, piece in enumerate(pieces)
    ]
    return " ".join(changed)


def _changed(sentence: str, draw: random.Random) -> str:
    changes: list[_Change] = [_number, _name, _negation]
    for change in draw.sample(changes, len(changes)):
        if (other := change(sentence, draw)) != sentence:
            return other
    return sentence


def _number(text: str, draw: random.Random) -> str:
    found = [*_DIGITS.finditer(text), *_COUNT.finditer(text)]
    if not found:
        return text
    match = draw.choice(found)
    shown = match[0]
    if not shown[0].isdigit():
        return _put(text, match, draw.choice([word for word in _COUNTS if word != shown]))
    return _put(text, match, _other_number(shown, draw))


def _other_number(shown: str, draw: random.Random) -> str:
    """Another number of the same look; what may be a year moves by decades, the rest is multiplied."""
    value = float(shown.replace(",", ""))
    if shown.isdigit() and 1000 <= value <= 2100:
        value += draw.choice([-1, 1]) * draw.randint(11, 89)
    else:
        value = (value or 1) * draw.choice([2, 3, 5])
    return f"{value:{',' if ',' in shown else ''}.{len(shown.partition('.')[2])}f}"


def _name(text: str, draw: random.Random) -> str:
    """Another place for a place, another person for a person."""
    found = [(name, pool) for pool in (_PEOPLE, _PLACES) for name in pool if name in text]
    if not found:
        return text
    name, pool = draw.choice(found)
    other = draw.choice([other for other in pool if other not in text])
    return text.replace(name, other)


def _negation(text: str, draw: random.Random) -> str:
    """Take a negation away, or put one after the first verb that takes one."""
    if match := _DENIED.search(text):
        helper, verb, other, _ = match.groups()
        plain = f"{verb}s" if helper == "does" else f"did {verb}" if helper == "did" else verb
        return _put(text, match, plain or other or "still")
    if match := _VERB.search(text):
        return _put(text, match, f"{match[0]} not")
    return text


def _put(text: str, match: re.Match[str], other: str) -> str:
    return text[: match.start()] + other + text[match.end() :]
