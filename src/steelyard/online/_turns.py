"""What a turn is between the queue and its end."""

from __future__ import annotations

from dataclasses import dataclass

from steelyard.online._allowance import Reservation
from steelyard.online._ledger import Settled
from steelyard.record import Record

__all__ = ["Final", "Ready"]


@dataclass(frozen=True, slots=True)
class Final:
    """A turn that ends here, and why."""

    state: Settled
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Ready:
    """A turn that was picked and may be judged: masked and paid for, not yet cleaned."""

    record: Record
    place: float
    rate: float
    reservation: Reservation
