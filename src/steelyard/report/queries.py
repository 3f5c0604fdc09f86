"""What a report asks of stored results: one small Protocol, whatever the database."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from steelyard.report.turns import TurnFilter, TurnRow
from steelyard.scores import Direction, Evaluation, Outcome
from steelyard.sinks.sqlite.sums import BARS
from steelyard.stats import Moments


@dataclass(frozen=True, kw_only=True, slots=True)
class Scope:
    """Which results are meant."""

    since: float | None = None
    """Only turns evaluated at or after this Unix time."""
    until: float | None = None
    """Only turns evaluated before this Unix time."""
    metric: str | None = None
    """Only this metric."""
    tag: str | None = None
    """Only turns with this tag."""
    evidence: str | None = None
    """Only turns whose passages are known in this way: one of `turns.EVIDENCE`."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Totals:
    """All turns of a scope together."""

    turns: int = 0
    """Evaluated turns."""
    with_content: int = 0
    """Of those, stored with question and answer."""
    evidence: Mapping[str, int] = field(default_factory=dict)
    """By how their passages are known (`turns.EVIDENCE`), how many turns; empty if that was not counted."""
    first: float | None = None
    """When the first was evaluated, as Unix time."""
    last: float | None = None
    """When the last was evaluated."""
    requests: int = 0
    """Judge and embedding requests."""
    prompt_tokens: int = 0
    """Tokens sent to the judge."""
    completion_tokens: int = 0
    """Tokens received from it."""
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


@dataclass(kw_only=True, slots=True)
class Sums:
    """One metric's running sums over one piece of time, or one group."""

    metric: str
    """The metric's name."""
    bucket: int
    """Which piece of time, from 0."""
    group: str | None
    """The group, where it is one."""
    values: Moments = field(default_factory=Moments)
    """Of the values."""
    passes: Moments = field(default_factory=Moments)
    """Of passed (1) and failed (0)."""
    bars: npt.NDArray[np.float64] = field(default_factory=lambda: np.zeros(BARS))
    """Weight in each of the bars of the distribution."""
    threshold: float | None = None
    """The threshold last used."""
    direction: Direction = "higher"
    """Which way is better."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Aggregates:
    """Running sums over the same scores, cut in two ways."""

    over_time: Sequence[Sums]
    """For each metric and piece of time."""
    by_group: Sequence[Sums]
    """For each metric and group; a turn with several tags is in several of them."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Missing:
    """Scores without a value, of one cause."""

    metric: str
    """The metric's name."""
    status: Outcome
    """`not_applicable` or `failed`."""
    cause: str
    """The stable word for why."""
    explanation: str
    """One of the explanations."""
    count: int
    """How many."""
    weight: float | None = None
    """How many turns of the application they stand for: the sum of 1 / inclusion probability. None of a
    tag's, of which only the number is known."""

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
    """Turns handed to them."""
    skipped: Mapping[str, int]
    """Not judged, by reason: `sampled_out`, `throttled`, `over_budget` ..., most frequent first."""
    accepted: int
    """Not skipped."""
    evaluated: int
    """Judged."""
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
class MonitorRun:
    """One Monitor from its start on, as it last stored its counts."""

    run: str
    """Names it."""
    host: str
    """The machine it runs on."""
    pid: int
    """Its process."""
    started_at: float
    """When it began, as Unix time."""
    updated_at: float
    """When counts were last stored."""
    counts: Funnel
    """What it did with every turn."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Made:
    """One way in which scores were made."""

    judge: str
    """The judge's name."""
    embedder: str
    """The embedder's name, or empty."""
    prompt_version: str
    """Version of the judge's wording."""
    calibrated: bool
    """Whether its probabilities were calibrated against people."""
    scores: int
    """How many scores were made so."""


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
    """The question, or empty."""
    attributes: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Tags, framework and the user's metadata, as texts."""
    unit: str | None = None
    """Its user, or else its session; None where neither is known."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ScoresInTime:
    """One metric's scores, in order of time."""

    times: npt.NDArray[np.float64]
    """When each turn began, as Unix time."""
    values: npt.NDArray[np.float64]
    """In 0..1."""
    inclusion: npt.NDArray[np.float64]
    """The probability with which each turn was picked."""
    units: Sequence[str | None] = field(repr=False)
    """The user of each, or else its session; None where neither is known."""


