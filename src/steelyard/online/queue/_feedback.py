"""Users' feedback: what was said about which turn, and turns kept a while in case something is said."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from steelyard.online.queue._ledger import Settled
from steelyard.online.queue._memory import Queued

__all__ = ["FEEDBACK", "Feedback", "Kept"]

FEEDBACK = "feedback"
"""The metadata entry that holds what the user said about a turn."""

_REMEMBERED = 10_000
_KEPT = 1_000
_KEPT_BYTES = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Kept:
    """A turn that is finished, at a lower rate than the one for suspicious turns."""

    item: Queued
    settled: Settled


class Feedback:
    """What users said, by record id, and the latest turns that feedback could change; the oldest go first.

    Feedback mostly comes after the turn, when it has been judged or passed over. All turns that are disliked
    must have the same chance to be judged, or averages would lean: so one that was passed over is then taken
    up again, and one that was judged is judged again, both at the rate for suspicious turns.
    """

    def __init__(self) -> None:
        self._said: OrderedDict[str, Any] = OrderedDict()
        self._kept: OrderedDict[str, Kept] = OrderedDict()
        self._bytes = 0

    def say(self, record_id: str, value: Any) -> Kept | None:
        """Remember what was said; returns the turn if it is to be taken up again."""
        self._said[record_id] = value
        self._said.move_to_end(record_id)
        if len(self._said) > _REMEMBERED:
            self._said.popitem(last=False)
        return self._take(record_id) if self.disliked(record_id) else None

    def keep(self, item: Queued, settled: Settled) -> Kept | None:
        """Keep a turn for a while; returns it at once if it was disliked in the meantime."""
        record_id = item.turn.id
        self._kept[record_id] = Kept(item, settled)
        self._bytes += item.size
        if self.disliked(record_id):
            return self._take(record_id)
        while self._kept and (len(self._kept) > _KEPT or self._bytes > _KEPT_BYTES):
            self._take(next(iter(self._kept)))
        return None

    def disliked(self, record_id: str) -> bool:
        """Whether the user said something bad: False, or a number of 0 or less."""
        value = self._said.get(record_id, 1)
        return isinstance(value, (int, float)) and value <= 0

    def known(self, record_id: str) -> Mapping[str, Any]:
        """What was said, as an entry for the metadata."""
        return {FEEDBACK: self._said[record_id]} if record_id in self._said else {}

    def _take(self, record_id: str) -> Kept | None:
        kept = self._kept.pop(record_id, None)
        if kept is not None:
            self._bytes -= kept.item.size
        return kept
