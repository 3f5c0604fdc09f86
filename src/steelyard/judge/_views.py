"""Who may see what: packing the questions of one round into as few requests as possible.

Two questions may share a request if nothing that the request shows is hidden from either of them, and if they
do not carry two different repeat numbers: independent repeats must not see each other's answers. Finding the
fewest requests is colouring a small graph (a dozen kinds of view), which branch and bound solves exactly,
with the least material as the second criterion. The first solution it finds is the greedy one; after `_STEPS`
steps the best so far is taken, so that no mixture of metrics can hold up an event loop.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Literal

from steelyard.judge._questions import Part, Question

__all__ = ["Fuse", "Group", "pack"]

Fuse = Literal["view", "record", "off"]
"""How questions share requests: by what they may see, all of a round at once, or not at all."""

_STEPS = 5000


@dataclass(frozen=True, slots=True)
class Group:
    """The questions of one request and the parts it is sent with."""

    parts: frozenset[Part]
    questions: tuple[Question, ...]


@dataclass(frozen=True, slots=True)
class _Kind:
    """All questions of a round that need, show and hide the same, under the same repeat number."""

    needs: frozenset[Part]
    shown: frozenset[Part]
    hidden: frozenset[Part]
    sample: int
    questions: tuple[Question, ...]


def pack(
    questions: Sequence[Question],
    *,
    fuse: Fuse,
    independent: bool,
    weigh: Callable[[frozenset[Part]], int],
) -> list[Group]:
    """Group questions into requests.

    Args:
        questions: Distinct questions of one round.
        fuse: `view` honours what is hidden, `record` ignores it, `off` asks one by one.
        independent: Whether the judge answers each question by itself, so that repeats may share a request.
        weigh: Size of some parts of the record, to choose between equally few requests.
    """
    if fuse == "off":
        return [Group(question.needs, (question,)) for question in questions]
    kinds = _kinds(questions, blind=fuse == "view", repeats=not independent)
    best = _Search(weigh).fewest(kinds) if kinds else []
    return [Group(_material(group), tuple(q for kind in group for q in kind.questions)) for group in best]


def _kinds(questions: Sequence[Question], *, blind: bool, repeats: bool) -> list[_Kind]:
    gathered: dict[tuple[frozenset[Part], frozenset[Part], frozenset[Part], int], list[Question]] = {}
    for question in questions:
        hidden = question.hides if blind else frozenset[Part]()
        sample = question.sample if repeats else 0
        key = (question.needs, question.needs | question.shows, hidden, sample)
        gathered.setdefault(key, []).append(question)
    return [_Kind(*key, tuple(members)) for key, members in gathered.items()]


class _Search:
    """Depth-first search for the partition with the fewest groups, then the least material."""

    def __init__(self, weigh: Callable[[frozenset[Part]], int]) -> None:
        self._weigh = cache(weigh)
        self._best: list[list[_Kind]] = []
        self._cost = (1 << 30, 0)
        self._steps = 0

    def fewest(self, kinds: list[_Kind]) -> list[list[_Kind]]:
        # The most constrained kinds first: bounds bite early, and the greedy first descent is a good one.
        self._descend(sorted(kinds, key=lambda kind: -len(kind.hidden | kind.shown)), 0, [])
        return self._best

    def _descend(self, kinds: list[_Kind], at: int, groups: list[list[_Kind]]) -> None:
        """Place kinds[at:]. Groups and their material only grow, so what costs too much already can go."""
        self._steps += 1
        cost = (len(groups), sum(self._weigh(_material(group)) for group in groups))
        if self._best and (cost >= self._cost or self._steps > _STEPS):
            return
        if at == len(kinds):
            self._cost, self._best = cost, [list(group) for group in groups]
            return
        for group in groups:
            if _compatible(kinds[at], group):
                group.append(kinds[at])
                self._descend(kinds, at + 1, groups)
                group.pop()
        groups.append([kinds[at]])
        self._descend(kinds, at + 1, groups)
        groups.pop()


def _material(group: list[_Kind]) -> frozenset[Part]:
    return frozenset[Part]().union(*(kind.needs for kind in group))


def _compatible(kind: _Kind, group: list[_Kind]) -> bool:
    """Whether a kind may join a group, whose union must stay hidden from nobody."""
    members = (kind, *group)
    shown = frozenset[Part]().union(*(member.shown for member in members))
    if any(shown & member.hidden for member in members):
        return False
    lanes = {member.sample for member in members} - {0}
    return len(lanes) <= 1
