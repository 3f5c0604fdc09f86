"""Dead letters: turns that could not be evaluated, kept until somebody decides about them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from steelyard.online.queue._written import turn_from_json

Fate = Literal["keep", "replay", "drop"]
"""What becomes of a dead letter: `replay` puts its turn into the queue again."""


@dataclass(frozen=True, kw_only=True, slots=True)
class DeadLetter:
    """A turn that could not be evaluated."""

    record_id: str
    """Its record; empty where it cannot be read."""
    cause: str
    """Why it was given up."""
    attempts: int
    """How often it had been leased."""


Decide = Callable[[DeadLetter], Fate]


def record_id_of(body: str | bytes) -> str:
    """The id in a stored turn; empty where it cannot be read."""
    try:
        return turn_from_json(body).record.id
    except Exception:  # noqa: BLE001 - what cannot be read is what letters die of
        return ""
