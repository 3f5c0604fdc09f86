"""What a report asks of stored results, and what it is told."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Final, Literal, get_args

import numpy as np
import numpy.typing as npt

from steelyard.scores import Direction, Outcome

Status = Literal["", "passed", "not_passed", "failed", "not_applicable"]
"""What became of a turn's scores; empty asks nothing."""
STATUSES: Final[tuple[Status, ...]] = get_args(Status)[1:]
"""Every status that can be asked for."""
EVIDENCE: Final = ("known", "told", "guessed", "none", "unknown")
"""How the passages of turns are known; `unknown` is of turns that were stored before this was kept."""

Chosen = str | tuple[str, ...]
"""One value, or several of which a turn has any; empty asks nothing."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TurnFilter:
    """Which turns are meant; an empty field asks nothing."""

    metric: Chosen = ""
    """Turns with a score of this metric; `status` and `judge` are then asked of that score."""
    status: Status | tuple[Status, ...] = ""
    """Turns with a score that passed, did not pass, failed or was not applicable."""
    judge: Chosen = ""
    """Turns with a score by this judge."""
    tag: Chosen = ""
    """Turns with this tag."""
    version: Chosen = ""
    """Turns whose metadata has this `version`."""
    route: Chosen = ""
    """Turns whose metadata has this `route`."""
    evidence: Chosen = ""
    """Turns whose passages are known in this way: one of `EVIDENCE`."""
    cause: Chosen = ""
    """Turns that suffer from this: one of `steelyard.scores.CAUSES`, or `fine`."""
    label: Chosen = ""
    """Turns of which somebody says this: `good`, `bad`, or of a claim `supported`, `not_supported`."""
    noted: bool = False
    """Turns with a label that has a note."""
    where: tuple[tuple[str, str], ...] = ()
    """Turns with these values of `tenant`, `framework` or fields of the metadata; of several values of one
    name any. An empty value is that of turns without one."""
    since: float | None = None
    """Turns that began at or after this Unix time."""
    until: float | None = None
    """Turns that began before this Unix time."""
    text: str = ""
    """Turns with these words in the question or the answer, whatever their case (of ASCII letters)."""
    trace: str = ""
    """Turns of this trace."""
    session: Chosen = ""
    """Turns of this session."""

    def chosen(self, field: str) -> tuple[str, ...]:
        """The values that are asked for, of a field that may have several."""
        value: Chosen = getattr(self, field)
        return value if isinstance(value, tuple) else (value,) if value else ()

    def parameters(self) -> dict[str, Any]:
        """The values by name, as `tag0` and `tag1`; the text is a `LIKE` pattern with the escape `!`."""
        escaped = self.text.replace("!", "!!").replace("%", "!%").replace("_", "!_")
        single = {"since": self.since, "until": self.until, "trace": self.trace, "text": f"%{escaped}%"}
        return single | {
            f"{field}{number}": value for field in CHOSEN for number, value in enumerate(self.chosen(field))
        }


def of_session(session: str, tenant: str) -> TurnFilter:
    """The turns of a conversation of one tenant; of those that name none if it is empty."""
    return TurnFilter(session=session, where=(("tenant", tenant),))


CHOSEN: Final = (
    *("metric", "status", "judge", "tag", "version", "route"),
    *("evidence", "cause", "label", "session"),
)
"""The fields of a `TurnFilter` that may have several values."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TurnRow:
    """One turn in the list."""

    record_id: str
    happened_at: float
    """Unix time at which the turn began."""
    question: str = field(repr=False)
    """The start of the question; empty where content was not stored."""
    scores: tuple[tuple[str, float | None, bool | None, str], ...]
    """Metric, value, whether it passed, and status of each score."""
    answer: str = field(default="", repr=False)
    """The start of the answer."""
    cause: str | None = None
    """What it suffers from, or `fine`; None if it was not diagnosed."""
    session: str | None = None
    cost: float | None = None
    """US dollars that judging it cost, where prices are known."""
    duration: float = 0.0
    """Seconds that judging it took."""
    attributes: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Tags, tenant, framework and the user's metadata, as texts."""

    @property
    def key(self) -> tuple[float, str]:
        """Its place in the list: time, then id."""
        return self.happened_at, self.record_id


