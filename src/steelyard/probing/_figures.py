"""What the answers to the probes come to: shares with intervals, calibration, and what moves a verdict.

And what to take a judge for by that, and by nothing else: its name does not count.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from steelyard.probing._probes import AskedProbes, ProbeAnswer
from steelyard.scores import Usage
from steelyard.stats import Estimate, pass_rate

_CHANCE = 0.5  # what a coin gets right
_SINGLE = 0.9
_MOVES = 0.05
_CALIBRATED = 0.08


def advice(check: JudgeCheck, baselines: Sequence[JudgeCheck]) -> tuple[str, ...]:
    """Sentences that say what a judge is good for.

    A claim is made only where the interval carries it: a judge `tells` a kind where the lower end lies above
    one half, and beats the baselines where its interval lies above theirs. It may decide on single answers
    from a lower end of .9; a verdict is called unsteady from 5 % moved, taken at the lower end of the
    interval; probabilities are called usable from an expected calibration error under .08.
    """
    if check.again is None:
        return ("It answered nothing; see the causes above. There is nothing to say about its judgement.",)
    return (_use(check, baselines), *_kinds(check), _probabilities(check), *_unsteady(check), _mode(check))


def _use(check: JudgeCheck, baselines: Sequence[JudgeCheck]) -> str:
    right = check.overall.right
    best = max(baselines, key=lambda baseline: baseline.overall.right.value, default=None)
    if right.low <= _CHANCE:
        return "Do not use it: it is not clearly better than a coin."
    if best is not None and right.low <= (bar := best.overall.right.value):
        return f"Do not rely on it: it is not clearly better than {best.judge} ({bar:.2f})."
    if right.low >= _SINGLE:
        return (
            "Take it for single answers, for trends and for alarms: nine verdicts in ten or more are right."
        )
    return (
        "Take it for trends and comparisons over many answers, not for single ones: "
        f"about one verdict in {1 / (1 - right.value):.0f} is wrong."
    )


def _kinds(check: JudgeCheck) -> Iterator[str]:
    told = [kind for kind, figures in check.kinds.items() if figures.right.low > _CHANCE]
    rest = [kind for kind in check.kinds if kind not in told]
    if told:
        yield f"It tells true from false in: {_listed(told)}."
    if rest:
        yield f"Take another judge for what it does not tell clearly better than a coin: {_listed(rest)}."


def _probabilities(check: JudgeCheck) -> str:
    if check.calibration is None:
        return "It gives no probabilities: verdicts can be counted, not ranked."
    error = check.calibration.error
    if error < _CALIBRATED:
        return f"Its probabilities can be read as such on material like this (calibration error {error:.2f})."
    return f"Its probabilities are not shares (calibration error {error:.2f}): calibrate before use."


_MOVED = {
    "again": "Its verdicts differ from one time to the next: ask twice, or average over many turns.",
    "swapped": "The order of the passages moves its verdicts: compare only runs with the same order.",
    "longer": "The length of a claim moves its verdicts: do not compare terse with wordy applications.",
    "injected": "Text that speaks to the judge moves its verdicts: not for answers or documents that "
    "somebody may have written for it.",
}


def _unsteady(check: JudgeCheck) -> Iterator[str]:
    for name, message in _MOVED.items():
        found: Effect | None = getattr(check, name)
        if found is not None and found.moved is not None and found.moved.low > _MOVES:
            yield message


def _mode(check: JudgeCheck) -> str:
    """The first of `view`, `record` and `off` that is not clearly less often right than the best of them."""
    changes = {"record": check.fused_record, "off": check.fused_off}
    modes = {"view": check.overall.right, **{name: one.after for name, one in changes.items() if one}}
    best = max(right.value for right in modes.values())
    name, right = next((name, right) for name, right in modes.items() if right.high >= best)
    return f"Ask it with fuse {name!r}: right in {right.value:.2f}, and no other mode is clearly better."


def _listed(kinds: Sequence[str]) -> str:
    return ", ".join(kind.replace("_", " ") for kind in kinds)


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
    bins = []
    for place, members in sorted(filled.items()):
        probability, yes = (sum(part) / len(members) for part in zip(*members, strict=True))
        low, high = place / _BINS, (place + 1) / _BINS
        bins.append(Bin(low=low, high=high, n=len(members), probability=probability, yes=yes))
    error = sum(part.n * abs(part.probability - part.yes) for part in bins) / len(pairs)
    return Reliability(error=error, n=len(pairs), bins=tuple(bins))


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
