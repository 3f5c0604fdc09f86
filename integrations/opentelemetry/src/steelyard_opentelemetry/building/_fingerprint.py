"""What is remembered of a recorded turn, so that nobody records it a second time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from steelyard_opentelemetry.building._turn import Turn
from steelyard_opentelemetry.spans._documents import documents_in

_REMEMBERED_TEXT = 1000
_WITHOUT_PARENTS = "@traceloop/instrumentation-langchain"
"""An instrumentor that begins a trace for each run, so that a step of a turn looks like a turn."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class TurnFingerprint:
    """What is remembered of a turn, without keeping its spans alive."""

    dialects: frozenset[str]
    service: str
    start: int
    end: int
    question: str
    trace_id: str = ""
    is_step: bool = False
    """Whether it was handed its documents, and its instrumentor does not say which run it belongs to."""
    callers: frozenset[str] = frozenset()
    """Who told it, where it is a model call by itself."""
    told_by: set[frozenset[str]] = field(default_factory=set)
    """Who has told the same turn again: another instrumentor tells each turn once."""

    @classmethod
    def of(cls, turn: Turn) -> TurnFingerprint:
        """The fingerprint of a turn."""
        span = turn.root.span
        dialects = frozenset(parsed.dialect for _, parsed in turn.parsed)
        return cls(
            dialects,
            span.service,
            span.start,
            span.end,
            turn.question[:_REMEMBERED_TEXT],
            span.trace_id,
            _is_step(turn),
            _callers(turn),
        )

    def is_told(self, others: Sequence[TurnFingerprint], *, is_piece: bool, in_trace: bool) -> bool:
        """Whether one of the turns with the same words is this one, seen by another instrumentor.

        Each instrumentor tells a turn once: what it tells again is another turn.

        Args:
            others: The turns that were told before.
            is_piece: Whether this is a lone model call; one that ran within the other turn is that turn's.
            in_trace: Whether only those in the same trace are looked at.
        """
        near = (other for other in others if not in_trace or other.trace_id == self.trace_id)
        twin = next((other for other in near if self._is_twin(other, is_piece=is_piece)), None)
        if twin is not None and not is_piece:
            twin.told_by.add(self.dialects)
        return twin is not None

    def _is_twin(self, other: TurnFingerprint, *, is_piece: bool) -> bool:
        if self.service != other.service:
            return False
        if is_piece:
            # Another call by itself, told by the same instrumentors, is another user's with the same words.
            is_other_call = bool(self.callers) and self.callers <= other.callers
            return other.start <= self.start <= other.end and not is_other_call
        if self._holds(other) or other._holds(self):
            return True
        overlap = self.start <= other.end and other.start <= self.end
        return overlap and self.dialects != other.dialects and self.dialects not in other.told_by

    def _holds(self, step: TurnFingerprint) -> bool:
        """Whether a step in a trace of its own ran within this turn."""
        is_elsewhere = step.is_step and step.trace_id != self.trace_id
        return is_elsewhere and self.start <= step.start and step.end <= self.end


def _is_step(turn: Turn) -> bool:
    span, parsed = turn.root.span, turn.root.parsed
    if span.scope != _WITHOUT_PARENTS or span.parent_id is not None or parsed is None:
        return False
    return bool(parsed.passing) and bool(documents_in(parsed.passing[0]))


def _callers(turn: Turn) -> frozenset[str]:
    root = turn.root
    if root.parsed is None or root.parsed.kind != "llm":
        return frozenset()
    return frozenset(node.span.scope for node, _ in turn.seen("llm"))
