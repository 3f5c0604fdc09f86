"""What a turn is between the queue and its end."""

from __future__ import annotations

from dataclasses import dataclass

from steelyard.online._allowance import Reservation
from steelyard.online._ledger import Settled
from steelyard.online._queue import Submitted
from steelyard.record import Record

__all__ = ["Final", "Ready"]


@dataclass(frozen=True, slots=True)
class Final:
    """A turn that ends here, and why."""

    state: Settled
    reason: str = ""
    again: Submitted | None = None
    """What to take up again if a user dislikes the turn."""


@dataclass(frozen=True, slots=True)
class Ready:
    """A turn that was picked and may be judged: masked and paid for, not yet cleaned."""

    record: Record
    place: float
    rate: float
    reservation: Reservation
    again: Submitted | None = None
    """What to take up again if a user dislikes the turn."""
