"""Users' feedback: what was said about which turn, and turns kept a while in case something is said."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from steelyard._internal.bounded import BoundedDict
from steelyard.online.queue._ledger import FinalState
from steelyard.online.queue._turns import Queued

FEEDBACK = "feedback"
"""The metadata entry that holds what the user said about a turn."""

_REMEMBERED = 10_000
# Turns are kept with their texts, so their bytes are bounded as well.
_KEPT = 1_000
_KEPT_BYTES = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Kept:
    """A turn that is finished, at a lower rate than the one for suspicious turns."""

    item: Queued
    state: FinalState


class Feedback:
    """What users said, by record id, and the latest turns that feedback could change; the oldest go first.

    Feedback mostly comes after the turn, when it has been judged or passed over. All turns that are disliked
    must have the same chance to be judged, or averages would lean: so one that was passed over is then taken
    up again, and one that was judged is judged again, both at the rate for suspicious turns.
    """

    def __init__(self) -> None:
        self._values: BoundedDict[str, Any] = BoundedDict(max_items=_REMEMBERED)
        self._kept: BoundedDict[str, Kept] = BoundedDict(
            max_items=_KEPT, max_weight=_KEPT_BYTES, weigh=lambda kept: kept.item.size
        )

    def add(self, record_id: str, value: Any) -> Kept | None:
        """Remember what was said; returns the turn if it is to be taken again."""
        self._values[record_id] = value
        return self._kept.pop(record_id, None) if self.disliked(record_id) else None

    def keep(self, item: Queued, state: FinalState) -> Kept | None:
        """Keep a turn for a while; returns it at once if it was disliked in the meantime."""
        kept, record_id = Kept(item, state), item.turn.id
        if self.disliked(record_id):
            return kept
        self._kept[record_id] = kept
        # The user may have spoken in another thread, before the turn was there to be found.
        return self._kept.pop(record_id, None) if self.disliked(record_id) else None

    def disliked(self, record_id: str) -> bool:
        """Whether the user said something bad: False, or a number of 0 or less."""
        value = self._values.get(record_id, 1)
        return isinstance(value, (int, float)) and value <= 0

    def known(self, record_id: str) -> Mapping[str, Any]:
        """What was said, as an entry for the metadata."""
        return {FEEDBACK: self._values[record_id]} if record_id in self._values else {}
