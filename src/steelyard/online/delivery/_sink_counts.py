"""What became of the Evaluations meant for one sink."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable


class ScoreStates(Protocol):
    """A sink's own ledger, in Scores; each is counted in one place."""

    @property
    def written(self) -> int:
        """Taken by the server, file or provider."""
        ...

    @property
    def refused(self) -> Mapping[str, int]:
        """Sent and not taken, by reason."""
        ...

    @property
    def left_out(self) -> Mapping[str, int]:
        """Not sent, by reason."""
        ...

    @property
    def lost(self) -> Mapping[str, int]:
        """Not delivered, by the cause of the failure."""
        ...


@runtime_checkable
class CountsScores(Protocol):
    """A sink that says what became of each Score."""

    @property
    def counts(self) -> ScoreStates:
        """The counts at this moment; may be read from any thread."""
        ...


@dataclass(frozen=True, kw_only=True, slots=True)
class SinkCounts:
    """What became of the Evaluations handed to one sink: each is waiting, written or lost."""

    written: int
    """Evaluations that the sink has taken; what it did with each Score is in `scores`."""
    lost: int
    """Evaluations that it has not taken; the sum of `lost_by`."""
    waiting: int = 0
    """Evaluations that wait for it, or are being written."""
    lost_by: Mapping[str, int] = field(default_factory=dict)
    """Lost by cause: `timeout`, `hangs` (it blocks its thread), `resting` (half a minute after a failure),
    `queue_full` (it is slower than the turns), `closed`, a SinkError's cause, or the name of an exception."""
    scores: ScoreStates | None = None
    """The sink's own ledger, in Scores: written, refused, left out, lost; None where it keeps none."""


class SinkLedger:
    """Counts for one sink. Only its own thread and the Monitor's write, each to a part of its own."""

    def __init__(self) -> None:
        self.handed = 0
        self.written = 0
        self._lost: Counter[str] = Counter()
        self._kept_back: Counter[str] = Counter()

    def lose(self, cause: str, count: int) -> None:
        """The sink's thread could not deliver so many."""
        self._lost[cause] += count

    def keep_back(self, cause: str, count: int) -> None:
        """The Monitor's thread did not hand over so many, or took them back."""
        self._kept_back[cause] += count

    def counts(self, sink: object) -> SinkCounts:
        """The counts now."""
        lost = dict(self._lost)
        for cause, count in dict(self._kept_back).items():
            lost[cause] = lost.get(cause, 0) + count
        total = sum(lost.values())
        return SinkCounts(
            written=self.written,
            lost=total,
            waiting=max(0, self.handed - self.written - total),
            lost_by=lost,
            scores=_scores_of(sink),
        )


def _scores_of(sink: object) -> ScoreStates | None:
    try:
        return sink.counts if isinstance(sink, CountsScores) else None
    except Exception:  # noqa: BLE001 - a sink of somebody's own may raise anything
        return None
