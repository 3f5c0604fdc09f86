"""What the pages beside the first one ask of stored results: conversations, money, groups to compare."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, Literal

from steelyard.scores import Direction

Order = Literal["latest", "worst"]
ORDERS: Final[tuple[Order, ...]] = ("latest", "worst")
"""How conversations are put in order."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SessionRow:
    """One conversation in the list."""

    session: str
    """Its id."""
    turns: int
    """Evaluated turns."""
    bad: int
    """Of those, with a score that did not pass."""
    first: float
    """When its first turn began, as Unix time."""
    last: float
    """When its last turn began."""
    question: str = field(repr=False)
    """How its first question begins; empty where content was not stored."""
    course: tuple[bool, ...]
    """Of its first 40 turns, in order, whether every score passed."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Spending:
    """What judging cost in one day, or for one metric."""

    name: str
    """The day as `2026-11-01` (UTC), or the metric."""
    turns: int
    """Turns that were judged."""
    requests: int
    """Judge and embedding requests; of a metric 0, since requests carry questions of several."""
    tokens: int
    """Tokens in and out; of a metric 0."""
    cost: float | None
    """US dollars; None where no price is known."""
    priced: int
    """Turns whose cost is known."""


@dataclass(frozen=True, kw_only=True, slots=True)
class GroupScore:
    """One score of a group that is compared."""

    record_id: str
    """The record's id."""
    value: float
    """In 0..1."""
    inclusion: float
    """The probability with which the turn was picked."""
    unit: str | None
    """Its user, or else its session; None where neither is known."""
    question: str = field(repr=False)
    """The question, or empty."""
    direction: Direction
    """Which way is better."""
