"""The Sink protocol: where Evaluations go."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

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


class ObservedMonitor(Protocol):
    """Something with the statistics of a `steelyard.Monitor`."""

    def stats(self) -> Any:
        """Its counts at this moment, as a `steelyard.online.Stats`."""


@runtime_checkable
class MonitorAware(Protocol):
    """A Sink that also wants to know the Monitor it belongs to."""

    def observe(self, monitor: ObservedMonitor, /) -> None:
        """Called once, when the Monitor is made. Must return at once and not keep the Monitor alive."""


@runtime_checkable
class Checkable(Protocol):
    """A Sink that can say whether results could be delivered."""

    async def check(self) -> None:
        """See whether they could; nothing is stored.

        Raises:
            SteelyardError: If they could not; the message says why.
        """
