"""Which passages stand in a prompt, whatever the prompt did to them.

Passages and prompts are compared by shingles of four words (see `_words`). One pass over the prompt indexes
its shingles; each passage then looks its own up, so the time is linear in the lengths.

Sharing text with the prompt is not enough to have been there: passages of a store overlap, share headers, and
repeat the question. So passages explain the prompt in order, wholly seen ones first, then by how much was
seen, and each is judged only by shingles which no passage before it, nor the question, accounts for. What is
left of an absent passage then is chance.
"""

from __future__ import annotations

import itertools
import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from steelyard.recording.provenance._words import is_spaceless, unescaped, words

SHINGLE = 4
"""Words in a shingle."""
MOST_PROMPT = 4_000_000
"""Characters of all prompts together that are read."""
MOST_PASSAGES = 4_000_000
"""Characters of all passages together that are looked for; later passages are not decided."""

_WHOLE = 0.9
_SHARE = 0.4
_RUN = 6
_SHORT = 8
_OCCURRENCES = 64
_PIECE = re.compile(r"(?s).{1000}\S{0,200}+")
_BEFORE = frozenset("\n\r\"'`>:.)]-*|{[(,;\N{BULLET}")
_AFTER = frozenset("\n\r\"'`<,;|]}).")


@dataclass(frozen=True, kw_only=True, slots=True)
class Sighting:
    """What was seen of one passage in the prompts."""

    found: bool | None
    """Whether it was there; None where that cannot be told (empty, one word, the question itself, beyond
    the bounds)."""
    seen: float
    """The share of its words that stand in the prompts, from 0 to 1, wherever they came from."""
    position: int | None = None
    """The word of the prompts, counted from 0, at which it begins; None where it was not found."""


_UNDECIDED = Sighting(found=None, seen=0.0)


def find_passages(
    passages: Sequence[str], prompts: Sequence[str], *, question: str = ""
) -> tuple[Sighting, ...]:
    r"""Find each passage in the prompts, as text, Python repr, JSON, XML, wrapped, cut, or in sentences.

    Args:
        passages: The candidates. Equal ones are found or missed together.
        prompts: The texts that the model was sent, in order; one is read once, however often it is given.
        question: What was asked. It stands in the prompt anyway, so words that a passage shares with it
            prove nothing.

    Returns:
        One Sighting for each passage, in the order given.

    Example:
        >>> prompt = "Context: [Document(page_content='Rome has\\nseven hills.')]"
        >>> [s.found for s in find_passages(["Rome has\nseven hills.", "Paris is in France."], [prompt])]
        [True, False]
    """
    read = _read(prompts)
    split: dict[str, list[str]] = {}
    if (whole := _whole(passages, read, question, split)) is not None:
        return whole
    prompt = _Prompt(read)
    known: dict[str, _Passage] = {}
    left = MOST_PASSAGES
    for text in passages:
        if text not in known and left >= len(text):
            left -= len(text)
            known[text] = _Passage(text, split.get(text) or words(text), prompt)
    _decide(list(known.values()), prompt, question)
    return tuple(known[text].sighting if text in known else _UNDECIDED for text in passages)


def shingles(text_words: Sequence[str]) -> list[int]:
    """Hashes of each four words in a row. Python salts them per process, so no text is made to collide."""
    return list(map(hash, zip(text_words, text_words[1:], text_words[2:], text_words[3:], strict=False)))


def _read(prompts: Sequence[str]) -> list[tuple[str, list[str]]]:
    """Each prompt once, up to the bound, with its words."""
    found: list[tuple[str, list[str]]] = []
    left = MOST_PROMPT
    for text in dict.fromkeys(prompts):
        found.append((text[:left], words(text[:left])))
        left -= len(found[-1][0])
    return found


