"""What a Monitor asks its judge beside turns."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from steelyard.errors import ConfigurationError
from steelyard.scores import Usage

LEAST = 20
"""Probes that a judge must answer reliably for canaries to tell anything."""
ENOUGH = 100
"""Answers within which one wrong verdict in ten is found, so that none found means the judge is the same."""
CanaryState = Literal["learning", "watching", "changed", "unusable"]


@dataclass(frozen=True, kw_only=True)
class Canaries:
    """Probes with a known answer, mixed in among the requests for turns.

    First the judge is asked each probe four times (`learning`); those that it answers rightly every time are
    its canaries from then on. A judge that later gets them wrong has changed, whatever the application does.
    Probes never count as turns: they have an account of their own, and no sink sees them.
    """

    share: float = 0.02
    """Probes for each judged turn, in (0, 1]: .02 is one for every fifty turns."""
    file: str | Path | None = None
    """Where the probes that a judge answers reliably are kept, so that a change is noticed across restarts
    and nothing is learned twice; None for as long as the process lives. Delete it to accept a judge as it
    is."""
    probes: int = 80
    """How many are tried while learning, each up to four times: at least 20."""
    alpha: float = 0.05
    """Probability of a false alarm within 1,000 probes."""

    def __post_init__(self) -> None:
        """Refuse what cannot work.

        Raises:
            ConfigurationError: Naming the entry.
        """
        for name in ("share", "alpha"):
            value: object = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= 1:
                raise ConfigurationError(f"canaries: {name} must be in (0, 1], not {value!r}")
        if self.alpha >= 1:
            raise ConfigurationError(f"canaries: alpha must be below 1, not {self.alpha!r}")
        probes: object = self.probes
        if isinstance(probes, bool) or not isinstance(probes, int) or probes < LEAST:
            raise ConfigurationError(
                f"canaries: probes must be a whole number of at least {LEAST}, not {probes!r}"
            )
        file: object = self.file
        if file is not None and not (isinstance(file, str | Path) and str(file)):
            raise ConfigurationError(f"canaries: file must be a path, not {self.file!r}")


@dataclass(frozen=True, kw_only=True, slots=True)
class CanaryReading:
    """What the canaries say of the judge, at one moment."""

    judge: str
    """The judge that is watched; judges that single metrics bring along are not."""
    state: CanaryState
    """`learning` which probes it answers reliably, `watching`, `changed`, or `unusable` where it answers too
    few of them reliably."""
    probes: int
    """Canaries: probes that the judge answered rightly every time while learning."""
    asked: int
    """Answers to canaries since then."""
    right: int
    """Of those, right ones."""
    low: float
    """Lower end of the 95 % confidence sequence for the share that is right."""
    high: float
    """Its upper end."""
    tolerated: float
    """Share of wrong answers that is put down to chance; larger for a judge that wavers."""
    waiting: int
    """Canaries that are to be asked at once and have not been answered yet."""
    checked: int
    """Answers since canaries were last asked for with `Monitor.ask_canaries()`."""
    unanswered: int
    """Probes without an answer, by whatever cause; they count neither as right nor as wrong."""
    changed_at: float | None
    """When the change was noticed, as Unix time; None where there was none."""
    usage: Usage
    """What the probes cost; not part of `Stats.usage` and of no budget."""

    @property
    def cause_of_fall(self) -> Literal["judge", "application", "unknown"]:
        """Whose doing it is if scores have fallen.

        `application` only where 100 canaries were answered since they were asked for, and show no change: ask
        with `Monitor.ask_canaries()` when scores fall, and read this once `waiting` is 0.
        """
        if self.state == "changed":
            return "judge"
        if self.state == "watching" and not self.waiting and self.checked >= ENOUGH:
            return "application"
        return "unknown"
