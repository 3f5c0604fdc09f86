"""Which passages stand in the prompts, by the shingles of four words that they share with them.

One pass over the prompts notes where each shingle of a passage first stands, so the time is linear in the
lengths. Words are compared as Python's strings, whose hashes nobody outside of the process can foresee.

Sharing text with the prompt is not enough to have been there: passages of a store overlap, share headers, and
repeat the question. So passages explain the prompt in order, those that stand there in a row first, then by
how much was seen, and each is judged only by shingles which no passage before it, nor the question, accounts
for. What is left of an absent passage then is chance.
"""

from __future__ import annotations

import itertools
import operator
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from steelyard.recording.provenance._words import is_spaceless, unescaped, words

MOST_PROMPT = 4_000_000
"""Characters of all prompts together that are read."""
MOST_PASSAGES = 4_000_000
"""Characters of all passages together that are looked for; later passages are not decided."""
MOST_PLACES = 64
"""So many places where a text may begin are tried; hostile texts have any number of them."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PassageMatch:
    """What was seen of one passage in the prompts."""

    found: bool | None
    """Whether it was there; None where that cannot be told (empty, one word, the question itself, beyond
    the bounds)."""
    seen: float
    """The share of its words that stand in the prompts, from 0 to 1, wherever they came from."""
    position: int | None = None
    """How many words of the prompts stand before it, or parts between blanks where all passages stand there
    letter for letter; None where it was not found."""


# Said of texts without evidence either way, so that nobody counts them as missing.
UNDECIDED = PassageMatch(found=None, seen=0.0)


_SHINGLE = 4
_AT_ONCE = 20_000
"""Words between which the application's threads get their turn."""
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
    asked = set(prompt.places(words(question)))
    prompt.explain(asked)
    judged = [_Passage(text, prompt) for text in passages]
    # Whole passages first: they account for the text that parts of them would otherwise claim.
    for passage in sorted(judged, key=lambda passage: passage.order, reverse=True):
        if not passage.places:
            _decide_short(passage, prompt)
            continue
        found = _is_there(passage, prompt, asked)
        passage.settle(found, prompt)
        if found:
            prompt.explain(passage.places)
    return {passage.text: passage.sighting for passage in judged}


class _Prompt:
    """The prompts as one row of words."""

    def __init__(self, texts: Sequence[str]) -> None:
        self.texts = texts
        rows = [words(text) for text in texts]
        self.words = list(itertools.chain.from_iterable(rows))
        self._first: dict[tuple[str, ...], int] = {}
        """The word at which each shingle first stands."""
        start = len(self.words)
        for row in reversed(rows):
            start -= len(row)
            self._add(row, start)
        self.explained: set[int | None] = set()
        """Where shingles first stand that are accounted for."""

    def _add(self, row: list[str], start: int) -> None:
        """Add the shingles of a text, last ones first, so that the first place of each stays."""
        for end in range(len(row) - _SHINGLE + 1, 0, -_AT_ONCE):
            begin = max(0, end - _AT_ONCE)
            back = row[begin : end + _SHINGLE - 1][::-1]
            shingles = zip(back[3:], back[2:], back[1:], back, strict=False)
            self._first.update(zip(shingles, range(start + end - 1, start + begin - 1, -1), strict=True))

    def places(self, row: Sequence[str]) -> list[int | None]:
        """Where each shingle of a text first stands; None where it does not."""
        return list(map(self._first.get, zip(row, row[1:], row[2:], row[3:], strict=False)))

    def explain(self, places: Iterable[int | None]) -> None:
        """Account for the shingles at these places."""
        self.explained.update(places)
        self.explained.discard(None)

    def is_explained(self, at: int) -> bool:
        """Whether the shingle at a word is accounted for; one that stands often is so at its first place."""
        return self._first.get(tuple(self.words[at : at + _SHINGLE])) in self.explained

    @cached_property
    def plain(self) -> str:
        """The texts without escapes, in lower case, for passages too short for shingles."""
        return "\n".join(map(unescaped, self.texts)).casefold()

    @cached_property
    def _pieces(self) -> list[tuple[int, int]]:
        """Where pieces of `plain` begin, with the number of words before each."""
        found = [(0, 0)]
        for piece in _PIECE.finditer(self.plain):
            found.append((piece.end(), found[-1][1] + len(words(piece.group()))))
        return found

    def words_before(self, at: int) -> int:
        """How many words stand before a place of `plain`; one may be split where a piece ends."""
        start, count = self._pieces[bisect_right(self._pieces, (at, len(self.plain))) - 1]
        return count + len(words(self.plain[start:at]))


