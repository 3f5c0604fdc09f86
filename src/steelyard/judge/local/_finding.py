"""What the verifier found about a claim, and the probability that it comes to."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields

from steelyard.judge.local._checks import Mismatch

ENOUGH = 0.64
"""Score from which a claim is supported. Sentences of people's judgements (the development sets of
docs/reference/judges.md) are supported more often than not from about here."""
_ENOUGH_WITH_NUMBERS = 0.42
"""The same for a claim with numbers, which are looked for by themselves: fewer words will do. On the sets of
docs/check/judge.md anything from .25 to .46 does about as well."""
OVERLAP = 0.5
"""Share of a claim that a text must say before a difference counts as saying the opposite."""
_FORBIDDEN = 0.3
"""Probability of a claim whose words are all there while something forbids a yes."""
_MISSING, _TURNED = 0.15, 0.10
"""What a missing number or name, and a turned negation, take off the mean of the signals. Chosen by hand:
what was learnt from one data set was wrong for the next."""


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


@dataclass(frozen=True, slots=True)
class Window:
    """Neighbouring sentences of one text."""

    text: int
    first: int
    last: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """What the verifier found about one claim."""

    signals: Signals = Signals()
    window: Window | None = None
    """Where most of the claim is; None where nothing of it is found anywhere."""
    has_numbers: bool = False
    """Whether the claim has any."""
    missing_numbers: tuple[str, ...] = ()
    missing_names: tuple[str, ...] = ()
    negation_flip: bool = False
    """Whether just one of claim and evidence is negated."""
    rival_number: bool = False
    """Whether the nearest sentence has another number where the claim's is missing."""
    in_row: bool = False
    """Whether it stands in the row of a table that the claim names, where words have no order."""
    mismatches: tuple[Mismatch, ...] = ()

    @property
    def probability(self) -> float:
        """The score on a scale where a yes begins at one half; below that where something forbids it."""
        missing = bool(self.missing_numbers) + bool(self.missing_names)
        penalty = _MISSING * missing + _TURNED * self.negation_flip
        score = min(1.0, max(0.0, self.signals.mean - penalty))
        found = self.order_free if self.in_row else self._on_scale(score)
        # Not at one value: of two claims that are both forbidden, the nearer ranks higher.
        found = found if self.not_contradicted else min(found, _FORBIDDEN * score)
        # To four places: what a linear algebra library adds up in another order is the same claim still.
        return round(found, 4)

    @property
    def order_free(self) -> float:
        """As `probability`, for words that stand in another order by nature: a question's, a table's."""
        found = self.signals
        return self._on_scale((found.window + found.everywhere + found.soft) / 3)

    def _on_scale(self, score: float) -> float:
        """A score as a probability: straight from 0 to one half where it is enough, and on to 1."""
        enough = _ENOUGH_WITH_NUMBERS if self.has_numbers else ENOUGH
        if score < enough:
            return score / enough / 2
        return 0.5 + (score - enough) / (1 - enough) / 2

    @property
    def not_contradicted(self) -> bool:
        """Whether nothing that was found forbids a yes.

        However much of the rest is there, a claim is not supported while one of its numbers or names is
        nowhere in the texts, or while the window says the opposite: a sentence in which one year was
        invented reads just like its source.
        """
        # Half a conflict is a conflict: the other half is said by the same words.
        return not (self.missing_numbers or self.missing_names or self.mismatches) and self.conflict < 0.5

    @property
    def conflict(self) -> float:
        """How much the window says the opposite: its likeness to the claim, where something is turned."""
        opposite = any(one.opposite for one in self.mismatches)
        turned = self.negation_flip or self.rival_number or opposite
        return self.signals.soft if turned and self.signals.window >= OVERLAP else 0.0

    @property
    def reason(self) -> str:
        """What was found, in a few words."""
        found = [f"{self.signals.window:.0%} of its words are found together, rare ones counting more"]
        found += [f"number {number!r} is nowhere" for number in self.missing_numbers]
        found += [f"name {name!r} is nowhere" for name in self.missing_names]
        found += ["one of claim and evidence is negated"] if self.negation_flip else []
        return "; ".join([*found, *(one.reason for one in self.mismatches)])

    @property
    def notes(self) -> dict[str, object]:
        names = ("missing_numbers", "missing_names", "negation_flip")
        rounded = {name: round(value, 3) for name, value in asdict(self.signals).items()}
        return {**{name: getattr(self, name) for name in names}, "signals": rounded}
