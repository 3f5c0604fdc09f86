"""What selection says about one turn, and what can say it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from steelyard.errors import SkipReason
from steelyard.record import Record


@dataclass(frozen=True, kw_only=True, slots=True)
class Decision:
    """What selection says about one turn."""

    rate: float
    """The probability with which a turn like this is picked."""
    reasons: tuple[str, ...] = ()
    """What moved the rate away from the base rate: names of rules, signs of suspicion."""
    skip: SkipReason | None = None
    """Why it is not judged, whatever its position; None where that decides."""
    forced: bool = False
    """Judged whatever its position, and not slowed down by throttle or budget."""


class RateSource(Protocol):
    """Something that gives turns their rates."""

    @property
    def ceiling(self) -> float:
        """The highest rate that it gives to any turn."""
        ...

    def decide(self, record: Record) -> Decision | None:
        """The decision about a turn; None leaves it to the next source."""
        ...
