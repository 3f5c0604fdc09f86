"""A judge compared with people: how far they agree, what the mean really is, what more labels would bring."""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from steelyard.calibration._collect import Judged, Key, Labelled, Material
from steelyard.calibration._maps import Fit, PlattMap, Refusal, fit
from steelyard.stats import Estimate, auroc, cohen_kappa, corrected_mean, weighted_mean

_FLOOR = 0.1
"""Weight of a turn of which nothing is unsure, going by people: such turns must be looked at too."""
_BLIND_FLOOR = 0.25
"""The same where only the judge says how sure it is."""
_PARTS = 10
_LEAST_TO_CHOOSE = 10
_LEAST_OF_EACH = 2

Chance = Callable[[Judged], float | None]
"""The probability that people call a turn good; None where it is not known."""


def drawn_to_label(
    judged: Iterable[Judged],
    labelled: Iterable[str] = (),
    *,
    chance: Chance = lambda _: None,
    limit: int = 20,
) -> list[tuple[Judged, float]]:
    """The turns whose labels would narrow the corrected mean most, the most useful first.

    The number of labels is to grow with how unsure a turn is, sqrt(p (1 - p)) (Neyman's allocation, 1934;
    Zrnic & Candes, Active statistical inference, ICML 2024): turns in order of their scores are cut into ten
    parts of equal such weight, and the part with the fewest labels comes next. Within a part turns are drawn
    by a hash of the record's id, so that the order is the same every time, several people can work on one
    list, and a turn that was labelled simply drops out of it.

    Each comes with the probability with which it came up this time.
    """
    turns = list(judged)
    if not turns:
        return []
    known = set(labelled)
    draws = np.array([_draw_of(one.record_id) for one in turns])
    weights = np.array([_weight(one, chance(one)) for one in turns])
    parts = _parts(np.array([one.value for one in turns]), draws, weights)
    waiting: list[list[int]] = [[] for _ in range(_PARTS)]
    counts = [0] * _PARTS
    # The smallest quotient first is a draw in proportion to the weights (sequential Poisson sampling, Ohlsson
    # 1998).
    for place in np.argsort(draws / weights, kind="stable").tolist():
        if turns[place].record_id in known:
            counts[parts[place]] += 1
        else:
            waiting[parts[place]].append(place)
    chosen = _evenly(waiting, counts, limit)
    there = [float(weights[part].sum()) for part in waiting]
    taken = Counter(parts[place] for place in chosen)
    return [
        (turns[place], min(taken[part] * float(weights[place]) / there[part], 1.0))
        for place in chosen
        for part in (parts[place],)
    ]


def chances_by(labelled: Sequence[Labelled]) -> Chance:
    """How likely each turn is good, going by the labels so far: Platt's curve over the score.

    Ten labels, two of each kind, are enough to choose further ones by, though far too few to calibrate with.
    With fewer it knows nothing.
    """
    good = np.array([pair.good for pair in labelled], bool)
    if len(good) < _LEAST_TO_CHOOSE or min(good.sum(), (~good).sum()) < _LEAST_OF_EACH:
        return lambda _: None
    curve = PlattMap.fit(np.array([pair.judged.value for pair in labelled]), good)
    return lambda one: curve(one.value)


def _draw_of(record_id: str) -> float:
    """A number in (0, 1], always the same for a record."""
    return (int.from_bytes(hashlib.sha256(record_id.encode()).digest()[:8]) + 1) / 2**64


def _weight(judged: Judged, chance: float | None) -> float:
    floor, value = (_BLIND_FLOOR, judged.value) if chance is None else (_FLOOR, chance)
    return (floor + math.sqrt(max(value * (1 - value), 0.0))) / judged.inclusion


def _parts(
    values: npt.NDArray[np.float64], draws: npt.NDArray[np.float64], weights: npt.NDArray[np.float64]
) -> list[int]:
    """In which of ten parts of equal weight each turn is, by order of scores; equal ones by chance."""
    order = np.lexsort((draws, values))
    middles = np.cumsum(weights[order]) - weights[order] / 2
    found = np.empty(len(values), int)
    found[order] = np.minimum(middles / weights.sum() * _PARTS, _PARTS - 1).astype(int)
    return [int(part) for part in found]


def _evenly(waiting: Sequence[list[int]], counts: list[int], limit: int) -> list[int]:
    """From the part with the fewest labels each time, as far from the last one as possible."""
    turn = {part: place for place, part in enumerate((0, 5, 2, 7, 4, 9, 1, 6, 3, 8))}
    at, chosen = [0] * len(waiting), list[int]()
    while len(chosen) < limit:
        open_ = [part for part in turn if at[part] < len(waiting[part])]
        if not open_:
            break
        part = min(open_, key=lambda one: (counts[one], turn[one]))
        chosen.append(waiting[part][at[part]])
        at[part], counts[part] = at[part] + 1, counts[part] + 1
    return chosen


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
    drawn = [one for one in material.labelled if one.drawn]
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
    bad: labels of turns that were not drawn are left out. Of a map only the signal counts, which tells more
    than the score: its curve was drawn through the same labels. None with fewer than ten labels of drawn
    turns, or if none is among the highest, or the lowest, scores.
    """
    labelled = [one for one in labelled if one.drawn]
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
    signals = [None if made is None else one.signal(made.signal) for one in judged]
    numbers = [one.value if found is None else found for one, found in zip(judged, signals, strict=True)]
    return np.array(numbers), np.array([one.inclusion for one in judged]), [one.unit for one in judged]


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
    """By how many labels like those there are the interval would be half as wide.

    The square of its margin is a part that labels do not change and one that is divided by their number; what
    each is, a second estimate with the same labels twice tells.
    """
    n = len(labelled)
    # Of other sessions, or they would tell nothing more.
    again = [
        one._replace(judged=replace(one.judged, unit=one.judged.unit and f"again:{one.judged.unit}"))
        for one in labelled
    ]
    twice = corrected(judged, [*labelled, *again], made)
    if twice is None:
        return None
    by_labels = 2 * (margin**2 - twice.margin**2)
    left = by_labels - 0.75 * margin**2
    needed = math.ceil(by_labels * n / left) if left > 0 else 0
    return needed - n if n < needed <= _MOST * n else None


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
