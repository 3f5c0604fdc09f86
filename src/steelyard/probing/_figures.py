"""What the answers to the probes come to: shares with intervals, calibration, and what moves a verdict."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from steelyard.probing._asking import AskedProbes, ProbeAnswer
from steelyard.scores import Usage
from steelyard.stats import Estimate, pass_rate

_BINS = 10


@dataclass(frozen=True, kw_only=True, slots=True)
class Accuracy:
    """How often a judge is right."""

    right: Estimate
    """Share of probes answered as the set expects, with Wilson's interval; no answer is not right."""
    pairs: Estimate
    """Share of pairs with both twins right: 0 for a judge that always says the same, .25 for a coin."""
    says_yes: float
    """Share of yes among its answers; half of the right answers are yes."""
    unanswered: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Bin:
    """Verdicts whose probability of yes lies in one tenth of the scale."""

    low: float
    high: float
    n: int
    probability: float
    """Their mean probability of yes."""
    yes: float
    """The share of them whose right answer is yes."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Reliability:
    """How far a judge's probabilities are shares, on this set, where half of the right answers are yes."""

    error: float
    """Expected calibration error: mean distance of probability and share over the tenths, weighted by how
    many verdicts each holds (Naeini, Cooper & Hauskrecht, AAAI 2015)."""
    n: int
    """Verdicts that came with a probability."""
    bins: tuple[Bin, ...]
    """The tenths that hold verdicts."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Effect:
    """What becomes of verdicts when something changes that should not matter."""

    moved: Estimate | None
    """Share of verdicts that differ, among probes answered both times; None where there are none."""
    before: Estimate
    """Share right before, over the same probes."""
    after: Estimate
    to_yes: int
    """Verdicts that went from no to yes."""
    to_no: int
    """Verdicts that went from yes to no."""


@dataclass(frozen=True, kw_only=True, slots=True)
class JudgeCheck:
    """Everything that a check found out about one judge."""

    judge: str
    """Its name with model."""
    prompt_version: str
    """Version of its wording."""
    probes: str
    """SHA-256 of the probe set."""
    published: bool
    """Whether that is the set that ships with this version."""
    n: int
    """Probes in the set."""
    overall: Accuracy
    """Over all of them."""
    kinds: Mapping[str, Accuracy]
    """By kind of probe."""
    languages: Mapping[str, Accuracy]
    """By language, over the claims of the kind `language` alone."""
    calibration: Reliability | None
    """None for a judge that gives no probabilities."""
    again: Effect | None
    """The same questions as independent samples; this and what follows are None for a judge that answered
    nothing at all: it is not asked again."""
    swapped: Effect | None
    """The passages in reverse order."""
    longer: Effect | None
    """The same claims in many more words."""
    fused_record: Effect | None
    """Fuse mode `record` in place of `view`: with questions of other metrics in the same request."""
    fused_off: Effect | None
    """Fuse mode `off` in place of `view`: each claim in a request of its own."""
    injected: Effect | None
    """Text in the passages or the claim that tells the judge what to answer, in place of none."""
    causes: Mapping[str, int]
    """Why questions had no answer, over all passes."""
    passes: Mapping[str, Usage]
    """What each pass cost."""
    seconds: float
    """Wall time of the check."""

    @property
    def usage(self) -> Usage:
        """What the check cost."""
        return sum(self.passes.values(), Usage())


def accuracy(given: Sequence[ProbeAnswer]) -> Accuracy:
    """How often a judge is right on some probes, of which there is at least one."""
    twins: dict[str, bool] = {}
    for answer in given:
        twins[answer.probe.pair] = twins.get(answer.probe.pair, True) and answer.right
    answered = [answer.value for answer in given if answer.value is not None]
    return Accuracy(
        right=_share(answer.right for answer in given),
        pairs=_share(twins.values()),
        says_yes=sum(answered) / len(answered) if answered else 0.0,
        unanswered=len(given) - len(answered),
    )


def by(given: Iterable[ProbeAnswer], key: Callable[[ProbeAnswer], str]) -> dict[str, Accuracy]:
    """Accuracy for each value of a key, in the order in which they first come."""
    groups: dict[str, list[ProbeAnswer]] = {}
    for answer in given:
        groups.setdefault(key(answer), []).append(answer)
    return {name: accuracy(members) for name, members in groups.items()}


def calibration(given: Iterable[ProbeAnswer]) -> Reliability | None:
    """How well probabilities fit; None where there are none."""
    pairs = [
        (answer.probability, answer.probe.expected) for answer in given if answer.probability is not None
    ]
    if not pairs:
        return None
    filled: dict[int, list[tuple[float, bool]]] = {}
    for probability, expected in pairs:
        # A probability of exactly 1 belongs to the last tenth.
        place = min(int(probability * _BINS), _BINS - 1)
        filled.setdefault(place, []).append((probability, expected))
    bins = tuple(_bin(place, members) for place, members in sorted(filled.items()))
    error = sum(part.n * abs(part.probability - part.yes) for part in bins) / len(pairs)
    return Reliability(error=error, n=len(pairs), bins=bins)


def _bin(place: int, members: Sequence[tuple[float, bool]]) -> Bin:
    return Bin(
        low=place / _BINS,
        high=(place + 1) / _BINS,
        n=len(members),
        probability=sum(probability for probability, _ in members) / len(members),
        yes=sum(expected for _, expected in members) / len(members),
    )


def change(before: AskedProbes, after: AskedProbes) -> Effect | None:
    """What moved between two passes, over the probes that both have; None where they share none."""
    first = {answer.probe.id: answer for answer in before.given}
    twice = [(first[answer.probe.id], answer) for answer in after.given if answer.probe.id in first]
    if not twice:
        return None
    answered = [(one.value, other.value) for one, other in twice if None not in (one.value, other.value)]
    return Effect(
        moved=pass_rate(one is not other for one, other in answered),
        before=_share(one.right for one, _ in twice),
        after=_share(other.right for _, other in twice),
        to_yes=sum(other is True and one is False for one, other in answered),
        to_no=sum(other is False and one is True for one, other in answered),
    )


def _share(values: Iterable[bool]) -> Estimate:
    estimate = pass_rate(values)
    assert estimate is not None
    return estimate
