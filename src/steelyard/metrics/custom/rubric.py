"""Rubric score: which of the described levels does the answer reach?"""

from __future__ import annotations

from dataclasses import dataclass

from steelyard.errors import ConfigurationError
from steelyard.metrics._expected import expected_level
from steelyard.metrics._metric import Metric
from steelyard.metrics._steps import needs_of
from steelyard.questions import Level, MetricRun, Part, Rating, require
from steelyard.record import Record
from steelyard.scores import Verdict

_DEFAULT = (
    "The answer is wrong, or not to the point.",
    "The answer has something right, but its main point is wrong or missing.",
    "The answer is mostly right, with errors or gaps.",
    "The answer is right and to the point, with small flaws.",
    "The answer is right, complete and to the point.",
)


@dataclass(frozen=True, kw_only=True)
class RubricScore(Metric):
    """The level reached, normalised: (level - 1) / (n - 1), in 0..1. The raw level stands in the verdict.

    Source: rubric-based scoring as in Prometheus (Kim et al. 2023, arXiv:2310.08491) and Ragas'
    `RubricsScore`.
    """

    key = "rubric_score"

    levels: tuple[str, ...] = _DEFAULT
    """What an answer is like at level 1, 2, ..., worst first."""
    instruction: str = "Which level describes the answer best?"
    """What is judged."""
    shown: tuple[Part, ...] = ("question", "contexts", "answer", "reference")
    """What the judge is shown, as far as the record has it."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.levels) < 2:
            raise ConfigurationError(f"levels must describe at least two levels, not {self.levels!r}")

    @property
    def options_text(self) -> str:
        """How many levels there are; their texts are too long for a line."""
        return f"{len(self.levels)} levels"

    @property
    def needs(self) -> tuple[Part, ...]:
        """The parts that are shown."""
        return needs_of(self.shown)

    def questions(self, record: Record) -> MetricRun:
        """One rating."""
        levels = tuple((float(number), text) for number, text in enumerate(self.levels, start=1))
        asked = Rating(instruction=self.instruction, levels=levels, needs=frozenset(self.shown))
        (level,) = require((yield [asked]), Level)
        expected = expected_level([level])
        return self.scored(
            (level.value - 1) / (len(levels) - 1),
            expected=None if expected is None else (expected - 1) / (len(levels) - 1),
            verdicts=(
                Verdict(about=self.instruction, kind="rating", value=level.value, reason=level.reason),
            ),
            explanation=f"level {level.value:g} of {len(levels)}: {self.levels[int(level.value) - 1]}",
        )