class _Passage:
    """One candidate while it is judged."""

    def __init__(self, text: str, prompt: _Prompt) -> None:
        self.text = text
        self.words = row = words(text)
        self.places = prompt.places(row)
        self.matched = len(self.places) - self.places.count(None)
        self.share = self.matched / len(self.places) if self.places else 0.0
        self.is_in_a_row = self.share == 1.0 and self._matches(prompt.words, self._begins(prompt)) == len(row)
        # Its middle word tells its script: the first and the last are often a number or a Latin name.
        self.is_spaceless = bool(row) and is_spaceless(row[len(row) // 2])
        self.sighting = UNDECIDED

    @property
    def order(self) -> tuple[bool, bool, int, float]:
        return self.share >= _WHOLE, self.is_in_a_row, self.matched, self.share

    def settle(self, found: bool | None, prompt: _Prompt) -> None:
        self.sighting = PassageMatch(
            found=found, seen=self._seen(), position=self._begins(prompt) if found else None
        )

    def _begins(self, prompt: _Prompt) -> int:
        """The word of the prompts at which it begins: of the places that its own tell, where it fits best.

        What it shares with another passage, such as a heading, tells the place of the first one that has it.
        """
        there = [(place, at) for at, place in enumerate(self.places) if place is not None]
        own = [(place, at) for place, at in there if place not in prompt.explained] or there
        counts = Counter(place - at for place, at in own)
        likely = sorted(counts, key=lambda start: (-counts[start], start))[:_MOST_STARTS]
        return max(0, max(likely, key=lambda start: self._matches(prompt.words, start)))

    def _matches(self, row: list[str], start: int) -> int:
        """How many of its words stand in a row of words if it begins at this place."""
        theirs = row[max(0, start) : max(0, start + len(self.words))]
        return sum(map(operator.eq, self.words[max(0, -start) :], theirs))

    def _seen(self) -> float:
        """The share of words that stand in some matched shingle."""
        covered = end = 0
        for at, place in enumerate(self.places, _SHINGLE):
            if place is not None:
                covered += at - max(end, at - _SHINGLE)
                end = at
        return covered / len(self.words)


def _is_there(passage: _Passage, prompt: _Prompt, asked: Collection[int | None]) -> bool | None:
    if not passage.matched:
        return False
    fresh = [place for place in passage.places if place not in prompt.explained]
    if not fresh:
        # A text that is only the question cannot be told from the question itself.
        return None if all(place in asked for place in passage.places) else _stands_alone(passage, prompt)
    return _is_evidence(fresh, passage)


def _is_evidence(fresh: Sequence[int | None], passage: _Passage) -> bool:
    """Whether the shingles that only this passage accounts for show that it was there.

    A short passage must be there whole. A longer one by most of what is its own, or by one run of words in
    a row that is too long for chance: a sentence that was taken out of it. Characters count half a word.
    """
    matched = len(fresh) - fresh.count(None)
    # A character of Chinese or Thai says about half of what a word says, so that twice as many are needed.
    size = 2 if passage.is_spaceless else 1
    if matched == len(fresh):
        return len(passage.places) - matched < _SHORT or passage.share >= _WHOLE
    if len(passage.words) < _SHORT * size:
        return False
    needed = (_SHORT - _SHINGLE + 1) * size
    if matched >= min(needed, len(fresh)) and matched >= _SHARE * len(fresh):
        return True
    return matched >= _RUN * size and _longest_run(fresh) >= _RUN * size


def _longest_run(places: Iterable[int | None]) -> int:
    """How many shingles in a row are in a row in the prompt too, where there are any."""
    longest, run, following = 0, 0, -1
    for place in places:
        run = run + 1 if place == following else 1
        following, longest = -1 if place is None else place + 1, max(run, longest)
    return longest


def _stands_alone(passage: _Passage, prompt: _Prompt) -> bool:
    """Whether a passage that is part of others stands somewhere without the text around it in those."""
    size = len(passage.words)
    at = passage.places[0] or 0
    for _ in range(MOST_PLACES):
        if prompt.words[at : at + size] == passage.words:
            # Its last shingle begins so many words before its end, and the next one word later.
            goes_on = (at > 0 and prompt.is_explained(at - 1)) or prompt.is_explained(
                at + size - _SHINGLE + 1
            )
            if not goes_on:
                return True
        try:
            at = prompt.words.index(passage.words[0], at + 1)
        except ValueError:
            return False
    return False


def _decide_short(passage: _Passage, prompt: _Prompt) -> None:
    """Two or three words count where lines, quotes, tags or list marks set them off on both sides."""
    text = unescaped(passage.text).strip().casefold()
    if len(passage.words) < 2:
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
