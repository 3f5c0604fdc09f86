"""Users' feedback: what was said about which turn, and turns kept a while in case something is said."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

from steelyard.online._queue import Submitted, size_of
from steelyard.record import Record

__all__ = ["FEEDBACK", "Feedback"]

FEEDBACK = "feedback"
"""The metadata entry that holds what the user said about a turn."""

_REMEMBERED = 10_000
_KEPT = 1_000
_KEPT_BYTES = 16 * 1024 * 1024


class Feedback:
    """What users said, by record id, and the latest turns that were not picked; bounded, the oldest go first.

    Feedback mostly comes after the turn, when it has been judged or passed over. One that was passed over and
    is then disliked gets its second chance, at the rate for suspicious turns.
    """

    def __init__(self, *, keep: bool) -> None:
        self._said: OrderedDict[str, Any] = OrderedDict()
        self._kept: OrderedDict[str, Submitted] = OrderedDict()
        self._bytes = 0
        self._keep = keep

    def say(self, record_id: str, value: Any) -> Submitted | None:
        """Remember what was said; returns the turn if it was passed over and is now disliked."""
        self._said[record_id] = value
        self._said.move_to_end(record_id)
        if len(self._said) > _REMEMBERED:
            self._said.popitem(last=False)
        if not self.disliked(record_id) or (item := self._kept.pop(record_id, None)) is None:
            return None
        self._bytes -= item.size
        return item

    def disliked(self, record_id: str) -> bool:
        """Whether the user said something bad: False, or a number below or equal to 0."""
        value = self._said.get(record_id, 1)
        return isinstance(value, (int, float)) and value <= 0

    def known(self, record_id: str) -> Mapping[str, Any]:
        """What was said, as an entry for the metadata."""
        return {FEEDBACK: self._said[record_id]} if record_id in self._said else {}

    def keep(self, record: Record, where: float) -> None:
        """A turn was passed over; keep it for a while."""
        if not self._keep or record.id in self._kept:
            return
        item = Submitted(record, where, size_of(record))
        self._kept[record.id] = item
        self._bytes += item.size
        while self._kept and (len(self._kept) > _KEPT or self._bytes > _KEPT_BYTES):
            _, oldest = self._kept.popitem(last=False)
            self._bytes -= oldest.size
