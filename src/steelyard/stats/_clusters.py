"""Questions that belong together: clusters of their vectors, named by the words they share."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

_Array = npt.NDArray[np.float32]
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

    Args:
        vectors: One row for each text.
        largest: At most so many clusters.
    """
    rows = np.asarray(vectors, np.float32)
    if len(rows) < 4:
        return np.zeros(len(rows), np.intp)
    # Rounding makes rows of the same text equal whatever batch they were embedded in.
    distinct, inverse = np.unique(np.round(rows, 5), axis=0, return_inverse=True)
    points = _unit(distinct - distinct.mean(axis=0))
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


def _unit(rows: _Array) -> _Array:
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return (rows / np.where(lengths > 1e-12, lengths, 1.0)).astype(np.float32)


def _seeds(points: _Array, counts: _Array, number: int) -> list[int]:
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


def _k_means(points: _Array, counts: _Array, centres: _Array) -> tuple[_Labels, _Array]:
    labels = np.argmax(points @ centres.T, axis=1)
    for _ in range(_ROUNDS):
        members = (labels[:, None] == np.arange(len(centres))) * counts[:, None]
        centres = _unit(members.T @ points)
        following = np.argmax(points @ centres.T, axis=1)
        if np.array_equal(following, labels):
            break
        labels = following
    return labels, centres


def _silhouette(points: _Array, counts: _Array, labels: _Labels, centres: _Array) -> float:
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

    Args:
        texts: All texts.
        labels: The cluster of each.
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
