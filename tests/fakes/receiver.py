"""Stands where a Monitor stands."""

from __future__ import annotations

from typing import Any

from steelyard.record import Record
from steelyard.recording import Draft


class Receiver:
    """Keeps the turns that it is handed, and builds their Records when somebody asks for them."""

    def __init__(self) -> None:
        self.drafts: list[Any] = []
        self._built: list[Record | None] = []

    def submit(self, turn: Record | Draft, /) -> None:
        """Take a turn."""
        self.drafts.append(turn)

    @property
    def records(self) -> list[Record]:
        """Everything submitted that is a turn, in order."""
        for draft in self.drafts[len(self._built) :]:
            self._built.append(draft if isinstance(draft, Record) else draft.build())
        return [record for record in self._built if record is not None]

    @property
    def record(self) -> Record:
        """The only one."""
        (record,) = self.records
        return record
