"""What a recorder handed over, and for which turn."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from generator.choices import Choices
from generator.turns import NOW, Turn
from steelyard.record import Record
from steelyard.recording import Draft


@dataclass
class Receiver:
    """Stands where a Monitor stands. A turn that ends in its own thread or task says whose it is."""

    handed: list[tuple[str | None, Record | Draft]] = field(default_factory=list)
    owners: dict[str, str] = field(default_factory=dict)
    """The turns of spans, where records come from spans."""
    told: list[str] | None = None
    """Every text that spans tell; None where records do not come from spans."""
    diagnosed: Counter[str] = field(default_factory=Counter)
    """Causes of missing records that were counted elsewhere than on a record."""
    _built: list[tuple[str | None, Record]] | None = None

    def submit(self, turn: Record | Draft, /) -> None:
        now = NOW.get()
        self.handed.append((now.id if now else None, turn))

    def records(self) -> list[tuple[str | None, Record]]:
        """The records with the ids of their turns, where those are known."""
        if self._built is None:
            built = [(id, turn if isinstance(turn, Record) else turn.build()) for id, turn in self.handed]
            self._built = [(id or self._owner(record), record) for id, record in built if record is not None]
        return self._built

    def _owner(self, record: Record) -> str | None:
        return self.owners.get(record.trace.span_id) if record.trace and record.trace.span_id else None


@dataclass(frozen=True)
class Run:
    """An application that has run."""

    choices: Choices
    turns: list[Turn]
    receiver: Receiver
    shows: Callable[[Turn], Iterable[str]]
