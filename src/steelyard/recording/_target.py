"""Where finished turns go: the one protocol between the recorders and the Monitor."""

from __future__ import annotations

from typing import Protocol

from steelyard.errors import ConfigurationError
from steelyard.record import Record
from steelyard.recording._draft import Draft


class TurnTarget(Protocol):
    """Takes finished turns. A `steelyard.Monitor` is one; in tests, anything with `submit`."""

    def submit(self, turn: Record | Draft, /) -> object:
        """Take a turn. Must return at once and never raise."""
        ...


def checked_target(monitor: TurnTarget) -> TurnTarget:
    """The same object.

    Raises:
        ConfigurationError: If it cannot take turns.
    """
    if not callable(getattr(monitor, "submit", None)):
        raise ConfigurationError(
            f"monitor={monitor!r} is not a Monitor: it has no submit(); pass a steelyard.Monitor"
        )
    return monitor
