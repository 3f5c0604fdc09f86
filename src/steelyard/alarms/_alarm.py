"""An alarm as a user writes it down: what must not happen, how sure to be, and whom to tell."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from steelyard._internal.text import instead_of
from steelyard.alarms._targets import check_target
from steelyard.errors import ConfigurationError
from steelyard.record import Record

# Fewer turns tell a mean so badly that no fall could be told from it.
_LEAST_BASELINE = 30


@dataclass(frozen=True, kw_only=True)
class Alarm:
    """Says when a metric's mean over all turns has fallen, however often one looks.

    Exactly one of `below`, `above` and `falls_by` is given. Turns that were picked with a low probability
    count for those like them that were not.

    Example:
        >>> Alarm(metric="faithfulness", below=0.8, where={"route": "/billing"}).label
        'faithfulness below 0.8 where route=/billing'
    """

    metric: str
    """The metric's name."""
    below: float | None = None
    """Goes off when the mean is below this."""
    above: float | None = None
    """Goes off when the mean is above this; for metrics of which less is better."""
    falls_by: float | None = None
    """Goes off when the mean is worse by clearly more than this than it was in the first `baseline` turns."""
    alpha: float = 0.05
    """The probability with which it ever goes off although nothing fell, between two starts."""
    where: Mapping[str, Any] = field(default_factory=dict)
    """Only turns with these: `tag`, and any entries of the turn's metadata, such as `route` or `version`."""
    to: tuple[str, ...] | list[str] = ("log",)
    """Whom to tell: `log`, `opentelemetry`, `webhook:URL`, `slack:URL`; instead of a URL, `env:NAME` names
    the variable that holds it."""
    name: str = ""
    """What it is called; by default what it watches. Its state is kept under this name."""
    baseline: int = 200
    """With `falls_by`: how many turns tell what is normal at first, at least 30. The mean of 200 passes and
    failures is known to about .05, that of 1,600 to .02: a smaller fall is not told."""
    range: tuple[float, float] | list[float] = (0.0, 1.0)
    """The lowest and highest value the metric can have."""
    silent_after: float | None = None
    """Seconds without a scored turn after which that is told too; None for never."""
    link: str = ""
    """How to reach a turn, e.g. `http://127.0.0.1:8321/trace/{trace_id}`; also `{record_id}`."""

    def __post_init__(self) -> None:
        """Refuse what cannot work.

        Raises:
            ConfigurationError: Naming the entry.
        """
        # More than one bar would make it unclear which of them went off.
        given = [name for name in ("below", "above", "falls_by") if getattr(self, name) is not None]
        if not _is_word(self.metric):
            raise ConfigurationError("alarm: metric must be the name of a metric")
        said = " and ".join(given) or "none of them"
        self._must(len(given) == 1, f"give one of below, above and falls_by, not {said}")
        self._check_numbers(given[0])
        self._must(_is_list_of_words(self.to), "to must be a list such as ['log', 'slack:env:SLACK_URL']")
        for target in self.to:
            check_target(target, self._me)
        self._must(isinstance(self.where, Mapping), "where must be a table such as {route = '/chat'}")
        leads = not self.link or "{trace_id}" in self.link or "{record_id}" in self.link
        self._must(leads, "link must hold {trace_id} or {record_id}")

    def _check_numbers(self, bar: str) -> None:
        self._must(_is_range(self.range), "range must be the lowest and the highest value")
        low, high = self.range
        for name in (bar, "alpha"):
            self._must(_is_number(getattr(self, name)), f"{name} must be a number")
        self._must(0 < self.alpha < 1, f"alpha must be between 0 and 1, not {self.alpha!r}")
        level: float = getattr(self, bar)
        if bar == "falls_by":
            self._must(0 < level < high - low, f"falls_by must be between 0 and {high - low:g}")
        else:
            self._must(low < level < high, f"{bar} must be between {low:g} and {high:g}; see range")
        enough = type(self.baseline) is int and self.baseline >= _LEAST_BASELINE
        self._must(enough, "baseline must be a whole number of at least 30")
        silent = self.silent_after
        fine = silent is None or (_is_number(silent) and silent > 0)
        self._must(fine, "silent_after must be a number of seconds")

    def _must(self, fine: bool, wanted: str) -> None:
        if not fine:
            raise ConfigurationError(f"{self._me}: {wanted}")

    @property
    def _me(self) -> str:
        return f"alarm {self.name or self.metric!r}"

    @property
    def label(self) -> str:
        """Its name, or what it watches."""
        if self.name:
            return self.name
        bar = next(name for name in ("below", "above", "falls_by") if getattr(self, name) is not None)
        words = f"{self.metric} {bar.replace('_', ' ')} {getattr(self, bar):g}"
        return words + (f" where {self.slice}" if self.where else "")

    @property
    def slice(self) -> str:
        """The turns it watches, in words; empty for all."""
        return ", ".join(f"{name}={value}" for name, value in sorted(self.where.items()))

    @property
    def fingerprint(self) -> str:
        """Changes with whatever decides what it watches: state of another fingerprint is of no use to it."""
        # Whom it tells and what it is called may change without what it has learnt being lost.
        own = {name: value for name, value in asdict(self).items() if name not in ("to", "name", "link")}
        # `default`: `where` may hold a date of TOML, which JSON does not have.
        return hashlib.sha256(json.dumps(own, sort_keys=True, default=str).encode()).hexdigest()[:16]

    def quality(self, value: float, *, lower_is_better: bool) -> float | None:
        """A value as a number in 0..1 of which more is better; None outside of `range`."""
        low, high = self.range
        # The bet is only valid for bounded scores; one value outside could win it at once.
        if not low <= value <= high:
            return None
        share = (value - low) / (high - low)
        return 1 - share if self.mirrored(lower_is_better) else share

    def value(self, quality: float, *, lower_is_better: bool) -> float:
        """The metric's value for a number in 0..1."""
        low, high = self.range
        return low + (high - low) * (1 - quality if self.mirrored(lower_is_better) else quality)

    def mirrored(self, lower_is_better: bool) -> bool:
        """Whether less of the metric is better, for this alarm."""
        return self.above is not None or (self.falls_by is not None and lower_is_better)

    def matches(self, record: Record | None) -> bool:
        """Whether a turn is one of those it watches; without its content, only an alarm over all turns."""
        if not self.where:
            return True
        if record is None:
            return False
        for name, wanted in self.where.items():
            # `tag` is looked for among the turn's tags, everything else in its metadata.
            if name == "tag":
                if wanted not in record.tags:
                    return False
            elif record.metadata.get(name) != wanted:
                return False
        return True


