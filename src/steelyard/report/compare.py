"""Two groups of turns side by side: how much each metric differs, how surely, and which turns moved most."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from steelyard.results import ResultsReader
from steelyard.results.looks import GroupScore
from steelyard.results.queries import Scope
from steelyard.scores import Direction
from steelyard.stats import Difference, unpaired_difference

_LIMIT = 6_000
"""Scores of each metric and side: one look takes a tenth of a second."""
_LEAST_PAIRS = 10
_MOVED = 20


@dataclass(frozen=True, kw_only=True, slots=True)
class Side:
    """One group of turns."""

    by: str = ""
    """What it is cut by: `judge`, `tag` or the name of a metadata field; empty for a time alone."""
    value: str = ""
    scope: Scope = field(default_factory=Scope)
    """Since and until when; nothing else of it counts."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Moved:
    """One turn, or one question, that both sides have."""

    metric: str
    question: str = field(repr=False)
    """The question; empty where content was not stored."""
    first: float
    second: float
    first_id: str
    """A record of the first side, the worst one."""
    second_id: str
    """A record of the second, the worst one."""
    worse: bool
    """Whether it is worse on the second side."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Compared:
    """One metric on both sides."""

    metric: str
    direction: Direction
    counts: tuple[int, int]
    """Scores on each side, the latest 6,000 at most."""
    difference: Difference
    """The second side - the first; clear for a difference that chance makes in one of twenty comparisons, all
    metrics together."""
    same_turns: bool
    """Whether both sides are of the same turns, as where two judges scored them."""

    @property
    def worse(self) -> bool:
        return (self.difference.value < 0) == (self.direction == "higher")


def compare(
    reader: ResultsReader, first: Side, second: Side, *, metric: str = ""
) -> tuple[tuple[Compared, ...], tuple[Moved, ...]]:
    """Each metric of two groups of turns, the clearest first, and the 20 turns or questions that moved most.

    The interval is that of `unpaired_difference`, by session: sessions, and turns that are on both sides,
    make the means alike, which is allowed for. Where two judges scored ten turns or more both, only these are
    compared.
    """
    found: list[Compared] = []
    moved: list[Moved] = []
    names = [one for one in reader.scored() if metric in ("", one)]
    for name in names:
        one, other = (
            reader.group_scores(name, side.scope, by=side.by, value=side.value, limit=_LIMIT)
            for side in (first, second)
        )
        common = {score.record_id for score in one} & {score.record_id for score in other}
        same_turns = first.by == "judge" and len(common) >= _LEAST_PAIRS
        if same_turns:
            one, other = ([score for score in side if score.record_id in common] for side in (one, other))
        difference = _difference(one, other, level=1 - 0.05 / len(names))
        if difference is not None:
            found.append(
                Compared(
                    metric=name,
                    direction=other[0].direction,
                    counts=(len(one), len(other)),
                    difference=difference,
                    same_turns=same_turns,
                )
            )
            moved += _moved(name, one, other, by_turn=same_turns)
    found.sort(key=lambda one: (not one.difference.clear, not one.worse, -abs(one.difference.value)))
    moved.sort(key=lambda one: (not one.worse, -abs(one.second - one.first)))
    return tuple(found), tuple(moved[:_MOVED])


def _difference(one: Sequence[GroupScore], other: Sequence[GroupScore], *, level: float) -> Difference | None:
    # A turn without a session that is on both sides is a unit of its own.
    units = [[score.unit or f"\0{score.record_id}" for score in side] for side in (one, other)]
    return unpaired_difference(
        [score.value for score in one],
        [score.value for score in other],
        first_inclusion=[score.inclusion for score in one],
        second_inclusion=[score.inclusion for score in other],
        first_sessions=units[0],
        second_sessions=units[1],
        level=level,
    )


def _moved(
    metric: str, one: Sequence[GroupScore], other: Sequence[GroupScore], *, by_turn: bool
) -> list[Moved]:
    """The turns that both sides have, or else the questions that both were asked."""
    first, second = (_by_thing(scores, by_turn=by_turn) for scores in (one, other))
    sign = 1 if other[0].direction == "higher" else -1
    found = []
    for thing in first.keys() & second.keys():
        before, after = first[thing], second[thing]
        means = [float(np.mean([score.value for score in side])) for side in (before, after)]
        if means[0] != means[1]:
            worst = [min(side, key=lambda score: sign * score.value) for side in (before, after)]
            found.append(
                Moved(
                    metric=metric,
                    question=after[0].question,
                    first=means[0],
                    second=means[1],
                    first_id=worst[0].record_id,
                    second_id=worst[1].record_id,
                    worse=sign * (means[1] - means[0]) < 0,
                )
            )
    return sorted(found, key=lambda one: (-abs(one.second - one.first), one.second_id))[:_MOVED]


def _by_thing(scores: Sequence[GroupScore], *, by_turn: bool) -> Mapping[str, list[GroupScore]]:
    things: defaultdict[str, list[GroupScore]] = defaultdict(list)
    for score in scores:
        if thing := score.record_id if by_turn else " ".join(score.question.casefold().split()):
            things[thing].append(score)
    return things
