"""The Sink protocol: where Evaluations go."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, runtime_checkable

from steelyard.record import TraceRef
from steelyard.scores import Evaluation


@runtime_checkable
class Sink(Protocol):
    """Takes finished Evaluations.

    Writing the same ones again must change nothing: sinks upsert by `Score.id`. Sinks are used from one
    thread, the Monitor's, inside its event loop and its loop guard.
    """

    @property
    def name(self) -> str:
        """The sink's name in counts and log lines."""

    async def write(self, evaluations: Sequence[Evaluation]) -> None:
        """Take some Evaluations. Raising means that none was taken; the Monitor counts and logs it."""

    async def aclose(self) -> None:
        """Write what is held back and let go of files and connections."""


class Monitored(Protocol):
    """Something with the statistics of a `steelyard.Monitor`."""

    def stats(self) -> Any:
        """Its counts at this moment, as a `steelyard.online.Stats`."""


class ReportsDecisions(Protocol):
    """A Monitor as seen by those who wait for a turn: it tells of every turn, also of those not judged."""

    def on_decision(self, callback: Callable[[TraceRef | None, str], object], /) -> object:
        """Have a function called once for each turn, when nothing more is to be waited for.

        Args:
            callback: Takes where the turn lives and what became of it: `evaluated`, or the reason for which
                there will be no Evaluation (`sampled_out`, `throttled`, `not_rag`, the cause of a failure).
        """


@runtime_checkable
class Observing(Protocol):
    """A Sink that also wants to know the Monitor it belongs to."""

    def observe(self, monitor: Monitored, /) -> None:
        """Called once, when the Monitor is made. Must return at once and not keep the Monitor alive."""
