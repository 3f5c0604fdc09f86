"""What a judge has room for: questions cut into requests, and contexts cut down where they are too long.

Contexts are cut into stretches of whole sentences, and stretches are kept in the order of how many telling
words they share with the question, the answer and the statements that are asked about (each word weighed by
how few stretches have it). They stand in their old order under their old numbers; a mark stands where some
were left out. It is the questions that choose, not the position: the end of a long document counts as much as
its beginning.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import get_args

from steelyard.questions._packing import Group
from steelyard.questions._protocols import Capabilities, View
from steelyard.questions._question import Part, Question
from steelyard.record import Context, Record
from steelyard.text import iter_sentences

LEFT_OUT = "[... {count} characters left out ...]"
"""What stands in a context for what is gone."""

_PARTS: frozenset[Part] = frozenset(get_args(Part))
_STRETCH = 600
"""Characters from which a stretch is complete."""
_MARK = 48
"""Characters that a mark takes at most."""
_WORD = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]|[^\W_\u3040-\u30ff\u3400-\u9fff]+")


@dataclass(frozen=True, slots=True)
class _Piece:
    """A stretch of one passage."""

    place: tuple[str, int]
    """The part of the record, and the index of the passage in it."""
    start: int
    end: int
    words: frozenset[str]


def size_of(view: View) -> int:
    """Characters of material in a view."""
    texts = [view.question, view.answer, view.reference]
    passages = [*(view.contexts or ()), *(view.reference_contexts or ())]
    return sum(len(text) for text in texts if text) + sum(len(passage.text) for passage in passages)


def present(record: Record) -> frozenset[Part]:
    """The parts of a record that have something in them."""
    view = View.of(record, _PARTS)
    return frozenset(part for part in _PARTS if _says_something(getattr(view, part)))


def _says_something(material: str | tuple[Context, ...] | None) -> bool:
    if isinstance(material, tuple):
        return any(passage.text for passage in material)
    return bool(material)


def _share(characters: int) -> int:
    """What of a judge's room the material may take where it has to be cut; the rest is for the questions."""
    return characters * 4 // 5


def split(group: Group, view: View, able: Capabilities) -> Iterable[Group]:
    """Cut a group into pieces that a judge can take.

    Args:
        group: Questions that may share a request.
        view: The material they share.
        able: What the judge can do.
    """
    room = able.max_characters - min(size_of(view), _share(able.max_characters))
    piece: list[Question] = []
    used = 0
    for question in group.questions:
        size = len(repr(question))
        if piece and (len(piece) >= able.max_questions or used + size > room):
            yield Group(group.parts, tuple(piece))
            piece, used = [], 0
        piece.append(question)
        used += size
    if piece:
        yield Group(group.parts, tuple(piece))


def fitted(view: View, questions: Sequence[Question], *, characters: int) -> tuple[View, int | None]:
    """A view whose contexts were cut until it fits.

    Args:
        view: What is too large.
        questions: What is asked about it.
        characters: Material and questions that the judge takes.

    Returns:
        The view, and how many characters were left out; None where even without contexts it is too large.
    """
    rest = sum(len(text) for text in (view.question, view.answer, view.reference) if text)
    passages = {
        (part, index): passage.text
        for part in ("contexts", "reference_contexts")
        for index, passage in enumerate(getattr(view, part) or ())
    }
    # Reserved for each passage, since a cut can leave a mark in any of them.
    room = _share(characters) - rest - _MARK * len(passages)
    if room <= 0 or not passages:
        return view, None
    pieces = [piece for place, text in passages.items() for piece in _pieces(place, text)]
    wanted = _words(" ".join(filter(None, (view.question, view.answer, *_quoted(questions)))))
    kept = _kept(_by_relevance(pieces, wanted), room)
    cut = replace(
        view,
        contexts=_cut("contexts", view.contexts, kept),
        reference_contexts=_cut("reference_contexts", view.reference_contexts, kept),
    )
    return cut, sum(map(len, passages.values())) - sum(piece.end - piece.start for piece in kept)


def _kept(pieces: Iterable[_Piece], room: int) -> list[_Piece]:
    """The pieces that fit, the first ones first; a smaller one may fit where a larger one did not."""
    kept: list[_Piece] = []
    for piece in pieces:
        # A mark may stand on either side of what is kept.
        size = piece.end - piece.start + _MARK
        if size <= room:
            room -= size
            kept.append(piece)
    return kept


def _cut(
    part: str, passages: tuple[Context, ...] | None, kept: Sequence[_Piece]
) -> tuple[Context, ...] | None:
    """The passages of a part, each of the pieces of it that were kept."""
    if not passages:
        return passages
    by_place: dict[tuple[str, int], list[_Piece]] = defaultdict(list)
    for piece in kept:
        by_place[piece.place].append(piece)
    return tuple(
        replace(passage, text=_joined(passage.text, by_place[part, index]))
        for index, passage in enumerate(passages)
    )


def _pieces(place: tuple[str, int], text: str) -> Iterable[_Piece]:
    start = 0
    for sentence in iter_sentences(text):
        # A sentence without an end, as of a table, is cut where a stretch is full.
        while sentence.end - start > 2 * _STRETCH:
            yield _piece(place, text, start, start + _STRETCH)
            start += _STRETCH
        if sentence.end - start >= _STRETCH:
            yield _piece(place, text, start, sentence.end)
            start = sentence.end
    while start < len(text):
        yield _piece(place, text, start, min(start + 2 * _STRETCH, len(text)))
        start += 2 * _STRETCH


def _piece(place: tuple[str, int], text: str, start: int, end: int) -> _Piece:
    return _Piece(place, start, end, _words(text[start:end]))


def _words(text: str) -> frozenset[str]:
    return frozenset(_WORD.findall(text.casefold()))


def _quoted(questions: Iterable[Question]) -> Iterable[str]:
    return (question.quoted for question in questions if question.quoted)


def _by_relevance(pieces: Sequence[_Piece], wanted: frozenset[str]) -> list[_Piece]:
    """The pieces, those first that share the most telling words; among equals the earlier one."""
    common = Counter(word for piece in pieces for word in piece.words & wanted)
    weights = {word: math.log(1 + len(pieces) / count) for word, count in common.items()}
    return sorted(pieces, key=lambda piece: -sum(weights[word] for word in sorted(piece.words & wanted)))


def _joined(text: str, kept: Sequence[_Piece]) -> str:
    """A passage of what was kept, with a mark for each stretch that was not."""
    found: list[str] = []
    end = 0
    for piece in sorted(kept, key=lambda piece: piece.start):
        if piece.start > end:
            found.append(LEFT_OUT.format(count=piece.start - end))
        found.append(text[piece.start : piece.end])
        end = piece.end
    if end < len(text):
        found.append(LEFT_OUT.format(count=len(text) - end))
    return " ".join(found) if any(piece.strip() for piece in found) else text