class ResultsReader(Protocol):
    """Reads stored results. Every method may raise `ConfigurationError` for a database it cannot read."""

    @property
    def name(self) -> str:
        """The database's name, for people."""

    def totals(self, scope: Scope, *, brief: bool = False) -> Totals:
        """All turns of a scope together.

        Args:
            scope: Which results.
            brief: Leave out what takes a look at every turn: requests, tokens, cost, seconds and durations;
                `with_content` is then of the latest 1,000 turns, and `evidence` is not counted of a metric
                or a tag.
        """

    def sums(self, scope: Scope, *, start: float, width: float, by: str | None = None) -> Aggregates:
        """Running sums for each metric and piece of time, and for each metric and group.

        Args:
            scope: Which results.
            start: Unix time at which piece 0 starts.
            width: Seconds a piece lasts.
            by: `tag`, `judge`, `framework` or the name of a metadata field; None for no groups.
        """

    def in_time(self, scope: Scope, *, limit: int) -> dict[str, ScoresInTime]:
        """The latest scores by metric, at most so many in all, each with its session."""

    def missing(self, scope: Scope) -> list[Missing]:
        """Counts of scores without a value, most frequent first."""

    def made(self, scope: Scope) -> list[Made]:
        """How the scores were made, most frequent first."""

    def funnel(self, scope: Scope) -> Funnel | None:
        """What became of every turn, in runs that touch the period; None where no Monitor stored it."""

    def worst(self, scope: Scope, metric: str, *, limit: int) -> list[Evaluation]:
        """The worst turns by a metric, worst first, with all their scores; unreadable ones are left out."""

    def sample(self, scope: Scope, metric: str, *, limit: int) -> list[SampledScore]:
        """The latest scores of a metric, in order of time."""

    def runs(self, *, limit: int) -> list[MonitorRun]:
        """The Monitors that stored their counts, the one that did so last first."""

    def evaluation(self, record_id: str) -> Evaluation | None:
        """One turn with all its scores; None where there is none of this id.

        Raises:
            InvalidRecord: If what is stored is not an Evaluation.
        """

    def turns(
        self,
        wanted: TurnFilter,
        *,
        before: tuple[float, str] | None = None,
        after: tuple[float, str] | None = None,
        limit: int = 50,
    ) -> list[TurnRow]:
        """A page of turns, newest first by time of evaluation, then by id.

        Args:
            wanted: Which turns.
            before: Only turns older than the one with this key (`TurnRow.key`).
            after: Only turns newer than the one with this key; the oldest of these are given.
            limit: At most so many.
        """

    def position(self) -> int:
        """Where writing has got to: greater after every write, 0 where nothing was written yet."""

    def written_after(self, position: int, *, limit: int) -> list[tuple[int, Evaluation]]:
        """What was written after a position, in order of writing, each with its own position.

        A turn that was judged again comes again, at its new position only. Unreadable ones are left out.
        """

    def close(self) -> None:
        """Let go of the database."""


def attributes_of(tags: object, framework: object, metadata: object) -> dict[str, list[str]]:
    """What slices are cut by: a turn's tags, its framework, and what is short in its metadata."""
    found: dict[str, list[str]] = {}
    if isinstance(tags, list):
        found["tag"] = [tag for tag in tags if isinstance(tag, str)]
    if isinstance(framework, str):
        found["framework"] = [framework]
    items: Mapping[str, Any] = metadata if isinstance(metadata, Mapping) else {}
    for name, value in items.items():
        # Longer texts are contents, not labels, and hardly two turns share one.
        if isinstance(value, bool | int | str) and len(str(value)) <= 80:
            found[str(name)] = [str(value)]
    return found