@dataclass(frozen=True, kw_only=True, slots=True)
class Facet:
    """What some turns differ by, and how many have which value of it."""

    name: str
    """A field of `TurnFilter`, or a name in its `where`."""
    counts: Mapping[str, int]
    """Turns by value, most frequent first."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Facets:
    """What a list of turns can be narrowed by."""

    facets: tuple[Facet, ...]
    """Those that have more than one value, or are asked for."""
    turns: int
    """How many turns were found; about so many where `every` is above 1."""
    every: int = 1
    """Counts are exact at 1; otherwise each counted turn stands for so many, of a part taken evenly."""
    metrics: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Marks:
    """What stands on the time axis beside scores."""

    deploys: tuple[tuple[float, str], ...] = ()
    """When each `version` came into use, as Unix time, and its name; the latest ones, in order."""
    more: int = 0
    """How many came into use earlier."""
    labels: tuple[tuple[float, int], ...] = ()
    """How many labels people gave in which piece of time, by its beginning."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Scope:
    """Which results are meant."""

    since: float | None = None
    """Only turns evaluated at or after this Unix time."""
    until: float | None = None
    """Only turns evaluated before this Unix time."""
    metric: str | None = None
    tag: str | None = None
    evidence: str | None = None
    """Only turns whose passages are known in this way: one of `EVIDENCE`."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Totals:
    """All turns of a scope together."""

    turns: int = 0
    with_content: int = 0
    """Of those, stored with question and answer."""
    evidence: Mapping[str, int] = field(default_factory=dict)
    """By how their passages are known (`EVIDENCE`), how many turns; empty if that was not counted."""
    first: float | None = None
    """When the first was evaluated, as Unix time."""
    last: float | None = None
    requests: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost: float | None = None
    """US dollars, where prices are known."""
    priced: int = 0
    """Turns whose cost is known."""
    seconds: float = 0.0
    """Seconds waited for judges, summed over requests."""
    median_duration: float | None = None
    """Seconds an evaluation took, in the median."""
    high_duration: float | None = None
    """Seconds that 95 % of evaluations did not exceed."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Missing:
    """Scores without a value, of one cause."""

    metric: str
    status: Outcome
    """`not_applicable` or `failed`."""
    cause: str
    """The stable word for why."""
    explanation: str
    count: int
    weight: float
    """How many turns of the application they stand for: the sum of 1 / inclusion probability."""

    @property
    def might_have_one(self) -> bool:
        """Whether the metric applies to such turns: they lack nothing that it needs."""
        return not self.cause.startswith("missing_") and self.cause != "contexts_guessed"


@dataclass(frozen=True, kw_only=True, slots=True)
class Funnel:
    """What Monitors did with every turn, added up over their runs."""

    runs: int
    """Monitors, each from its start to its end."""
    first: float
    """When the first began, as Unix time."""
    last: float
    """When counts were last stored."""
    seen: int
    skipped: Mapping[str, int]
    """Not judged, by reason: `sampled_out`, `throttled`, `over_budget` ..., most frequent first."""
    accepted: int
    evaluated: int
    """Judged, or seen by a screen alone."""
    by_judge: int
    """Of those, the ones that the judge has seen: all where there is no screen."""
    pending: int
    """Queued or being judged when counts were last stored."""
    spooled: int
    """Handed to a spool that other processes judge from."""
    abandoned: int
    """Given up at exit because time ran out."""
    dead: Mapping[str, int]
    """Impossible to judge, by cause."""
    floor: float | None = None
    """The lowest probability with which these Monitors pick a turn; None where none of them says."""


