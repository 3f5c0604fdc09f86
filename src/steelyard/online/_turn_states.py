"""What a turn is between the queue and its end."""

from __future__ import annotations

from dataclasses import dataclass

from steelyard.online.queue._ledger import Settled
from steelyard.online.queue._memory import Queued
from steelyard.online.selection._budget import Reservation
from steelyard.record import Record

__all__ = ["Closed", "Selected"]


@dataclass(frozen=True, slots=True)
class Closed:
    """A turn that ends here, and why."""

    state: Settled
    reason: str = ""
    again: Queued | None = None
    """What to take up again if a user dislikes the turn."""


@dataclass(frozen=True, slots=True)
class Selected:
    """A turn that was picked and may be judged: masked and paid for, not yet cleaned."""

    record: Record
    place: float
    rate: float
    reservation: Reservation
    again: Queued | None = None
    """What to take up again if a user dislikes the turn."""
