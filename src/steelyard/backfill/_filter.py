"""Which of the turns that are there are meant."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from steelyard.errors import ConfigurationError
from steelyard.record import Record

_FIELDS = ("id", "status", "trace_id", "tag")


@dataclass(frozen=True, kw_only=True)
class TurnFilter:
    """A period, and conditions on what stands with a turn."""

    since: float | None = None
    """Unix time; only turns that started then or later."""
    until: float | None = None
    """Unix time; only turns that started before."""
    where: Sequence[tuple[str, str]] = ()
    """Pairs of a field (`tag`, `status`, `id`, `trace_id`, or a name in the metadata) and a value."""

    @staticmethod
    def parse(conditions: Sequence[str]) -> tuple[tuple[str, str], ...]:
        """Conditions as they are typed: `tag=prod`.

        Raises:
            ConfigurationError: If one has no `=`.
        """
        pairs = [condition.partition("=") for condition in conditions]
        for name, equals, _ in pairs:
            if not (name.strip() and equals):
                raise ConfigurationError(f"--where wants FIELD=VALUE, not {name!r}")
        return tuple((name.strip(), value.strip()) for name, _, value in pairs)

    def leaves_out(self, record: Record) -> str | None:
        """Why a turn is not meant; None for one that is."""
        if self.since is not None or self.until is not None:
            started = record.timings.started_at if record.timings else None
            if started is None:
                return "no_time"
            if (self.since is not None and started < self.since) or (
                self.until is not None and started >= self.until
            ):
                return "other_time"
        return None if all(_holds(record, name, value) for name, value in self.where) else "other_value"


def _holds(record: Record, name: str, value: str) -> bool:
    if name == "tag":
        return value in record.tags
    if name in _FIELDS:
        return str(getattr(record, name)) == value
    return str(record.metadata.get(name)) == value
