"""Who may see what: packing the questions of one round into few requests.

Two questions may share a request if it shows neither of them anything that is hidden from it, nor any
material that it neither needs nor admits, so that a question has the same view alone and in company; and if
they do not carry two different repeat numbers: independent repeats must not see each other's answers. Finding
the fewest requests is colouring a small graph. First fit, the most constrained first, found as few as branch
and bound for 721 mixtures of this package's metrics.

Then questions are cut into requests that a judge has room for, and contexts cut down where they are too long:
into stretches of whole sentences, of which those stay that share the most telling words with the question,
the answer and the statements that are asked about. They stand in their old order under their old numbers; a
mark stands where some were left out. It is the questions that choose, not the position: the end of a long
document counts as much as its beginning.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from steelyard.questions._question import PARTS, Part, Question
from steelyard.questions._request import Capabilities, View
from steelyard.record import Context
from steelyard.text import iter_sentences

_LEFT_OUT = "[... {count} characters left out ...]"
"""What stands in a context for what is gone."""
_STRETCH = 600
"""Characters from which a stretch is complete."""
_MARK = 48
"""Characters that a mark takes at most."""
_WORD = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]|[^\W_\u3040-\u30ff\u3400-\u9fff]+")

_Stretch = tuple[int, int]
"""Its first character in a passage, and one past its last."""


def size_of(view: View) -> int:
    passages = (*(view.contexts or ()), *(view.reference_contexts or ()))
    return _size_beside(view) + sum(len(passage.text) for passage in passages)


def _size_beside(view: View) -> int:
    return sum(len(text) for text in (view.question, view.answer, view.reference) if text)


def _share(characters: int) -> int:
    """What of a judge's room the material may take where it has to be cut; the rest is for the questions."""
    return characters * 4 // 5


def split(group: Group, view: View, able: Capabilities) -> Iterable[Group]:
    """Cut a group of questions that share some material into pieces that a judge can take."""
    room = able.max_characters - min(size_of(view), _share(able.max_characters))
    piece: list[Question] = []
    used = 0
    for question in group.questions:
        # What a question quotes is in no repr.
        size = len(repr(question)) + len(question.quoted or "")
        if piece and (len(piece) >= able.max_questions or used + size > room):
            yield Group(group.parts, tuple(piece))
            piece, used = [], 0
        piece.append(question)
        used += size
    if piece:
        yield Group(group.parts, tuple(piece))


def fitted(view: View, questions: Sequence[Question], *, characters: int) -> tuple[View, int | None]:
    """A view whose contexts were cut until it fits.

    Returns:
        The view, and how many characters were left out; None where even without contexts it is too large.
    """
    contexts, expected = view.contexts or (), view.reference_contexts or ()
    texts = [passage.text for passage in (*contexts, *expected)]
    # Reserved for each passage, since a cut can leave a mark in any of them.
    room = _share(characters) - _size_beside(view) - _MARK * len(texts)
    if room <= 0 or not texts:
        return view, None
    asked = " ".join(filter(None, (view.question, view.answer, *(one.quoted for one in questions))))
    kept: dict[int, list[_Stretch]] = defaultdict(list)
    left_out = sum(map(len, texts))
    for place, (start, end) in _by_relevance(texts, _words(asked)):
        # A mark may stand on either side. A smaller stretch may fit where a larger one did not.
        if (size := end - start + _MARK) <= room:
            room -= size
            left_out -= end - start
            kept[place].append((start, end))
    cut = [_with_marks(text, sorted(kept[place])) for place, text in enumerate(texts)]
    shown = replace(
        view,
        contexts=view.contexts and _with_texts(contexts, cut[: len(contexts)]),
        reference_contexts=view.reference_contexts and _with_texts(expected, cut[len(contexts) :]),
    )
    return shown, left_out


def _with_texts(passages: Sequence[Context], texts: Sequence[str]) -> tuple[Context, ...]:
    return tuple(replace(passage, text=text) for passage, text in zip(passages, texts, strict=True))


def _by_relevance(texts: Sequence[str], wanted: frozenset[str]) -> list[tuple[int, _Stretch]]:
    """The stretches of all texts, those with the most telling words first; of equals the earlier one."""
    found = [(place, at) for place, text in enumerate(texts) for at in _stretches(text)]
    shared = [sorted(_words(texts[place][slice(*at)]) & wanted) for place, at in found]
    common = Counter(word for words in shared for word in words)
    weights = {word: math.log(1 + len(found) / count) for word, count in common.items()}
    order = sorted(range(len(found)), key=lambda one: -sum(weights[word] for word in shared[one]))
    return [found[one] for one in order]


def _stretches(text: str) -> Iterable[_Stretch]:
    start = 0
    for sentence in iter_sentences(text):
        # A sentence without an end, as of a table, is cut where a stretch is full.
        while sentence.end - start > 2 * _STRETCH:
            yield start, start + _STRETCH
            start += _STRETCH
        if sentence.end - start >= _STRETCH:
            yield start, sentence.end
            start = sentence.end
    while start < len(text):
        yield start, min(start + 2 * _STRETCH, len(text))
        start += 2 * _STRETCH


def _words(text: str) -> frozenset[str]:
    return frozenset(_WORD.findall(text.casefold()))


def _with_marks(text: str, kept: Sequence[_Stretch]) -> str:
    """A passage of what was kept, with a mark for each stretch that was not."""
    found: list[str] = []
    before = 0
    for start, end in [*kept, (len(text), len(text))]:
        if start > before:
            found.append(_LEFT_OUT.format(count=start - before))
        found.append(text[start:end])
        before = end
    found = [piece for piece in found if piece]
    return " ".join(found) if any(piece.strip() for piece in found) else text


Fuse = Literal["view", "record", "off"]
"""How questions share requests: by what they may see, all of a round at once, or not at all."""


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
    questions: tuple[Question, ...] = ()


def pack(
    questions: Sequence[Question],
    *,
    fuse: Fuse,
    independent: bool,
    present: frozenset[Part] = PARTS,
) -> list[Group]:
    """Group questions into requests.

    `present` are the parts that the record has: what is empty neither joins questions nor keeps them apart.
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
    gathered: dict[_ViewKind, list[Question]] = {}
    for question in questions:
        hidden = question.hides if hiding else frozenset[Part]()
        needs = question.needs & present
        own = needs | question.shows | question.admits
        closed = present - own if hiding else frozenset[Part]()
        kind = _ViewKind(needs, needs | question.shows, hidden, closed, question.sample if repeats else 0)
        gathered.setdefault(kind, []).append(question)
    kinds = [replace(kind, questions=tuple(members)) for kind, members in gathered.items()]
    return sorted(kinds, key=lambda kind: -len(kind.hidden | kind.shown))


def _joined(group: _ViewKind, kind: _ViewKind) -> _ViewKind | None:
    """A group with a kind more, or None where something it would show must stay hidden from somebody."""
    needs, closed = group.needs | kind.needs, group.closed | kind.closed
    shown, hidden = group.shown | kind.shown, group.hidden | kind.hidden
    if shown & (hidden | closed) or (group.sample and kind.sample and group.sample != kind.sample):
        return None
    sample, questions = group.sample or kind.sample, group.questions + kind.questions
    return _ViewKind(needs, shown, hidden, closed, sample, questions)
