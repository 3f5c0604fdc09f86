"""Which passages stand in the prompts, by the shingles of words that they share with them.

One pass over the prompts indexes their shingles; those of all passages are then looked up at once, so the
time is linear in the lengths.

Sharing text with the prompt is not enough to have been there: passages of a store overlap, share headers, and
repeat the question. So passages explain the prompt in order, wholly seen ones first, then by how much was
seen, and each is judged only by shingles which no passage before it, nor the question, accounts for. What is
left of an absent passage then is chance.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence

import numpy as np

from steelyard.recording.provenance._words import unescaped, words
from steelyard.recording.provenance.matching._rows import Hashes, Places, row_of
from steelyard.recording.provenance.matching._shingles import SHINGLE, Index, shingles
from steelyard.recording.provenance.matching._sighting import MOST_PLACES, UNDECIDED, PassageMatch

_WHOLE = 0.9  # a passage is taken as whole although a template changed a word of it
_SHARE = 0.4  # less of a passage's own words may be its topic's, which others have too
_RUN = 6  # shingles in a row: so many words are not the same by chance
_SHORT = 8  # words below which nothing but the whole passage is evidence
_MOST_STARTS = 8  # places at which a passage may begin, by its shingles
# A piece never ends within a word: the words before it would be one too many.
_PIECE = re.compile(r"(?s).{1000}\S{0,200}+")
# Only what templates put around a text: a letter before it means that it is part of a longer word.
_BEFORE = frozenset("\n\r\"'`>:.)]-*|{[(,;\N{BULLET}")
_AFTER = frozenset("\n\r\"'`<,;|]}).")


def decide(passages: Sequence[str], prompts: Sequence[str], question: str) -> dict[str, PassageMatch]:
    """What was seen of each passage.

    Args:
        passages: Each once.
        prompts: Each once.
        question: What was asked.
    """
    prompt = _Prompt(prompts)
    # The question stands in every prompt, so what a passage shares with it proves nothing.
    asked = prompt.index.places(shingles(row_of([question]).hashes))
    prompt.explain(asked)
    judged = _candidates(passages, prompt)
    # Whole passages first: they account for the text that parts of them would otherwise claim.
    for passage in sorted(judged, key=lambda passage: passage.order, reverse=True):
        if not len(passage.row):
            _decide_short(passage, prompt)
            continue
        found = _is_there(passage, prompt, asked)
        passage.settle(found, prompt)
        if found:
            prompt.explain(passage.places)
    return {passage.text: passage.sighting for passage in judged}


class _Prompt:
    """The prompts as one row of shingles."""

    def __init__(self, texts: Sequence[str]) -> None:
        self.texts = texts
        row = row_of(texts)
        self._firsts: list[tuple[int, int]] = []
        """The first shingle of each prompt, with the number of its first word."""
        parts = [shingles(row.hashes[:0])]
        first_shingle = first_word = 0
        for size in row.sizes:
            self._firsts.append((first_shingle, first_word))
            parts.append(shingles(row.hashes[first_word : first_word + size]))
            first_shingle += len(parts[-1])
            first_word += size
        self.index = Index(np.concatenate(parts))
        self.explained = np.zeros(len(self.row), dtype=np.bool_)
        """Whether a shingle is accounted for, where it first stands."""
        self._plain: str | None = None
        self._pieces: list[tuple[int, int]] | None = None
        """Where pieces of `plain` begin, with the number of words before each."""

    @property
    def row(self) -> Hashes:
        """The shingles, prompt by prompt."""
        return self.index.row

    def word_of(self, shingle: int) -> int:
        """The number of the word at which a shingle begins."""
        at = bisect_right(self._firsts, shingle, key=lambda one: one[0])
        first_shingle, first_word = self._firsts[at - 1]
        return first_word + shingle - first_shingle

    def explain(self, places: Places) -> None:
        """Account for the shingles at these places."""
        self.explained[places[places >= 0]] = True

    def is_explained(self, shingle: int) -> bool:
        # A shingle that stands in several places is accounted for at its first, as in `explain`.
        """Whether the shingle at a place of the row is accounted for."""
        return bool(self.explained[self.index.places(self.row[shingle : shingle + 1])[0]])

    @property
    def plain(self) -> str:
        """The texts without escapes, in lower case, for passages too short for shingles."""
        # Most turns have no passage this short, so that the prompts are seldom unescaped for it.
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

    def __init__(self, text: str, size: int, row: Hashes, places: Places, *, is_spaceless: bool) -> None:
        self.text = text
        self.size = size
        """How many words it has."""
        self.is_spaceless = is_spaceless
        self.row = row
        self.places = places
        self.there = places >= 0
        self.matched = int(np.count_nonzero(self.there))
        self.share = self.matched / len(row) if len(row) else 0.0
        self.sighting = UNDECIDED

    @property
    def order(self) -> tuple[bool, int, float]:
        return self.share >= _WHOLE, self.matched, self.share

    def settle(self, found: bool | None, prompt: _Prompt) -> None:
        position = prompt.word_of(self._begins(prompt)) if found else None
        self.sighting = PassageMatch(found=found, seen=self._seen(), position=position)

    def _begins(self, prompt: _Prompt) -> int:
        """The shingle of the prompts at which it begins: of the places that its own tell, where it fits best.

        What it shares with another passage, such as a heading, tells the place of the first one that has it.
        """
        own = self.there & ~prompt.explained[self.places]
        own = own if own.any() else self.there
        values, counts = np.unique(self.places[own] - np.flatnonzero(own), return_counts=True)
        likely = values[np.argsort(-counts, kind="stable")][:_MOST_STARTS]
        return max(0, max(map(int, likely), key=lambda start: self._matches(prompt.row, start)))

    def _matches(self, row: Hashes, start: int) -> int:
        """How many of its shingles stand in a row of shingles if it begins at this place."""
        mine = self.row[max(0, -start) :]
        theirs = row[max(0, start) : max(0, start) + len(mine)]
        return int(np.count_nonzero(mine[: len(theirs)] == theirs))

    def _seen(self) -> float:
        """The share of words that stand in some matched shingle."""
        if self.matched == len(self.row):
            return 1.0
        if not self.matched:
            return 0.0
        covered = np.zeros(self.size, dtype=np.bool_)
        for at in range(SHINGLE):
            covered[at : at + len(self.there)] |= self.there
        return int(np.count_nonzero(covered)) / self.size


def _candidates(passages: Sequence[str], prompt: _Prompt) -> list[_Passage]:
    """The passages with their places in the prompt, which are looked up in one go."""
    words_of_all = row_of(passages)
    row = shingles(words_of_all.hashes)
    places = prompt.index.places(row)
    found: list[_Passage] = []
    start = 0
    for text, size in zip(passages, words_of_all.sizes, strict=True):
        # Its middle word tells its script: the first and the last are often a number or a Latin name.
        own = slice(start, start + max(0, size - SHINGLE + 1))
        is_spaceless = size > 0 and bool(words_of_all.spaceless[start + size // 2])
        found.append(_Passage(text, size, row[own], places[own], is_spaceless=is_spaceless))
        start += size
    return found


def _is_there(passage: _Passage, prompt: _Prompt, asked: Places) -> bool | None:
    if not passage.matched:
        return False
    places = passage.places
    fresh = places[~(passage.there & prompt.explained[places])]
    if not len(fresh):
        # A text that is only the question cannot be told from the question itself.
        return None if np.isin(places, asked).all() else _stands_alone(passage, prompt)
    return _is_evidence(fresh, passage)


def _is_evidence(fresh: Places, passage: _Passage) -> bool:
    """Whether the shingles that only this passage accounts for show that it was there.

    A short passage must be there whole. A longer one by most of what is its own, or by one run of words in
    a row that is too long for chance: a sentence that was taken out of it. Characters count half a word.
    """
    matched = int(np.count_nonzero(fresh >= 0))
    # A character of Chinese or Thai says about half of what a word says, so that twice as many are needed.
    size = 2 if passage.is_spaceless else 1
    if matched == len(fresh):
        return len(passage.row) - matched < _SHORT or passage.share >= _WHOLE
    if passage.size < _SHORT * size:
        return False
    needed = (_SHORT - SHINGLE + 1) * size
    if matched >= min(needed, len(fresh)) and matched >= _SHARE * len(fresh):
        return True
    return matched >= _RUN * size and _longest_run(fresh) >= _RUN * size


def _longest_run(places: Places) -> int:
    """How many shingles in a row are in a row in the prompt too, where there are any."""
    goes_on = (places[1:] == places[:-1] + 1) & (places[:-1] >= 0)
    # The run may begin or end at either end of the passage, hence the two added edges.
    breaks = np.flatnonzero(~goes_on)
    return int(np.diff(breaks, prepend=-1, append=len(goes_on)).max())


def _stands_alone(passage: _Passage, prompt: _Prompt) -> bool:
    """Whether a passage that is part of others stands somewhere without the text around it in those."""
    row, size = prompt.row, len(passage.row)
    for at in map(int, np.flatnonzero(row == passage.row[0])[:MOST_PLACES]):
        end = at + size
        if np.array_equal(row[at:end], passage.row):
            goes_on = (at > 0 and prompt.is_explained(at - 1)) or (
                end < len(row) and prompt.is_explained(end)
            )
            if not goes_on:
                return True
    return False


def _decide_short(passage: _Passage, prompt: _Prompt) -> None:
    """Two or three words count where lines, quotes, tags or list marks set them off on both sides."""
    text = unescaped(passage.text).strip().casefold()
    if passage.size < 2:
        return
    at = prompt.plain.find(text)
    for _ in range(MOST_PLACES):
        if at < 0:
            break
        if _is_marked_off(prompt.plain, at, at + len(text)):
            passage.sighting = PassageMatch(found=True, seen=1.0, position=prompt.words_before(at))
            return
        at = prompt.plain.find(text, at + 1)
    passage.sighting = PassageMatch(found=False, seen=0.0)


def _is_marked_off(text: str, start: int, end: int) -> bool:
    # A few blanks at most are looked past: hostile texts have any number of them.
    before = text[max(0, start - 8) : start].rstrip(" \t")
    after = text[end : end + 8].lstrip(" \t")
    return (not before or before[-1] in _BEFORE) and (not after or after[0] in _AFTER)
