"""What an application is made of: one choice on each axis. The first option of an axis is the simplest."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Literal

Framework = Literal["langchain", "llamaindex", "plain", "written"]
Axes = Mapping[str, tuple[str, ...]]

_SIMPLE = 0.45
"""How often an axis takes its simplest option: applications are not strange in every way at once."""

EVENLY = frozenset(
    {"shape", "template", "retriever", "tool_result", "tool_name", "steps", "client", "root", "search"}
)
"""Axes of which every option is as likely as any other."""

CONTENT: Axes = {
    "evidence": ("shown", "partly", "nothing", "unshown"),
    "answer": (
        *(
            "new",
            "quotes",
            "repeats_passage",
            "repeats_question",
            "repeats_last",
            "refuses",
            "refuses_as_told",
        ),
        *("refuses_as_told", "echoes"),
    ),
    "passages": ("2", "1", "3", "5"),
    "style": (
        *("plain", "short", "heading", "blank_lines", "tags", "code", "task", "dialogue", "template", "json"),
        *("table", "bullets", "labels", "instruction", "quotes", "rules", "row"),
    ),
    "overlap": ("no", "no", "windows"),
    "typing": ("plain", "lines", "tag", "template", "json", "order", "heading", "quoted", "paste"),
    "language": ("en", "de", "fr", "es", "zh"),
    "follow_up": ("whole", "short"),
    "turns": ("1", "2", "3"),
    "tenants": ("1", "2"),
    "equal_questions": ("no", "yes"),
}
"""Axes that say what the texts are, for every framework."""


@dataclass(frozen=True)
class Choices:
    """One application: the framework, a seed for its texts, and an option on each axis."""

    framework: Framework
    seed: int
    options: Mapping[str, str]
    used: set[str] = field(default_factory=set, compare=False, repr=False)
    """The axes that made a difference: those that were read while the application was built."""

    def __getitem__(self, axis: str) -> str:
        self.used.add(axis)
        return self.options[axis]

    def number(self, axis: str) -> int:
        return int(self[axis])

    def random(self, *about: object) -> Random:
        """Chance that is the same in every run, for one thing of this application."""
        return Random(repr((self.seed, *about)))

    def replace(self, **options: str) -> Choices:
        return Choices(self.framework, self.seed, {**self.options, **options})

    def parts(self) -> Iterator[tuple[str, str]]:
        """What this application is made of."""
        return ((axis, self.options[axis]) for axis in self.options if axis in self.used)


def draw(framework: Framework, axes: Axes, seed: int) -> Choices:
    """An application at random."""
    return Choices(framework, seed, {axis: _option(seed, axis, options) for axis, options in axes.items()})


def _option(seed: int, axis: str, options: tuple[str, ...]) -> str:
    # A chance for each axis, so that a new axis leaves the applications of a seed what they are.
    chance = Random(repr((seed, axis)))
    if axis not in EVENLY and chance.random() < _SIMPLE:
        return options[0]
    return chance.choice(options)
