"""What a judge can answer. One class per form of answer; `Unanswered` says why there is none."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from steelyard.errors import Cause
from steelyard.scores import Evidence, Score


@dataclass(frozen=True, kw_only=True, slots=True)
class YesNo:
    """Yes or no: to `Supported`, `Contradicted`, `Useful`, `Relevant`, `Same` and the like."""

    value: bool
    """Yes or no."""
    probability: float | None = None
    """The judge's probability of yes, in 0..1, where it gives one."""
    reason: str = field(default="", repr=False)
    """The judge's words for it; shown to people, never parsed."""
    evidence: tuple[Evidence, ...] = ()
    """What it rests on."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Level:
    """The answer to `Rating`: one of the levels asked for."""

    value: float
    """The level's value, on the scale of the question."""
    probabilities: Mapping[float, float] = field(default_factory=dict)
    """Probability of each level, where the judge gives them."""
    reason: str = field(default="", repr=False)
    """The judge's words for it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ChosenOption:
    """The answer to `Choose`: one of the options asked for."""

    value: str
    """The option."""
    probabilities: Mapping[str, float] = field(default_factory=dict)
    """Probability of each option, where the judge gives them."""
    reason: str = field(default="", repr=False)
    """The judge's words for it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Texts:
    """The answer to an extraction: `Claims`, `Entities`, `GeneratedQuestions`. May be empty."""

    items: tuple[str, ...] = field(repr=False)
    """What was extracted, in the order of the text."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Vector:
    """The answer to `Embed`."""

    values: tuple[float, ...]
    """The embedding; not normalised."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Unanswered:
    """There is no answer, and this is why."""

    cause: Cause
    """`unsupported` (the judge cannot answer this kind), `refused`, `missing_answer`, `malformed_answer`,
    or the cause of the JudgeError that ended the request."""
    detail: str = field(default="", repr=False)
    """A sentence for people."""


Answer = YesNo | Level | ChosenOption | Texts | Vector | Score | Unanswered
"""The forms of an answer; a Score answers `ScoreOf`."""
