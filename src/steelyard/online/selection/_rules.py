"""Rules: rates for turns that can be told apart by tags, metadata, route or status."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any, get_args

from steelyard.errors import ConfigurationError, SkipReason
from steelyard.online.selection._sampling import checked_rate
from steelyard.record import Record, Status

ROUTE = "route"
"""The metadata entry that `Rule.route` is compared with: the endpoint, chain or tenant a turn belongs to."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Decision:
    """What selection says about one turn."""

    rate: float
    """The probability with which a turn like this is picked."""
    reasons: tuple[str, ...] = ()
    """What moved the rate away from the base rate: names of rules, signs of suspicion."""
    skip: SkipReason | None = None
    """Why it is not judged, whatever its position; None where that decides."""
    forced: bool = False
    """Judged whatever its position, and not slowed down by throttle or budget."""


@dataclass(frozen=True, kw_only=True)
class Rule:
    """A rate for the turns that match. Everything that is given must match; a rule without any matches all.

    Example:
        >>> Rule(route="/chat/*", rate=0.2).matches(Record(metadata={"route": "/chat/help"}))
        True
    """

    rate: float = 1.0
    """The rate of the turns that match."""
    tags: Sequence[str] = ()
    """All of these tags."""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    """All of these entries."""
    route: str | None = None
    """A shell pattern that `metadata["route"]` fits, e.g. `/chat/*`."""
    status: Sequence[Status] | Status = ()
    """One of these endings. Only `ok` and `truncated` turns can be judged, whatever the rate."""
    force: bool = False
    """Judge all of them, past throttle and budget."""
    never: bool = False
    """Judge none of them."""
    name: str = ""
    """What it is called in `Decision.reasons`."""

    def __post_init__(self) -> None:
        checked_rate(self.rate, "a rule's rate")
        if isinstance(self.tags, str):
            raise ConfigurationError(f"a rule's tags must be a list; write tags=[{self.tags!r}]")
        if self.force and self.never:
            raise ConfigurationError(
                f"the rule {self.label!r} says both force and never; leave out one of them"
            )
        for status in self._statuses:
            if status not in get_args(Status):
                raise ConfigurationError(
                    f"a rule's status must be one of {', '.join(get_args(Status))}, not {status!r}"
                )

    @property
    def label(self) -> str:
        """Its name, or what it matches."""
        parts = [*self.tags, *self.metadata, self.route or "", *self._statuses]
        return self.name or "rule:" + ",".join(filter(None, map(str, parts)))

    @property
    def _statuses(self) -> tuple[str, ...]:
        return (self.status,) if isinstance(self.status, str) else tuple(self.status)

    @property
    def ceiling(self) -> float:
        """The highest rate that a turn can get from it."""
        return 1.0 if self.force else self.rate

    def decide(self, record: Record) -> Decision | None:
        """The decision about a turn that matches; None for any other."""
        if not self.matches(record):
            return None
        return Decision(
            rate=self.ceiling,
            reasons=(self.label,),
            skip="never" if self.never else None,
            forced=self.force,
        )

    def matches(self, record: Record) -> bool:
        """Whether a turn is one of those meant."""
        if self._statuses and record.status not in self._statuses:
            return False
        if not set(self.tags) <= set(record.tags):
            return False
        if any(record.metadata.get(name) != value for name, value in self.metadata.items()):
            return False
        return self.route is None or fnmatchcase(str(record.metadata.get(ROUTE, "")), self.route)
