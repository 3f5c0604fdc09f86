"""Parts of the traffic: slices that are unlike the rest, and clusters of questions that belong together."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from steelyard.stats._difference import Difference, sample_difference
from steelyard.stats._estimate import t_two_sided_p, two_sided_p
from steelyard.stats._sample import Sample, sample_of

_Array = npt.NDArray[np.float64]
_Mask = npt.NDArray[np.bool_]
_LEAST = 10


@dataclass(frozen=True, kw_only=True, slots=True)
class Slice:
    """A part of the traffic that stands out."""

    name: str
    """Which attribute: `tag`, `model`, `language`, ..."""
    value: str
    """Its value in this slice."""
    n: int
    share: float
    """Weight of the slice among all turns, 0..1."""
    difference: Difference
    """Slice - rest."""
    p: float
    """Probability of so large a difference if the slice were like the rest."""
    q: float
    """The same, corrected for the number of slices looked at."""


def find_slices(
    values: Sequence[float] | Sample,
    attributes: Mapping[str, Sequence[str | None]],
    *,
    inclusion: Sequence[float] | None = None,
    sessions: Sequence[Hashable] | None = None,
    than_rest: Literal["lower", "higher"] | None = None,
    level: float = 0.05,
) -> list[Slice]:
    """The slices that differ from the rest, most certain first; false discoveries kept to `level`.

    Slices, and rests, of fewer than ten turns or sessions are left out.

    Args:
        values: In 0..1; or a sample, which has its own probabilities and sessions.
        attributes: For each attribute its value on each turn, None if a turn has none.
        inclusion: The probability with which each turn was picked; 1 if None.
        sessions: The session of each turn (see `weighted_mean`); independent turns if None. An attribute that
            is the same in all turns of a session varies from session to session only.
        than_rest: Which slices are reported: lower ones, higher ones, or both.
        level: The false discovery rate that is accepted (Benjamini & Hochberg).
    """
    sample = sample_of(values, inclusion, sessions)
    found = [
        (name, value, inside, p)
        for name, value, inside in each_slice(attributes)
        if (p := _p_value(sample, inside)) is not None
    ]
    adjusted = _adjusted([p for *_, p in found])
    slices: list[Slice] = []
    others = np.ones(len(sample), bool)
    for p, name, value, inside, q in sorted(
        ((p, name, value, inside, q) for (name, value, inside, p), q in zip(found, adjusted, strict=True)),
        key=lambda one: one[:3],
    ):
        if than_rest and (than_rest == "lower") != (sample.part(inside).mean < sample.part(~inside).mean):
            continue
        if q <= level and not _explained(sample, inside, others, level / len(found)):
            slices.append(_slice(name, value, p, q, sample, inside))
            others &= ~inside
    return slices


def _adjusted(p_values: Sequence[float]) -> list[float]:
    """Adjusted p-values: taking those below q as found gives at most q false ones among them on average.

    Benjamini & Hochberg (JRSS B 57, 1995), procedure (1).

    >>> [round(q, 3) for q in _adjusted([0.01, 0.04, 0.03])]
    [0.03, 0.04, 0.04]
    """
    order = np.argsort(p_values)[::-1]
    ranks = np.arange(len(order), 0, -1)
    adjusted = np.ones(len(order))
    adjusted[order] = np.minimum.accumulate(np.minimum(np.array(p_values)[order] * len(order) / ranks, 1.0))
    return [float(q) for q in adjusted]


def each_slice(attributes: Mapping[str, Sequence[str | None]]) -> Iterator[tuple[str, str, _Mask]]:
    """Each value of each attribute, and which turns have it."""
    for name, column in attributes.items():
        known = np.array([value or "" for value in column], dtype=object)
        for value in sorted({value for value in column if value}):
            yield name, value, known == value


def _explained(sample: Sample, inside: _Mask, others: _Mask, level: float) -> bool:
    """Whether a slice is like the rest once more certain ones are left out of both.

    If one tenant is worse, each of the others stands out from a rest that holds that tenant.
    """
    if others.all():
        return False
    p = _p_value(sample.part(others), inside[others])
    # Of one that has no turns of its own left, all has been said.
    return p is None or p > level


def _p_value(sample: Sample, inside: _Mask) -> float | None:
    """The probability of so large a difference if the slice were like the rest; None of too few turns.

    The turns' values less the mean of all, weighted so that they add up to the difference, vary by session:
    a score test, as if the slice were like the rest, since its own variance would make rare failures that
    happen to be absent look certain.
    """
    fewest = min(_units(sample, inside), _units(sample, ~inside))
    if fewest < _LEAST:
        return None
    away, shares = sample.values - sample.mean, np.zeros(len(sample))
    for cell, side in ((inside, 1.0), (~inside, -1.0)):
        shares[cell] = side * sample.weights[cell] / float(sample.weights[cell].sum())
    variance = _variance(sample, away, shares)
    if variance <= 0:
        return None
    # The smaller side tells how certain the variance is; independent turns share theirs.
    distance = abs(float(shares @ away)) / math.sqrt(variance)
    return two_sided_p(distance) if sample.units is None else t_two_sided_p(distance, fewest - 1)


def _units(sample: Sample, cell: _Mask) -> int:
    told = cell & (sample.counted > 0)
    return int(told.sum()) if sample.units is None else len(np.unique(sample.units[told]))


def _variance(sample: Sample, away: _Array, shares: _Array) -> float:
    """Of the sum of shares x away, if turns of each session are as alike as they are on average."""
    weights = sample.weights
    spread = float(np.sum((weights * away) ** 2) / np.sum(weights**2))
    alone = float(shares @ shares)
    if sample.units is None:
        return spread * alone
    # What turns of one session have in common, by pairs of them.
    pairs = float(np.sum(sample.totals(weights) ** 2) - np.sum(weights**2))
    common = float(np.sum(sample.totals(weights * away) ** 2) - np.sum((weights * away) ** 2))
    alike = min(max(common / pairs / spread, 0.0), 1.0) if pairs > 0 and spread > 0 else 0.0
    together = float(np.sum(sample.totals(shares) ** 2)) - alone
    return spread * (alone + alike * together)


def _slice(name: str, value: str, p: float, q: float, sample: Sample, inside: _Mask) -> Slice:
    difference = sample_difference(sample.part(~inside), sample.part(inside))
    assert difference is not None
    return Slice(
        name=name,
        value=value,
        n=int(sample.counted[inside].sum()),
        share=float(sample.weights[inside].sum() / sample.weights.sum()),
        difference=difference,
        p=p,
        q=q,
    )


_Rows = npt.NDArray[np.float32]
_Labels = npt.NDArray[np.intp]

_WORD = re.compile(r"[^\W\d_]{3,}")
_ROUNDS = 30
_NAMED_BY = 3  # words


def cluster(vectors: npt.ArrayLike, *, largest: int = 12) -> _Labels:
    """The cluster of each vector, the largest first (0, 1, ...); the order of arrival does not matter.

    Spherical k-means (Dhillon & Modha, Machine Learning 42, 2001) on vectors less their common mean, started
    from vectors far from those chosen before (after Gonzalez 1985), in an order that depends on the vectors
    alone. The number of clusters is the one with the largest mean simplified silhouette (Hruschka, de Castro
    & Campello 2004).
    """
    rows = np.asarray(vectors, np.float32)
    if len(rows) < 4:
        return np.zeros(len(rows), np.intp)
    # Rounding makes rows of the same text equal whatever batch they were embedded in.
    distinct, inverse = np.unique(np.round(rows, 5), axis=0, return_inverse=True)
    points = unit_rows(distinct - distinct.mean(axis=0))
    counts = np.bincount(inverse.reshape(-1)).astype(np.float32)
    seeds = _seeds(points, counts, min(largest, len(points) - 1))
    best, best_quality = np.zeros(len(points), np.intp), 0.0
    for number in range(2, len(seeds) + 1):
        labels, centres = _k_means(points, counts, points[seeds[:number]])
        quality = _silhouette(points, counts, labels, centres)
        # A gain by rounding alone is no reason for one more cluster.
        if quality > best_quality + 1e-9:
            best, best_quality = labels, quality
    return _by_size(best[inverse.reshape(-1)])


def unit_rows(rows: npt.ArrayLike) -> _Rows:
    """Vectors of length 1; zeros stay zeros."""
    rows = np.asarray(rows, np.float32)
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return (rows / np.where(lengths > 1e-12, lengths, 1.0)).astype(np.float32)


def _seeds(points: _Rows, counts: _Rows, number: int) -> list[int]:
    """Far from each other, but in company: an outlier makes a poor seed, so nearness to others counts."""
    # Nearness to 2,000 of them tells as much as to all, which would be quadratic.
    sample = points[:: max(len(points) // 2000, 1)]
    density = (np.maximum(points @ sample.T, 0.0) ** 4).mean(axis=1) * np.sqrt(counts)
    seeds = [int(np.argmax(density))]
    nearest = points @ points[seeds[0]]
    while len(seeds) < number:
        apart = np.clip(1 - nearest, 0.0, None) ** 2 * density
        following = int(np.argmax(apart))
        # All others are where a seed is already.
        if apart[following] <= 1e-12:
            break
        seeds.append(following)
        nearest = np.maximum(nearest, points @ points[following])
    return seeds


def _k_means(points: _Rows, counts: _Rows, centres: _Rows) -> tuple[_Labels, _Rows]:
    labels = np.argmax(points @ centres.T, axis=1)
    for _ in range(_ROUNDS):
        members = (labels[:, None] == np.arange(len(centres))) * counts[:, None]
        centres = unit_rows(members.T @ points)
        following = np.argmax(points @ centres.T, axis=1)
        if np.array_equal(following, labels):
            break
        labels = following
    return labels, centres


def _silhouette(points: _Rows, counts: _Rows, labels: _Labels, centres: _Rows) -> float:
    """The mean over points of (b - a) / max(a, b), by distances to centres."""
    distances = 1 - points @ centres.T
    own = distances[np.arange(len(points)), labels]
    distances[np.arange(len(points)), labels] = np.inf
    other = distances.min(axis=1)
    widths = (other - own) / np.maximum(np.maximum(own, other), 1e-12)
    return float(np.average(widths, weights=counts))


def _by_size(labels: _Labels) -> _Labels:
    names, first, counts = np.unique(labels, return_index=True, return_counts=True)
    order = sorted(range(len(names)), key=lambda i: (-counts[i], names[i]))
    place = {names[index]: position for position, index in enumerate(order)}
    return np.array([place[label] for label in labels], np.intp)


def name_clusters(texts: Sequence[str], labels: Sequence[int]) -> list[str]:
    """A name for each cluster: the three words that are frequent in it and rare elsewhere.

    A word's weight is its share of the cluster's texts times log(1 + how much larger that is than its share
    of all texts) (class-based TF-IDF, Grootendorst 2022, eq. 1).
    """
    sets = [set(_WORD.findall(text.lower())) for text in texts]
    everywhere = Counter(word for found in sets for word in found)
    names = []
    for label in range(max(labels, default=-1) + 1):
        own = [found for found, other in zip(sets, labels, strict=True) if other == label]
        within = Counter(word for found in own for word in found)
        weight = {
            word: count / len(own) * math.log(max(count / len(own) / (everywhere[word] / len(sets)), 1.0))
            for word, count in within.items()
        }
        best = sorted(weight, key=lambda word: (-weight[word], word))[:_NAMED_BY]
        names.append(", ".join(best))
    return names
