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
    """What became of the Evaluations handed to one sink by this process: each is waiting, written, refused,
    left with the stored queue, or lost.
    """  # noqa: D205 - the states are the summary

    written: int
    """Evaluations that the sink has taken; what it did with each Score is in `scores`."""
    lost: int
    """Evaluations that it has not taken and that nobody keeps; the sum of `lost_by`. With a stored queue that
    works there are none."""
    waiting: int = 0
    """Evaluations that wait for it in this process, or are being written."""
    kept: int = 0
    """How often one was left in the stored queue, to be brought again; `stats().spool.waiting` tells how many
    wait there now."""
    refused: Mapping[str, int] = field(default_factory=dict)
    """Evaluations that it has refused for good while it took others, by cause."""
    lost_by: Mapping[str, int] = field(default_factory=dict)
    """Lost by cause: `timeout`, `hangs` (it blocks its thread), `queue_full` (it is slower than the turns),
    `closed`, a SinkError's cause, or the name of an exception."""
    scores: ScoreStates | None = None
    """The sink's own ledger, in Scores: written, refused, left out, lost; None where it keeps none."""


class SinkLedger:
    """Counts for one sink. Only its own thread and the Monitor's write, each to a part of its own."""

    def __init__(self) -> None:
        self.handed = 0
        self.written = 0
        self._refused: Counter[str] = Counter()
        # By cause; an empty one for what the queue keeps.
        self._given_back: Counter[str] = Counter()
        self._kept_back: Counter[str] = Counter()

    def refuse(self, cause: str) -> None:
        """The sink will never take one."""
        self._refused[cause] += 1

    def give_back(self, cause: str, *, kept: bool) -> None:
        """The sink's thread could not deliver one."""
        self._given_back["" if kept else cause] += 1

    def keep_back(self, cause: str, *, kept: bool) -> None:
        """The Monitor's thread did not hand one over, or took it back."""
        self._kept_back["" if kept else cause] += 1

    def counts(self, sink: object) -> SinkCounts:
        """The counts now."""
        lost = Counter(dict(self._given_back)) + Counter(dict(self._kept_back))
        kept = lost.pop("", 0)
        refused = dict(self._refused)
        ended = self.written + lost.total() + kept + sum(refused.values())
        return SinkCounts(
            written=self.written,
            lost=lost.total(),
            waiting=max(0, self.handed - ended),
            kept=kept,
            refused=refused,
            lost_by=dict(lost),
            scores=_scores_of(sink),
        )


def _scores_of(sink: object) -> ScoreStates | None:
    try:
        return sink.counts if isinstance(sink, CountsScores) else None
    except Exception:  # noqa: BLE001 - a sink of somebody's own may raise anything
        return None