def _whole(
    passages: Sequence[str],
    prompts: Sequence[tuple[str, list[str]]],
    question: str,
    split: dict[str, list[str]],
) -> tuple[Sighting, ...] | None:
    """The sightings where every passage stands whole in a prompt and apart from the others; else None.

    That is so for most turns, and the words need not be hashed to see it. `split` keeps the words of the
    passages that were looked at.
    """
    unique = dict.fromkeys(passages)
    if sum(map(len, unique)) > MOST_PASSAGES:
        return None
    least = max(SHINGLE, len(words(question)) + 1)
    row = "\0".join(f" {' '.join(text_words)} " for _, text_words in prompts)
    found: dict[str, int] = {}
    taken: list[tuple[int, int]] = []
    for text in unique:
        own = split[text] = words(text)
        looked_for = f" {' '.join(own)} "
        at = row.find(looked_for) if len(own) >= least else -1
        if at < 0:
            return None
        found[text] = at
        taken.append((at, at + len(looked_for) - 1))
    taken.sort()
    if any(start < end for (_, end), (start, _) in itertools.pairwise(taken)):
        return None
    return tuple(_stands_at(row, found[text]) for text in passages)


def _stands_at(row: str, at: int) -> Sighting:
    return Sighting(found=True, seen=1.0, position=row.count(" ", 0, at) - row.count("\0", 0, at))


class _Prompt:
    """The prompts as one row of shingles, with where each shingle first stands."""

    def __init__(self, prompts: Sequence[tuple[str, list[str]]]) -> None:
        self.texts = [text for text, _ in prompts]
        self.row: list[int] = []
        for _, text_words in prompts:
            self.row += shingles(text_words)
        self.first = dict(zip(reversed(self.row), range(len(self.row) - 1, -1, -1), strict=True))
        self.explained = bytearray(len(self.row))
        """One where a shingle first stands that is accounted for."""
        self._plain: str | None = None
        self._pieces: list[tuple[int, int]] | None = None
        """Where pieces of `plain` begin, with the number of words before each."""

    def explain(self, places: Sequence[int | None], *, is_one_piece: bool = False) -> None:
        """Account for the shingles at these places."""
        if is_one_piece:
            start = places[0] or 0
            self.explained[start : start + len(places)] = b"\x01" * len(places)
            return
        for place in places:
            if place is not None:
                self.explained[place] = 1

    def is_explained(self, shingle: int) -> bool:
        """Whether the shingle at a place of the row is accounted for."""
        return bool(self.explained[self.first[self.row[shingle]]])

    @property
    def plain(self) -> str:
        """The texts without escapes, in lower case, for passages too short for shingles."""
        if self._plain is None:
            self._plain = "\n".join(map(unescaped, self.texts)).casefold()
        return self._plain

    def words_before(self, at: int) -> int:
        """How many words stand before a place of `plain`; one may be split where a piece ends."""
        if self._pieces is None:
            self._pieces = [(0, 0)]
            for piece in _PIECE.finditer(self.plain):
                self._pieces.append((piece.end(), self._pieces[-1][1] + len(words(piece.group()))))
        start, count = self._pieces[bisect_right(self._pieces, (at, len(self.plain))) - 1]
        return count + len(words(self.plain[start:at]))


class _Passage:
    """One candidate while it is judged."""

    def __init__(self, text: str, text_words: list[str], prompt: _Prompt) -> None:
        self.text = text
        self.words = text_words
        self.row = shingles(self.words)
        self.places = list(map(prompt.first.get, self.row))
        self.is_one_piece = _in_a_row(self.places)
        self.matched = len(self.row) if self.is_one_piece else len(self.row) - self.places.count(None)
        self.share = self.matched / len(self.row) if self.row else 0.0
        self.sighting = _UNDECIDED

    @property
    def order(self) -> tuple[bool, int, float]:
        return self.share >= _WHOLE, self.matched, self.share

    def settle(self, found: bool | None) -> None:
        position = next((place for place in self.places if place is not None), None) if found else None
        self.sighting = Sighting(found=found, seen=self._seen(), position=position)

    def _seen(self) -> float:
        """The share of words that stand in some matched shingle."""
        if self.matched == len(self.row):
            return 1.0 if self.row else 0.0
        there = int.from_bytes(bytes(place is not None for place in self.places), "little")
        # A byte for each word: a word is covered by the shingle that begins at it or up to three before it.
        covered = there | there << 8 | there << 16 | there << 24
        return covered.bit_count() / len(self.words)


