"""A turn on its way: what a recorder hands over when it leaves the hot path."""

from __future__ import annotations

from typing import Protocol

from steelyard.record import Record, TraceRef


class Draft(Protocol):
    """A finished turn whose Record is still to be built, away from the host's thread.

    Recorders keep references while the chain runs and leave the work (extracting texts, removing duplicates,
    matching against the prompt) to `build`, which the Monitor calls in its own thread, and only for turns
    that were picked.
    """

    @property
    def id(self) -> str:
        """The id that the Record will have."""
        ...

    @property
    def trace(self) -> TraceRef | None:
        """Where the turn lives in the host's traces; decides sampling."""
        ...

    @property
    def size(self) -> int:
        """Roughly how many bytes it keeps alive; for the queue's bound."""
        ...

    def build(self) -> Record | None:
        """The Record, or None where the run turns out to be no RAG turn at all."""
        ...
