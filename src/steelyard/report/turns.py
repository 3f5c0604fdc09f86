"""The list of turns: which are asked for, and what is told of each."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, Final, Literal

Status = Literal["", "passed", "not_passed", "failed", "not_applicable"]
"""What became of a turn's scores; empty asks nothing."""
STATUSES: Final[tuple[Status, ...]] = ("passed", "not_passed", "failed", "not_applicable")
"""Every status that can be asked for."""
EVIDENCE: Final = ("known", "told", "guessed", "none", "unknown")
"""How the passages of turns are known; `unknown` is of turns that were stored before this was kept."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TurnFilter:
    """Which turns are meant; an empty field asks nothing."""

    metric: str = ""
    """Turns with a score of this metric; `status` and `judge` are then asked of that score."""
    status: Status = ""
    """Turns with a score that passed, did not pass, failed or was not applicable."""
    judge: str = ""
    """Turns with a score by this judge."""
    tag: str = ""
    """Turns with this tag."""
    version: str = ""
    """Turns whose metadata has this `version`."""
    route: str = ""
    """Turns whose metadata has this `route`."""
    evidence: str = ""
    """Turns whose passages are known in this way: one of `EVIDENCE`."""
    text: str = ""
    """Turns with these words in the question or the answer, whatever their case (of ASCII letters)."""
    trace: str = ""
    """Turns of this trace."""

    def parameters(self) -> dict[str, Any]:
        """The fields by name, for a query; the text as the pattern of a `LIKE` whose escape is `!`."""
        escaped = self.text.replace("!", "!!").replace("%", "!%").replace("_", "!_")
        return {**asdict(self), "text": f"%{escaped}%"}


@dataclass(frozen=True, kw_only=True, slots=True)
class TurnRow:
    """One turn in the list."""

    record_id: str
    """The record's id."""
    happened_at: float
    """Unix time at which the turn began."""
    question: str = field(repr=False)
    """The start of the question; empty where content was not stored."""
    scores: tuple[tuple[str, float | None, bool | None, str], ...]
    """Metric, value, whether it passed, and status of each score."""

    @property
    def key(self) -> tuple[float, str]:
        """Its place in the list: time, then id."""
        return self.happened_at, self.record_id
