"""What a report shows, as plain data: the same for the terminal, the HTML file and a notebook."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from steelyard.results.queries import Funnel, Made, Missing, Totals
from steelyard.scores import Cause, Direction, Evaluation
from steelyard.stats import Alike, Deploy, Difference, Estimate

Shown = Literal["expectation", "verdicts", "both"]
_FEW_MISSING = 0.03


@dataclass(frozen=True, kw_only=True, slots=True)
class Point:
    """One piece of time on a metric's axis."""

    time: float
    """When it starts, as Unix time."""
    estimate: Estimate


@dataclass(frozen=True, kw_only=True, slots=True)
class ChangeFigure:
    """A moment at which a metric changed, or a time over which it drifted."""

    since: float
    """When what came after begins, as Unix time; of a drift, its beginning."""
    until: float | None = None
    """When a drift ends; None for a change at once."""
    difference: Difference
    """After - before, like days compared with like; of a drift, its end - its beginning. If no metric has
    changed, one is `clear` in one of twenty reports at most."""
    worse: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class ScreenFigure:
    """What a screen adds to one metric of the judge."""

    screens: tuple[str, ...]
    """The screens that scored turns; of fitted ones with their version."""
    judges: tuple[str, ...]
    """The judges that scored some of them."""
    cheap: Estimate
    """The mean of what the screen said, of all turns that it saw."""
    dear: Estimate
    """The mean of what the judge said, by its turns alone."""
    worth: float
    """As many turns judged at random without a screen would tell as much."""


@dataclass(frozen=True, kw_only=True, slots=True)
class MetricFigure:
    """One metric over the whole period."""

    metric: str
    direction: Direction
    threshold: float | None
    estimate: Estimate
    pass_rate: Estimate | None
    """The weighted share of turns that pass; None without a threshold."""
    points: tuple[Point, ...]
    smooth: tuple[float, ...]
    """For the eye: the exponentially weighted average of the points so far, by the turns they stand for; a
    point counts half after seven more."""
    changes: tuple[ChangeFigure, ...]
    """Every clear change in order of time, or one that is not clear; none of too few turns to tell."""
    shares: tuple[float, ...]
    """The weighted share of turns in each of 20 bars from 0 to 1."""
    stands_for: float
    """How many turns of the application the scored ones stand for: the sum of 1 / inclusion probability."""
    unequal: bool
    """Whether turns were picked with different probabilities, so that a plain mean would mislead."""
    alike: Alike = "no"
    """How it is known which turns resemble each other: by their session or user, by the order in which they
    came where neighbours do and nobody knows a session; or taken to be independent."""
    design_effect: float = 1.0
    """How many times the variance is what it would be if turns were independent."""
    missing: float = 0.0
    """The weighted share of turns without a value among those to which the metric applies, 0..1: judging
    failed, or found nothing to judge."""
    screen: ScreenFigure | None = None
    """What a screen adds, by which all figures of the metric are made more exact; None without one."""
    shows: Shown | None = None
    """Which value of a score it is of: the formula's expectation under the judge's probabilities, the formula
    on bare verdicts, or some of `both`, as the turns in `worst` have it; None if none were read."""

    @property
    def bounds(self) -> tuple[float, float] | None:
        """The interval whatever the missing values are; None if they are a few percent at most."""
        return self.estimate.with_missing(self.missing) if self.missing > _FEW_MISSING else None

    @property
    def change(self) -> ChangeFigure | None:
        """The change that is largest; None of too few turns to tell."""
        return max(self.changes, key=lambda one: abs(one.difference.value), default=None)


