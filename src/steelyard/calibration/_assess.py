"""A judge compared with people: how far they agree, what the mean really is, what more labels would bring."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from steelyard.calibration._collect import Judged, Key, Labelled, Material
from steelyard.calibration._maps import Fit, Refusal, fit
from steelyard.stats import Estimate, auroc, cohen_kappa, corrected_mean, weighted_mean

_Array = npt.NDArray[np.float64]
_BY_CHANCE = 0.05
_LEAST = 10  # below, an interval says nothing but that there are few labels
_CHI_SQUARE = (0.0, 2.71, 4.61, 6.25, 7.78, 9.24)
"""By degrees of freedom: what is exceeded by chance in one case of ten."""
_STRATA = 5
_LABELS_A_STRATUM = 5
_MOST = 64
"""Times the labels there are: beyond that, labels alone do not halve the interval."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Agreement:
    """How far judge and people agree on the labelled turns."""

    n: int
    """Labelled turns."""
    good: int
    """Of those, how many people call good."""
    kappa: Estimate | None
    """Cohen's kappa of people and the judge, a score of at least one half read as good; None where all say
    the same."""
    area: Estimate | None
    """AUROC of the score; None where labels are of one kind."""
    people: Estimate | None
    """Cohen's kappa among people; None where no turn has two labels, or all say the same."""
    contradictory: Sequence[str]
    """Records that were left out because as many people say good as bad."""
    of_turns: int
    """How many labels are of whole turns."""
    picked: int
    """How many labelled turns a person picked, or nobody knows how they were chosen."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Assessment:
    """What labels say about one metric by one judge."""

    key: Key
    turns: int
    agreement: Agreement
    fit: Fit | Refusal
    """The map, or why there is none."""
    raw_mean: Estimate | None
    """The mean of the scores, turned so that higher is better; None without turns."""
    corrected_mean: Estimate | None
    """The share of turns that people would call good; None with fewer than ten labels of drawn turns, or if
    all of them are of high or of low scores."""
    to_halve: int | None
    """How many more labels would halve its interval; None where labels alone do not."""


def assess(material: Material) -> Assessment:
    """Hold one metric and judge against people's labels."""
    made = fit(material.labelled)
    chance = made if isinstance(made, Fit) else None
    drawn = _drawn(material.labelled)
    found = corrected(material.judged, drawn, chance)
    values = [one.value for one in material.judged]
    return Assessment(
        key=material.key,
        turns=len(material.judged),
        agreement=_agreement(material),
        fit=made,
        raw_mean=weighted_mean(
            values, [one.inclusion for one in material.judged], sessions=[one.unit for one in material.judged]
        ),
        corrected_mean=found,
        to_halve=None if found is None else _to_halve(material.judged, drawn, chance, found.margin),
    )


def corrected(
    judged: Sequence[Judged], labelled: Sequence[Labelled], made: Fit | None = None
) -> Estimate | None:
    """The share of turns that people would call good, from all judged turns and the labelled ones (PPI++).

    Turns picked with unequal probabilities are weighted. Which turns were labelled may depend on the score,
    as it does where people look at the lowest ones first or go by `drawn_to_label`: labels are weighted by
    the share labelled among turns of like scores, where that differs by more than chance. It must not depend
    on anything else that goes with what the label turned out to be, as it does where people look for what is
    bad: labels of turns that were not drawn are left out.

    Args:
        judged: All judged turns, also the labelled ones.
        labelled: The labelled ones.
        made: A map, whose signal tells more than the score; its curve is not used, since it was drawn through
            the same labels.

    Returns:
        None with fewer than ten labels of drawn turns, or if none is among the highest, or the lowest,
        scores.
    """
    labelled = _drawn(labelled)
    if len(labelled) < _LEAST or len(judged) < 2:
        return None
    every, picked, units = _columns(judged, made)
    pairs, own, units_labelled = _columns([pair.judged for pair in labelled], made)
    # `_to_halve` gives the same labels several times over.
    count = len({pair.judged.record_id for pair in labelled})
    if not (_reaches(every, pairs, count) and _reaches(-every, -pairs, count)):
        return None
    found = [
        corrected_mean(
            every.tolist(),
            pairs.tolist(),
            [float(pair.good) for pair in labelled],
            judged_inclusion=picked.tolist(),
            labelled_inclusion=(own * share).tolist(),
            judged_sessions=units,
            labelled_sessions=units_labelled,
        )
        for share in _label_shares(every, pairs)
    ]
    return min(found, key=lambda one: one.margin)


