"""The words that the rules know, read from `words.toml` when they are first needed."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from importlib import resources
from typing import Any

from steelyard.judge.local.words._folding import fold


@dataclass(frozen=True, slots=True, repr=False)
class Lists:
    """The lists as tables; words are in small letters, and folded if it says so."""

    weekdays: dict[str, int]
    """Folded names of days to their number, Monday being 1."""
    months: dict[str, int]
    """Names of months to their number."""
    numbers: dict[str, str]
    """Number words to digits."""
    counts: frozenset[str]
    """Number words that a text must have; one and two are often said of what the text merely lists."""
    scales: dict[str, int]
    """What multiplies the number before it, by its stem."""
    ones: frozenset[str]
    """What is a number behind "a"."""
    units: dict[str, tuple[str, Decimal]]
    """Names of units to their dimension and how many of its base unit they are."""
    currencies: frozenset[str]
    """Names of currencies that may stand before an amount."""
    forms: dict[str, str]
    """Irregular forms, people of a place and short months, each to the word that stands for all of them."""
    common: frozenset[str]
    """The commonest words of some twenty languages, folded, without those that are words of English too."""
    particles: frozenset[str]
    """Those that are part of a name if they have a capital."""
    opposites: tuple[tuple[str, str], ...]
    """Pairs of words that say the opposite of one another."""
    negations: frozenset[str]
    """What denies, folded."""
    rules: dict[str, frozenset[str]]
    """What single rules look for, by name."""


@cache
def lists() -> Lists:
    """All lists."""
    file = resources.files("steelyard.judge.local.words").joinpath("words.toml")
    read: dict[str, Any] = tomllib.loads(file.read_text(encoding="utf-8"))
    small, tens, ordinals = (read[name].split() for name in ("small", "tens", "ordinals"))
    foreign = _by_first(read["foreign_numbers"])
    return Lists(
        weekdays={fold(name): number for name, number in _numbered(read["weekdays"]).items()},
        months=_numbered(read["months"]),
        numbers=_digits(small) | _digits(["", "", "", *tens], tens=10) | _digits(ordinals) | foreign,
        counts=frozenset([*small, *tens, *foreign]) - {"zero", "one", "two"},
        scales={fold(name): int(factor) for name, factor in _by_first(read["scales"]).items()},
        ones=frozenset(read["ones"].split()),
        units={
            name: (dimension, Decimal(factor))
            for dimension, factor, *names in map(str.split, read["units"])
            for name in names
        },
        currencies=frozenset(read["currencies"].split()),
        forms=_by_first(read["forms"]),
        common=frozenset(map(fold, read["common"].split())) - frozenset(read["common_in_english"].split()),
        particles=frozenset(read["particles"].split()),
        opposites=tuple((one, other) for one, other in map(str.split, read["opposites"].split("|"))),
        negations=frozenset(fold(word) for words in read["negations"].values() for word in words.split()),
        rules={name: frozenset(words.split()) for name, words in read["rules"].items()},
    )


def rule(name: str) -> frozenset[str]:
    """What one rule looks for; nothing under an empty name."""
    return lists().rules[name] if name else frozenset()


def _digits(words: list[str], *, tens: int = 1) -> dict[str, str]:
    return {word: str(tens * value) for value, word in enumerate(words) if word}


def _numbered(groups: list[str]) -> dict[str, int]:
    return {name: number for number, names in enumerate(groups, start=1) for name in names.split()}


def _by_first(groups: list[str]) -> dict[str, str]:
    """Each word of a group to the word that leads it."""
    return {word: first for first, *others in map(str.split, groups) for word in others}