@dataclass(frozen=True, kw_only=True, slots=True)
class GroupFigure:
    """One metric in one group, beside the group it is compared with."""

    metric: str
    direction: Direction
    group: str
    estimate: Estimate
    difference: Difference | None
    """This group - the first one; None for the first itself."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SliceFigure:
    """A part of the traffic in which a metric stands out."""

    metric: str
    direction: Direction
    attribute: str
    """`tag`, `framework`, `questions about` or a metadata field."""
    value: str
    n: int
    share: float
    """Its share of all turns, 0..1."""
    difference: Difference
    """Slice - rest."""
    q: float
    judge: bool = False
    """Whether the judge may be what is weak here: it reads another language, uncalibrated."""


@dataclass(frozen=True, kw_only=True, slots=True)
class FindingFigure:
    """What changed in a metric: since when, in which slice, and what that goes back to."""

    metric: str
    direction: Direction
    names: tuple[tuple[str, str], ...]
    """Attribute and value of the slice, then those of others that are the same turns; empty of all turns."""
    since: float
    """When what came after begins, as Unix time; of a drift, its beginning."""
    earliest: float
    """The first moment that explains it as well, at 95 %."""
    latest: float
    difference: Difference
    """The slice after - before."""
    share: float
    """The share of all turns that the slice has, 0..1."""
    turns: float
    """How many turns of the application those since then stand for."""
    harm: float
    """By what findings are ranked: turns x fall x what the metric is worth; below 0 if it got better."""
    within: Difference | None = None
    """The difference if the questions since then had the mix of those before; None if that is not known."""
    cause: tuple[Cause, float, float] | None = None
    """What more turns suffer from since then, and the share of turns before and since; None of nothing."""
    deploys: tuple[Deploy, ...] = ()
    """Versions that came into use then; of several, nothing tells which it was."""
    versioned: bool = False
    """Whether any field of the turns looks like a version."""
    worst: tuple[str, ...] = ()
    """Records of the worst turns since then."""
    until: float | None = None
    """When a drift ends, as Unix time; None for a step."""
    beside: str = ""
    """The metric of a more harmful finding of the same turns, time, cause and version: told there already."""

    @property
    def worse(self) -> bool:
        """Whether the metric is worse since then, by its own direction."""
        return (self.difference.value < 0) == (self.direction == "higher")

    @property
    def by_mix(self) -> bool:
        """Whether most of it is that other questions are asked."""
        return self.within is not None and abs(self.within.value) < abs(self.difference.value) / 2


@dataclass(frozen=True, kw_only=True, slots=True)
class PeopleFigure:
    """What people's labels say of one metric."""

    metric: str
    labelled: int
    """Turns that people labelled, within the time of the scores looked at."""
    contradictory: int
    """Turns left out because as many people say good as bad."""
    scored: int
    """Scores looked at, the latest ones."""
    raw: Estimate | None
    """Their mean, turned so that higher is better."""
    corrected: Estimate | None
    """The share of turns that people would call good (PPI++); None with fewer than ten drawn turns."""
    picked: int
    """Labelled turns that were not drawn by `steelyard label`: they do not count for `corrected`."""
    kappa: Estimate | None
    """Cohen's kappa of judge and people, a score of at least one half read as good; None where all say the
    same."""
    area: Estimate | None
    """AUROC of the score for what people call good; None where labels are of one kind."""
    people: Estimate | None
    """Cohen's kappa among people; None where no turn has two labels, or all say the same."""
    to_halve: int | None
    """How many more labels would halve the interval of the corrected mean; None where labels alone do not."""


@dataclass(frozen=True, kw_only=True, slots=True)
class WorstTurns:
    """The worst turns by one metric."""

    metric: str
    turns: tuple[Evaluation, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class CauseFigure:
    """What some turns suffer from."""

    cause: Cause
    """The cause, as docs/explain/diagnosis.md has it."""
    turns: int
    """How many of the turns that were diagnosed."""
    share: float
    mend: str
    record_id: str


@dataclass(frozen=True, kw_only=True, slots=True)
class ReportFigures:
    """Everything a report shows."""

    source: str
    made_at: float
    """When the report was made, as Unix time."""
    width: float
    """Seconds a piece of time lasts."""
    totals: Totals
    metrics: tuple[MetricFigure, ...]
    missing: tuple[Missing, ...]
    funnel: Funnel | None
    """What became of every turn, also of those that were not judged; None where no Monitor stored it."""
    by: str | None
    groups: tuple[GroupFigure, ...]
    causes: tuple[CauseFigure, ...]
    notes: tuple[str, ...]
    """What a reader must know before believing a figure."""
    every: int = 1
    """1, or how many scores each one that was read stands for, of the metric that has the most."""
    causes_every: int = 1
    """1, or how many turns each one stands for whose cause was counted."""
    made: tuple[Made, ...] = ()
    worst: tuple[WorstTurns, ...] = ()
    findings: tuple[FindingFigure, ...] = ()
    slices: tuple[SliceFigure, ...] = ()
    """Parts of the traffic that are better or worse than the rest at all times."""
    people: tuple[PeopleFigure, ...] = ()