def alarms_from(entries: Iterable[Mapping[str, Any]]) -> tuple[Alarm, ...]:
    """Alarms from the `[[alarm]]` tables of `steelyard.toml`.

    Raises:
        ConfigurationError: Naming what is wrong, or two alarms of one name.
    """
    known = {item.name for item in fields(Alarm)}
    alarms = []
    for entry in entries:
        if not isinstance(entry, Mapping):
            raise ConfigurationError("alarm: write each one as a table, [[alarm]]")
        if unknown := sorted(set(entry) - known):
            meant = instead_of(unknown[0], sorted(known))
            raise ConfigurationError(f"alarm: there is no entry {unknown[0]!r}; {meant}")
        if "metric" not in entry:
            raise ConfigurationError('alarm: metric is missing; write metric = "faithfulness", for example')
        alarms.append(Alarm(**entry))
    return distinct(alarms)


def distinct(alarms: Iterable[Alarm]) -> tuple[Alarm, ...]:
    """Alarms, each with a name of its own, under which its state is kept."""
    given = tuple(alarms)
    labels = [alarm.label for alarm in given]
    for label in labels:
        if labels.count(label) > 1:
            raise ConfigurationError(f"there are two alarms {label!r}; give them names")
    return given


def bar_of(alarm: Alarm) -> float:
    """What a stake of 1 must have become for the alarm to go off."""
    # The other half of alpha is spent on the target, which may be off (`_learn`).
    return (2 if alarm.falls_by is not None else 1) / alarm.alpha


def _is_number(value: object) -> bool:
    # True is an int to Python, and `alpha = true` is a mistake.
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def _is_word(value: object) -> bool:
    return isinstance(value, str) and bool(value)


def _is_list_of_words(value: object) -> bool:
    return isinstance(value, tuple | list) and bool(value) and all(map(_is_word, value))


def _is_range(value: Any) -> bool:
    pair = isinstance(value, tuple | list) and len(value) == 2 and all(map(_is_number, value))
    return pair and value[0] < value[1]
