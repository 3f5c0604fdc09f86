"""What a change goes back to: a version that came into use then, or another mix of turns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from steelyard.stats._difference import Difference, sample_difference
from steelyard.stats._sample import Sample

_Array = npt.NDArray[np.float64]
_Mask = npt.NDArray[np.bool_]
_PLACE = 5.94
"""What the squared statistic of a version may lack, for it to lie in the 90 % confidence set of a change
(Hansen, Econometrica 68, 2000, table 1). With the 95 % set, fewer deploys are named alone (816 in place of
830 of 946 simulated ones), and wrong ones no less often (`tests/months`)."""
_LEAST = 5
"""Turns that a version needs, and those before it."""
_FOLLOWS = 0.8
"""With which probability a turn on the later version must come after one on the earlier, for the later to
have taken its place: fields whose values stand beside each other are not versions."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Deploy:
    """A version that came into use, and that a change may go back to."""

    name: str
    """Which component: `version`, `model`, `prompt` ..."""
    value: str
    """Its version since then."""
    before: str
    """The version it had before."""
    since: float
    """Unix time of the first turn with it."""


def find_deploys(
    sample: Sample,
    times: _Array,
    versions: Mapping[str, Sequence[str | None]],
    *,
    grown: bool,
) -> list[Deploy]:
    """The versions whose coming into use explains a change as well as the best moment does.

    Turns are split by what version they ran on, not by time, so that a version that came in slowly, or ran
    beside the old one, is told from others. The splits are held against that by the best moment of all: those
    belong to the 90 % confidence set of the change whose likelihood ratio lacks at most 5.94 (Hansen,
    Econometrica 68, 2000, with sessions as the units that vary). Of several, nothing tells which it was; if
    there is none, no version changed then.

    Args:
        sample: The turns in which something changed, in order of time.
        times: Unix time of each.
        versions: For each component its version on each turn; fields of which no value takes the place of
            another are left out.
        grown: Whether the mean grew.
    """
    if len(sample) < 2 * _LEAST:
        return []
    found = [
        max((split for split in splits if split.grown is grown), key=lambda one: one.gain, default=None)
        for name, column in versions.items()
        if (splits := [_split(sample, later, one) for one, later in _releases(name, column, times)])
    ]
    splits = [one for one in found if one is not None]
    splits += [one for at in _moments(times) if (one := _split(sample, times >= at)).grown is grown]
    if not splits:
        return []
    best = max(splits, key=lambda one: one.gain)
    unit = best.unit(sample)
    return [one.deploy for one in splits if one.deploy is not None and best.gain - one.gain <= _PLACE * unit]


def _moments(times: _Array) -> _Array:
    """Moments to split at: two hundred at most."""
    inner = np.unique(times)[_LEAST : -_LEAST + 1]
    return inner[:: max(len(inner) // 200, 1)]


def _releases(name: str, column: Sequence[str | None], times: _Array) -> list[tuple[Deploy, _Mask]]:
    """Each version but the first, and which turns ran on it or a later one."""
    known = np.array([value or "" for value in column], dtype=object)
    first = {value: float(times[known == value][0]) for value in set(known.tolist()) if value}
    ordered = sorted(first, key=lambda value: (float(np.median(times[known == value])), value))
    found = []
    for place, value in enumerate(ordered[1:], 1):
        later = np.isin(known, np.array(ordered[place:], dtype=object))
        if later.sum() >= _LEAST and (~later).sum() >= _LEAST and _follows(later):
            deploy = Deploy(name=name, value=value, before=ordered[place - 1], since=first[value])
            found.append((deploy, later))
    return found


def _follows(later: _Mask) -> bool:
    """Whether later ones come after the others; turns are in order of time (Mann & Whitney's U)."""
    count = int(later.sum())
    ranks = float(np.flatnonzero(later).sum()) - count * (count - 1) / 2
    return ranks >= _FOLLOWS * count * (len(later) - count)


@dataclass(frozen=True, slots=True)
class _Split:
    later: _Mask
    deploy: Deploy | None
    gain: float
    """The squares that it explains."""
    grown: bool

    def unit(self, sample: Sample) -> float:
        """The variance of a turn around both means, as many times as sessions make of it."""
        one, other = sample.part(~self.later), sample.part(self.later)
        away = sample.values - np.where(self.later, other.mean, one.mean)
        share = np.where(self.later, 1 / other.weight, -1 / one.weight) * sample.weights
        totals = sample.totals(share * away)
        spread = float(sample.weights @ (away * away)) / sample.weight
        # What a difference varies by, beside what it would if a weighted turn varied by 1.
        return max(float(totals @ totals), spread * float(share @ share)) / _size(one, other)


def _split(sample: Sample, later: _Mask, deploy: Deploy | None = None) -> _Split:
    one, other = sample.part(~later), sample.part(later)
    moved = other.mean - one.mean
    return _Split(later, deploy, moved * moved / _size(one, other), moved > 0)


def _size(one: Sample, other: Sample) -> float:
    return 1 / max(one.weight, 1e-9) + 1 / max(other.weight, 1e-9)


def within_kinds(
    before: Sample, after: Sample, kinds: tuple[Sequence[str], Sequence[str]]
) -> Difference | None:
    """The difference if the later turns had the earlier ones' mix of kinds (direct standardisation).

    Each later turn is weighted by how much more frequent its kind was before; kinds that one of the two lacks
    are left out of both (Kitagawa, JASA 50, 1955: what is left of the difference is the mix's). None if they
    have no kind in common.

    Args:
        before: The earlier turns.
        after: The later ones.
        kinds: The kind of each earlier turn and of each later one.
    """
    earlier, later = (np.array(list(one), dtype=object) for one in kinds)
    both = np.array(sorted(set(earlier.tolist()) & set(later.tolist())), dtype=object)
    in_first, in_second = np.isin(earlier, both), np.isin(later, both)
    one, other = before.part(in_first), after.part(in_second)
    if not len(one):
        return None
    factor = np.ones(len(other))
    for kind in both:
        here = later[in_second] == kind
        share = float(one.weights[earlier[in_first] == kind].sum()) / one.weight
        factor[here] = share * other.weight / float(other.weights[here].sum())
    return sample_difference(one, replace(other, weights=other.weights * factor))
