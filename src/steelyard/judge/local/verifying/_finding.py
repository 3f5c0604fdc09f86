"""What the verifier found about a claim, and the probability that it comes to."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields

from steelyard.judge.local.verifying._checks import Mismatch

ENOUGH = 0.64
"""Score from which a claim is supported. Sentences of people's judgements (the development sets of
docs/judges.md) are supported more often than not from about here."""
OVERLAP = 0.5
"""Share of a claim that a text must say before a difference counts as saying the opposite."""
_FORBIDDEN = 0.3
"""Probability of a claim whose words are all there while something forbids a yes."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Signals:
    """How much of the claim is there; each in 0..1, words weighted by what they tell."""

    window: float = 0.0
    """Share of the claim's words in the best window."""
    everywhere: float = 0.0
    """Share of the claim's words anywhere in the texts."""
    pairs: float = 0.0
    """Share of the claim's neighbouring words that are neighbours in the window."""
    sequence: float = 0.0
    """Share of the claim's words in the longest common subsequence with the window."""
    soft: float = 0.0
    """Cosine of each word of the claim with the most similar word of the window, averaged."""
    cosine: float = 0.0
    """Cosine of the claim with the most similar sentence of the window, or with all of it."""

    @property
    def mean(self) -> float:
        """All six with equal weights."""
        values: list[float] = [getattr(self, field.name) for field in fields(self)]
        return sum(values) / len(values)


@dataclass(frozen=True, kw_only=True, slots=True)
class Penalties:
    """What the texts do not have or say otherwise."""

    missing_numbers: tuple[str, ...] = ()
    """Numbers of the claim that are nowhere in the texts."""
    missing_names: tuple[str, ...] = ()
    """Names of the claim that are nowhere in the texts."""
    negation_flip: bool = False
    """Whether just one of claim and evidence is negated."""

    @property
    def total(self) -> float:
        """What is taken off the mean of the signals."""
        # Chosen by hand and not fitted: what was learnt from one data set was wrong for the next.
        missing = bool(self.missing_numbers) + bool(self.missing_names)
        return 0.15 * missing + 0.10 * self.negation_flip


@dataclass(frozen=True, slots=True)
class Window:
    """Neighbouring sentences of one text."""

    text: int
    """Index of the text."""
    first: int
    """Index of its first sentence."""
    last: int
    """One past its last sentence."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """What the verifier found about one claim."""

    signals: Signals = Signals()
    penalties: Penalties = Penalties()
    window: Window | None = None
    """Where most of the claim is; None where nothing of it is found anywhere."""

    rival_number: bool = False
    """Whether the nearest sentence has another number where the claim's is missing."""
    tabular: bool = False
    """Whether it stands in the row of a table that the claim names, where words have no order."""
    mismatches: tuple[Mismatch, ...] = ()
    """What else speaks against the claim."""

    @property
    def score(self) -> float:
        """Mean of the signals minus the penalties, in 0..1."""
        return min(1.0, max(0.0, self.signals.mean - self.penalties.total))

    @property
    def probability(self) -> float:
        """The score on a scale where a yes begins at one half; below that where something forbids it."""
        found = self.loosely if self.tabular else _on_scale(self.score)
        # Not at one value: of two claims that are both forbidden, the nearer ranks higher.
        found = found if self.holds else min(found, _FORBIDDEN * self.score)
        # To four places: what a linear algebra library adds up in another order is the same claim still.
        return round(found, 4)

    @property
    def loosely(self) -> float:
        """As `probability`, for words that stand in another order by nature: a question's, a table's."""
        found = self.signals
        return _on_scale((found.window + found.everywhere + found.soft) / 3)

    @property
    def holds(self) -> bool:
        """Whether nothing that was found forbids a yes.

        However much of the rest is there, a claim is not supported while one of its numbers or names is
        nowhere in the texts, or while the window says the opposite: a sentence in which one year was
        invented reads just like its source.
        """
        missing = self.penalties.missing_numbers or self.penalties.missing_names
        # Half a conflict is a conflict: the other half is said by the same words.
        return not missing and not self.mismatches and self.conflict < 0.5

    @property
    def conflict(self) -> float:
        """How much the window says the opposite: its likeness to the claim, where something is turned."""
        opposite = any(one.opposite for one in self.mismatches)
        turned = self.penalties.negation_flip or self.rival_number or opposite
        return self.signals.soft if turned and self.signals.window >= OVERLAP else 0.0

    @property
    def reason(self) -> str:
        """What was found, in a few words."""
        wrong = [f"number {number!r} is nowhere" for number in self.penalties.missing_numbers]
        wrong += [f"name {name!r} is nowhere" for name in self.penalties.missing_names]
        if self.penalties.negation_flip:
            wrong.append("one of claim and evidence is negated")
        wrong += [one.reason for one in self.mismatches]
        return "; ".join(
            [f"{self.signals.window:.0%} of its words are found together, rare ones counting more", *wrong]
        )

    @property
    def notes(self) -> dict[str, object]:
        """Everything, for the evidence of a verdict."""
        rounded = {name: round(value, 3) for name, value in asdict(self.signals).items()}
        return {**asdict(self.penalties), "signals": rounded}


def _on_scale(score: float) -> float:
    """A score as a probability: straight from 0 to one half at `ENOUGH`, and on to 1."""
    if score < ENOUGH:
        return score / ENOUGH / 2
    return 0.5 + (score - ENOUGH) / (1 - ENOUGH) / 2
