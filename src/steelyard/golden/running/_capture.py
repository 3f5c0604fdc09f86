"""What the recorders saw of each case: turns belong to the case in whose context they ended."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from steelyard.record import Record
from steelyard.recording import Draft

_asking: ContextVar[str | None] = ContextVar("steelyard_golden_case", default=None)


class Capture:
    """A target for recorders that keeps turns by case.

    Which case a turn belongs to is told by a context variable that is set while the case is put to the
    application, and that threads and tasks of the frameworks inherit; never by the text of the question.
    """

    def __init__(self) -> None:
        self._turns: dict[str, list[Record | Draft]] = {}

    def submit(self, turn: Record | Draft, /) -> None:
        """Keep a turn; one that belongs to no case is passed over."""
        if (key := _asking.get()) is not None:
            self._turns.setdefault(key, []).append(turn)

    @contextmanager
    def case(self, key: str) -> Iterator[None]:
        """What is recorded in the block belongs to this case."""
        token = _asking.set(key)
        try:
            yield
        finally:
            _asking.reset(token)

    def take(self, key: str) -> list[Record]:
        """The Records of a case, in the order in which its turns ended; they are forgotten here."""
        built = [turn if isinstance(turn, Record) else turn.build() for turn in self._turns.pop(key, ())]
        return [record for record in built if record is not None]
