"""What is remembered of a recorded turn, so that nobody records it a second time."""

from __future__ import annotations

from dataclasses import dataclass

from steelyard_opentelemetry._turn import Turn

_REMEMBERED_TEXT = 1000


@dataclass(frozen=True, slots=True)
class TurnFingerprint:
    """What is remembered of a turn, without keeping its spans alive."""

    dialects: frozenset[str]
    service: str
    start: int
    end: int
    question: str

    @classmethod
    def of(cls, turn: Turn) -> TurnFingerprint:
        """The fingerprint of a turn."""
        span = turn.root.span
        dialects = frozenset(node.parsed.dialect for node in turn.nodes if node.parsed)
        return cls(dialects, span.service, span.start, span.end, turn.question[:_REMEMBERED_TEXT])

    def is_twin(self, other: TurnFingerprint, *, is_piece: bool) -> bool:
        """Whether two turns with the same question and answer are one, seen by two instrumentors.

        Args:
            other: The turn that was told before.
            is_piece: Whether this is a lone model call; one that ran within the other turn is that turn's.
        """
        if self.service != other.service:
            return False
        if is_piece:
            return other.start <= self.start <= other.end
        overlap = self.start <= other.end and other.start <= self.end
        return overlap and self.dialects != other.dialects
