"""Who may see what: packing the questions of one round into as few requests as possible.

Two questions may share a request if it shows neither of them anything that is hidden from it, nor any
material that it neither needs nor admits, so that a question has the same view alone and in company; and if
they do not carry two different repeat numbers: independent repeats must not see each other's answers.
Finding the
fewest requests is colouring a small graph (a dozen kinds of view at most, with the metrics of this package).
Branch and bound finds the fewest, and of those the ones with the least material, if it gets to its end; its
first solution is the greedy one. It stops after `_STEPS` steps with the best so far, so that no mixture of
metrics can hold up an event loop; then there may be a request more than necessary.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Literal, get_args

from steelyard.questions._question import Part, Question

Fuse = Literal["view", "record", "off"]
"""How questions share requests: by what they may see, all of a round at once, or not at all."""

_STEPS = 2000
_Parts = frozenset[Part]
_PARTS: _Parts = frozenset(get_args(Part))


@dataclass(frozen=True, slots=True)
class Group:
    """The questions of one request and the parts it is sent with."""

    parts: frozenset[Part]
    questions: tuple[Question, ...]


@dataclass(frozen=True, slots=True)
class _ViewKind:
    """Questions and what they need, show and hide together: at first those that agree in it, then a group."""

    needs: frozenset[Part]
    shown: frozenset[Part]
    hidden: frozenset[Part]
    closed: frozenset[Part]
    """Parts that must not be added."""
    sample: int
    questions: tuple[Question, ...]


def pack(
    questions: Sequence[Question],
    *,
    fuse: Fuse,
    independent: bool,
    weigh: Callable[[frozenset[Part]], int],
    present: frozenset[Part] = _PARTS,
) -> list[Group]:
    """Group questions into requests.

    Args:
        questions: Distinct questions of one round.
        fuse: `view` honours what is hidden and admitted, `record` ignores it, `off` asks one by one.
        independent: Whether the judge answers each question by itself, so that repeats may share a request.
        weigh: Size of some parts of the record, to choose between equally few requests.
        present: The parts that the record has; what is empty neither joins questions nor keeps them apart.
    """
    if fuse == "off":
        return [Group(question.needs, (question,)) for question in questions]
    kinds = _kinds(questions, present, hiding=fuse == "view", repeats=not independent)
    best = _Search(weigh).fewest(kinds) if kinds else []
    return [Group(group.needs, group.questions) for group in best]


def _kinds(
    questions: Sequence[Question], present: frozenset[Part], *, hiding: bool, repeats: bool
) -> list[_ViewKind]:
    gathered: dict[tuple[_Parts, _Parts, _Parts, _Parts, int], list[Question]] = {}
    for question in questions:
        hidden = question.hides if hiding else frozenset[Part]()
        needs = question.needs & present
        own = needs | question.shows | question.admits
        closed = present - own if hiding else frozenset[Part]()
        sample = question.sample if repeats else 0
        key = (needs, needs | question.shows, hidden, closed, sample)
        gathered.setdefault(key, []).append(question)
    return [_ViewKind(*key, tuple(members)) for key, members in gathered.items()]


class _Search:
    """Depth-first search for the partition with the fewest groups, then the least material."""

    def __init__(self, weigh: Callable[[frozenset[Part]], int]) -> None:
        # Groups of the same parts come again in every branch of the search.
        self._weigh = cache(weigh)
        self._best: list[_ViewKind] = []
        self._cost = (1 << 30, 0)
        self._steps = 0

    def fewest(self, kinds: list[_ViewKind]) -> list[_ViewKind]:
        if len(kinds) == 1:
            return kinds
        # The most constrained kinds first: bounds bite early, and the greedy first descent is a good one.
        self._descend(sorted(kinds, key=lambda kind: -len(kind.hidden | kind.shown)), 0, [], 0)
        return self._best

    def _descend(self, kinds: list[_ViewKind], at: int, groups: list[_ViewKind], weight: int) -> None:
        """Place kinds[at:]. Groups and their material only grow, so what costs too much already can go."""
        self._steps += 1
        cost = (len(groups), weight)
        # The first descent always ends: it is the greedy solution that the search falls back on.
        if self._best and (cost >= self._cost or self._steps > _STEPS):
            return
        if at == len(kinds):
            self._cost, self._best = cost, list(groups)
            return
        kind = kinds[at]
        for place, group in enumerate(groups):
            if (joined := _joined(group, kind)) is not None:
                groups[place] = joined
                more = self._weigh(joined.needs) - self._weigh(group.needs)
                self._descend(kinds, at + 1, groups, weight + more)
                groups[place] = group
        groups.append(kind)
        self._descend(kinds, at + 1, groups, weight + self._weigh(kind.needs))
        groups.pop()


def _joined(group: _ViewKind, kind: _ViewKind) -> _ViewKind | None:
    """A group with a kind more, or None where something it would show must stay hidden from somebody."""
    needs, closed = group.needs | kind.needs, group.closed | kind.closed
    shown, hidden = group.shown | kind.shown, group.hidden | kind.hidden
    if shown & (hidden | closed) or (group.sample and kind.sample and group.sample != kind.sample):
        return None
    sample, questions = group.sample or kind.sample, group.questions + kind.questions
    return _ViewKind(needs, shown, hidden, closed, sample, questions)
