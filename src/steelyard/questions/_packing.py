"""Who may see what: packing the questions of one round into few requests.

Two questions may share a request if it shows neither of them anything that is hidden from it, nor any
material that it neither needs nor admits, so that a question has the same view alone and in company; and if
they do not carry two different repeat numbers: independent repeats must not see each other's answers. Finding
the fewest requests is colouring a small graph. First fit, the most constrained first, found as few as branch
and bound for 721 mixtures of this package's metrics.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from steelyard.questions._question import Part, Question

Fuse = Literal["view", "record", "off"]
"""How questions share requests: by what they may see, all of a round at once, or not at all."""

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
    present: frozenset[Part] = _PARTS,
) -> list[Group]:
    """Group questions into requests.

    Args:
        questions: Distinct questions of one round.
        fuse: `view` honours what is hidden and admitted, `record` ignores it, `off` asks one by one.
        independent: Whether the judge answers each question by itself, so that repeats may share a request.
        present: The parts that the record has; what is empty neither joins questions nor keeps them apart.
    """
    if fuse == "off":
        return [Group(question.needs, (question,)) for question in questions]
    groups: list[_ViewKind] = []
    for kind in _kinds(questions, present, hiding=fuse == "view", repeats=not independent):
        for place, group in enumerate(groups):
            if (joined := _joined(group, kind)) is not None:
                groups[place] = joined
                break
        else:
            groups.append(kind)
    return [Group(group.needs, group.questions) for group in groups]


def _kinds(
    questions: Sequence[Question], present: frozenset[Part], *, hiding: bool, repeats: bool
) -> list[_ViewKind]:
    """Questions that agree in what they need, show and hide; the most constrained first."""
    gathered: dict[tuple[_Parts, _Parts, _Parts, _Parts, int], list[Question]] = {}
    for question in questions:
        hidden = question.hides if hiding else frozenset[Part]()
        needs = question.needs & present
        own = needs | question.shows | question.admits
        closed = present - own if hiding else frozenset[Part]()
        sample = question.sample if repeats else 0
        key = (needs, needs | question.shows, hidden, closed, sample)
        gathered.setdefault(key, []).append(question)
    kinds = [_ViewKind(*key, tuple(members)) for key, members in gathered.items()]
    return sorted(kinds, key=lambda kind: -len(kind.hidden | kind.shown))


def _joined(group: _ViewKind, kind: _ViewKind) -> _ViewKind | None:
    """A group with a kind more, or None where something it would show must stay hidden from somebody."""
    needs, closed = group.needs | kind.needs, group.closed | kind.closed
    shown, hidden = group.shown | kind.shown, group.hidden | kind.hidden
    if shown & (hidden | closed) or (group.sample and kind.sample and group.sample != kind.sample):
        return None
    sample, questions = group.sample or kind.sample, group.questions + kind.questions
    return _ViewKind(needs, shown, hidden, closed, sample, questions)
