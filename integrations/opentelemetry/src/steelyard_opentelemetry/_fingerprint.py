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

    def is_twin(self, other: TurnFingerprint) -> bool:
        """Whether two turns with the same question and answer are one, seen by two instrumentors."""
        overlap = self.start <= other.end and other.start <= self.end
        return overlap and self.dialects != other.dialects

    def holds(self, service: str, moment: int) -> bool:
        """Whether a moment in a process lies within the turn."""
        return service == self.service and self.start <= moment <= self.end