def _in_a_row(places: list[int | None]) -> bool:
    """Whether all shingles stand in the prompt, one after the other, as those of most passages do."""
    start, end = (places[0], places[-1]) if places else (None, None)
    if start is None or end is None or end - start != len(places) - 1:
        return False
    return places == list(range(start, end + 1))


def _decide(passages: list[_Passage], prompt: _Prompt, question: str) -> None:
    asked = list(map(prompt.first.get, shingles(words(question))))
    prompt.explain(asked)
    for passage in sorted(passages, key=lambda passage: passage.order, reverse=True):
        if not passage.row:
            _decide_short(passage, prompt)
            continue
        found = _is_there(passage, prompt, asked)
        passage.settle(found)
        if found:
            prompt.explain(passage.places, is_one_piece=passage.is_one_piece)


def _is_there(passage: _Passage, prompt: _Prompt, asked: list[int | None]) -> bool | None:
    if not passage.matched:
        return False
    places, explained = passage.places, prompt.explained
    if passage.is_one_piece:
        start = places[0] or 0
        known = explained.count(1, start, start + len(places))
        fresh = places if not known else [place for place in places if not explained[place or 0]]
    else:
        fresh = [place for place in places if place is None or not explained[place]]
    if not fresh:
        return None if set(asked).issuperset(places) else _stands_alone(passage, prompt)
    return _is_evidence(fresh, passage)


def _is_evidence(fresh: list[int | None], passage: _Passage) -> bool:
    """Whether the shingles that only this passage accounts for show that it was there.

    A short passage must be there whole. A longer one by most of what is its own, or by one run of words in
    a row that is too long for chance: a sentence that was taken out of it. Characters count half a word.
    """
    matched = passage.matched if fresh is passage.places else len(fresh) - fresh.count(None)
    size = 2 if is_spaceless(passage.words[len(passage.words) // 2]) else 1
    if matched == len(fresh):
        return len(passage.row) - matched < _SHORT or passage.share >= _WHOLE
    if len(passage.words) < _SHORT * size:
        return False
    needed = (_SHORT - SHINGLE + 1) * size
    if matched >= min(needed, len(fresh)) and matched >= _SHARE * len(fresh):
        return True
    return matched >= _RUN * size and _longest_run(fresh) >= _RUN * size


def _longest_run(places: list[int | None]) -> int:
    """How many shingles in a row are in a row in the prompt too."""
    longest = run = 0
    before: int | None = None
    for place in places:
        if place is None:
            run = 0
        else:
            run = run + 1 if before is not None and place == before + 1 else 1
            longest = max(longest, run)
        before = place
    return longest


def _stands_alone(passage: _Passage, prompt: _Prompt) -> bool:
    """Whether a passage that is part of others stands somewhere without the text around it in those."""
    row, size, at = prompt.row, len(passage.row), passage.places[0]
    for _ in range(_OCCURRENCES):
        if at is None:
            break
        end = at + size
        if row[at:end] == passage.row:
            goes_on = (at > 0 and prompt.is_explained(at - 1)) or (
                end < len(row) and prompt.is_explained(end)
            )
            if not goes_on:
                return True
        try:
            at = row.index(passage.row[0], at + 1)
        except ValueError:
            break
    return False


def _decide_short(passage: _Passage, prompt: _Prompt) -> None:
    """Two or three words count where lines, quotes, tags or list marks set them off on both sides."""
    text = unescaped(passage.text).strip().casefold()
    if len(passage.words) < 2:
        return
    at = prompt.plain.find(text)
    for _ in range(_OCCURRENCES):
        if at < 0:
            break
        if _is_marked_off(prompt.plain, at, at + len(text)):
            passage.sighting = Sighting(found=True, seen=1.0, position=prompt.words_before(at))
            return
        at = prompt.plain.find(text, at + 1)
    passage.sighting = Sighting(found=False, seen=0.0)


def _is_marked_off(text: str, start: int, end: int) -> bool:
    before = text[max(0, start - 8) : start].rstrip(" \t")
    after = text[end : end + 8].lstrip(" \t")
    return (not before or before[-1] in _BEFORE) and (not after or after[0] in _AFTER)
