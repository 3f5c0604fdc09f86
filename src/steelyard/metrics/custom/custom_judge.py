"""A judge of your own, in the manner of G-Eval: a criterion, steps, and a scale."""

from __future__ import annotations

import math
from dataclasses import dataclass

from steelyard.errors import ConfigurationError
from steelyard.metrics._metric import Metric
from steelyard.metrics._steps import needs_of
from steelyard.questions import Level, MetricRun, Part, Rating, require
from steelyard.record import Record
from steelyard.scores import Verdict


@dataclass(frozen=True, kw_only=True)
class CustomJudge(Metric):
    """A rating on a scale of whole numbers, normalised to 0..1.

    Source: G-Eval (Liu et al. 2023, arXiv:2303.16634), section 2: where the judge gives the probability of
    each level, the value is their weighted mean, sum p_i s_i, and the standard error its standard deviation;
    else it is the level that was chosen.
    """

    key = "custom_judge"

    criterion: str = ""
    """What is judged, e.g. "Is the tone right for a customer?"."""
    steps: tuple[str, ...] = ()
    """How to judge it, step by step; optional beside a criterion."""
    scale: tuple[int, int] = (0, 10)
    """Lowest and highest level."""
    shown: tuple[Part, ...] = ("question", "contexts", "answer")
    """What the judge is shown, as far as the record has it."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.criterion and not self.steps:
            raise ConfigurationError("CustomJudge needs a criterion= or steps=")
        if [type(end) for end in self.scale] != [int, int] or not 0 < self.scale[1] - self.scale[0] <= 100:
            raise ConfigurationError(
                f"scale must be (lowest, highest), whole numbers at most 100 apart, not {self.scale!r}"
            )

    @property
    def needs(self) -> tuple[Part, ...]:
        """The parts that are shown."""
        return needs_of(self.shown)

    def questions(self, record: Record) -> MetricRun:
        """One rating."""
        low, high = self.scale
        steps = " ".join(f"({number}) {step}" for number, step in enumerate(self.steps, start=1))
        levels = tuple((float(level), _meaning(level, low, high)) for level in range(low, high + 1))
        instruction = " ".join(filter(None, [self.criterion, steps]))
        (level,) = require(
            (yield [Rating(instruction=instruction, levels=levels, needs=frozenset(self.shown))]), Level
        )
        mean, deviation = _moments(level)
        return self.scored(
            (level.value - low) / (high - low),
            expected=None if deviation is None else (mean - low) / (high - low),
            verdicts=(Verdict(about=instruction, kind="rating", value=level.value, reason=level.reason),),
            standard_error=None if deviation is None else deviation / (high - low),
            explanation=f"rated {mean:.3g} on {low}..{high}" + (f": {level.reason}" if level.reason else ""),
        )


def _meaning(level: int, low: int, high: int) -> str:
    if level == low:
        return "not met at all"
    return "fully met" if level == high else ""


def _moments(level: Level) -> tuple[float, float | None]:
    """Probability-weighted mean and standard deviation, or the chosen level alone."""
    total = math.fsum(level.probabilities.values())
    if total <= 0:
        return level.value, None
    mean = math.fsum(value * p for value, p in level.probabilities.items()) / total
    variance = math.fsum(p * (value - mean) ** 2 for value, p in level.probabilities.items()) / total
    return mean, math.sqrt(variance)