def _columns(judged: Sequence[Judged], made: Fit | None) -> tuple[_Array, _Array, list[str | None]]:
    """What the judge says of turns, with which probability they were picked, and what they are of."""
    numbers = np.array([_number(one, made) for one in judged])
    return numbers, np.array([one.inclusion for one in judged]), [one.unit for one in judged]


def _drawn(labelled: Sequence[Labelled]) -> list[Labelled]:
    return [one for one in labelled if one.drawn]


def _number(judged: Judged, made: Fit | None) -> float:
    number = judged.signal(made.signal) if made is not None else None
    return judged.value if number is None else number


def _reaches(every: _Array, pairs: _Array, count: int) -> bool:
    """Whether labels are found up to the highest scores, or are missing there by chance alone.

    Of turns that are like none with a label, labels say nothing: the lowest scores labelled first, thirty of
    2,000, cover .78, and a hundred .31.
    """
    beyond = float(np.mean(every > pairs.max()))
    # `drawn_to_label` draws turns of which nothing is unsure with at least a sixth of the others' chance.
    return (1 - beyond / 6) ** count >= _BY_CHANCE


def _label_shares(every: _Array, pairs: _Array) -> list[_Array]:
    """For each labelled turn, the share labelled among judged turns of like numbers.

    And one share for all where the labels look drawn at random: then both are right, and the narrower
    interval may be taken, since weights that only follow chance widen it.
    """
    edges = _edges(pairs)
    own, theirs = np.searchsorted(edges, pairs), np.searchsorted(edges, every)
    counts, there = (np.bincount(parts, minlength=len(edges) + 1) for parts in (own, theirs))
    expected = np.maximum(there, 1) / max(int(there.sum()), 1) * len(pairs)
    unlike = float(np.sum((counts - expected) ** 2 / expected))
    # Labelled turns may be missing among the judged ones; no share is above 1.
    by_part = np.minimum(counts / np.maximum(np.maximum(there, counts), 1), 1.0)[own]
    if not len(edges) or unlike <= _CHI_SQUARE[len(edges)]:
        return [by_part, np.full(len(pairs), len(pairs) / max(len(every), len(pairs)))]
    return [by_part]


def _edges(numbers: _Array) -> _Array:
    """Where to cut numbers into parts that have labels enough; few numbers are a part each."""
    known, counts = np.unique(numbers, return_counts=True)
    few = len(known) <= _STRATA
    least = 2 if few else max(len(numbers) // _STRATA, _LABELS_A_STRATUM)
    kept: list[float] = []
    inside, left = 0, len(numbers)
    for place, count in enumerate(counts[:-1].tolist()):
        inside, left = inside + count, left - count
        if inside >= least and left >= min(least, _LABELS_A_STRATUM):
            kept.append(float(known[place] + known[place + 1]) / 2)
            inside = 0
    return np.array(kept)


def _to_halve(
    judged: Sequence[Judged], labelled: Sequence[Labelled], made: Fit | None, margin: float
) -> int | None:
    """By how many labels like those there are the interval would be half as wide."""

    def halved(count: int) -> bool:
        # The same labels again, so that scores and answers keep their proportions, of other sessions.
        more = [_again(labelled[place % len(labelled)], place // len(labelled)) for place in range(count)]
        found = corrected(judged, more, made)
        return found is not None and found.margin <= margin / 2

    low, high = len(labelled), _MOST * len(labelled)
    if margin <= 0 or not halved(high):
        return None
    # To within a fiftieth: each step estimates the whole interval again.
    while high - low > max(1, low // 50):
        middle = (low + high) // 2
        low, high = (low, middle) if halved(middle) else (middle, high)
    return high - len(labelled)


def _again(pair: Labelled, times: int) -> Labelled:
    unit = pair.judged.unit
    return pair._replace(judged=replace(pair.judged, unit=unit and f"{times}:{unit}"))


def _agreement(material: Material) -> Agreement:
    truth = [pair.good for pair in material.labelled]
    values = [pair.judged.value for pair in material.labelled]
    said = [value >= 0.5 for value in values]
    units = [pair.judged.unit for pair in material.labelled]
    one, other, alike = ([pair[place] for pair in material.answers.pairs] for place in range(3))
    return Agreement(
        n=len(truth),
        good=sum(truth),
        kappa=_kappa(said, truth, units),
        area=auroc(values, truth, sessions=units) if 0 < sum(truth) < len(truth) else None,
        people=_kappa(one, other, alike),
        contradictory=material.answers.contradictory,
        of_turns=material.of_turns,
        picked=sum(not pair.drawn for pair in material.labelled),
    )


def _kappa(one: Sequence[Hashable], other: Sequence[Hashable], units: Sequence[Hashable]) -> Estimate | None:
    return cohen_kappa(one, other, sessions=units) if len({*one, *other}) > 1 else None