@dataclass(frozen=True, kw_only=True, slots=True)
class StoredCanaries:
    """What probes with a known answer said of a Monitor's judge; see `steelyard.online.CanaryReading`."""

    judge: str
    """The judge that is watched; judges that single metrics bring along are not."""
    state: str
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
    changed_at: float | None
    """When the change was noticed, as Unix time; None where there was none."""


@dataclass(frozen=True, slots=True)
class StoredRun:
    """One Monitor from its start on, as it last stored its counts."""

    run: str
    host: str
    pid: int
    started_at: float
    """When it began, as Unix time."""
    updated_at: float
    counts: Funnel
    canaries: StoredCanaries | None = None
    """What its canaries said; None without any."""


@dataclass(frozen=True, slots=True)
class Made:
    """One way in which scores were made."""

    judge: str
    embedder: str
    """The embedder's name, or empty."""
    prompt_version: str
    calibrated: bool
    """Whether its probabilities were calibrated against people."""
    scores: int
    missing: int
    """How many of them have no value, though the turn has all that the metric needs."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SampledScore:
    """One score with what slices are cut by."""

    value: float
    """In 0..1."""
    inclusion: float
    """The probability with which the turn was picked."""
    happened_at: float
    """Unix time at which the turn began."""
    question: str = field(repr=False)
    attributes: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Tags, tenant, framework and the user's metadata, as texts."""
    unit: str | None = None
    """Its user, or else its session; None where neither is known."""
    record_id: str = ""
    diagnosis: str | None = None
    """What the turn suffers from, or `fine`; None if it was not diagnosed."""
    judged: bool = True
    """Whether the judge gave it a value; if not, `value` is 0 and only a screen saw it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class MetricScores:
    """One metric's scores, in order of time; columns of one length."""

    times: npt.NDArray[np.float64]
    """When each turn began, as Unix time."""
    values: npt.NDArray[np.float64]
    """In 0..1."""
    passed: npt.NDArray[np.float64]
    """1 if it passed, 0 if not; NaN without a threshold."""
    inclusion: npt.NDArray[np.float64]
    """The probability with which each turn was picked, divided by `every`."""
    units: Sequence[str | None] = field(repr=False)
    """The user of each, or else its session; None where neither is known."""
    owners: Sequence[str | None] = field(repr=False)
    """The record of each, or its judge if groups are cut by judges; None if there are no groups."""
    threshold: float | None
    """The threshold last used."""
    direction: Direction
    every: int = 1
    """How many scores each of these stands for, where only a part of them was read."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ScreenedTurns:
    """One metric's turns that a screen or the judge saw, in order of time; columns of one length."""

    times: npt.NDArray[np.float64]
    """When each turn began, as Unix time."""
    said: npt.NDArray[np.float64]
    """What the screen said; NaN where it said nothing."""
    screened: npt.NDArray[np.float64]
    """The probability with which the screen saw it."""
    makes: npt.NDArray[np.object_]
    """The screen's name and, if it was fitted, its version."""
    units: npt.NDArray[np.object_] = field(repr=False)
    """The user of each, or else its session; None where neither is known."""
    records: npt.NDArray[np.object_] = field(repr=False)
    judges: npt.NDArray[np.object_]
    """The judge's name; empty where none saw it."""
    judged: npt.NDArray[np.float64]
    """The judge's value; NaN where it has none."""
    passed: npt.NDArray[np.float64]
    """1 if it passed, 0 if not; NaN without a value or threshold."""
    inclusion: npt.NDArray[np.float64]
    """The probability with which the judge saw it; NaN where it did not, or failed."""

    def part(self, places: Sequence[int], *, judged_every: int = 1, every: int = 1) -> ScreenedTurns:
        """Some of the turns: one in so many of those that the judge saw, and of all others."""
        columns = {one.name: getattr(self, one.name)[list(places)] for one in fields(self)}
        seen = np.isfinite(columns["inclusion"])
        columns["screened"] = columns["screened"] / np.where(seen, judged_every, every)
        columns["inclusion"] = columns["inclusion"] / judged_every
        return ScreenedTurns(**columns)
