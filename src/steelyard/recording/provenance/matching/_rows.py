"""Texts as rows of words in arrays: what is compared by shingles, without a Python object for each word.

A character is folded by a look-up in a table, and a word is known by a polynomial of its characters, which
differences of running sums give for all words at once. A text of 60,000 characters takes less than half a
millisecond.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from steelyard.recording.provenance._words import is_spaceless, legible

Hashes = npt.NDArray[np.uint64]
Places = npt.NDArray[np.intp]
Codes = npt.NDArray[np.uint32]
Flags = npt.NDArray[np.bool_]

_AT_ONCE = 32_768
"""Characters that are worked on at once: the arrays then stay in the processor's cache, and threads of the
application get their turn."""
_LONG = 64
"""Longer words are hashed by Python: a polynomial modulo a power of two can be made to collide over a long
word, whatever its base."""
# Marks on the folded characters; a code point needs 21 of the 32 bits.
_PLANE = 0x10000
_BETWEEN = 0
_SPACELESS = 1 << 31
_EXPANDS = _SPACELESS - 1
_UNKNOWN = (1 << 32) - 1
_64_BITS = (1 << 64) - 1

_table = np.full(_PLANE, _UNKNOWN, dtype=np.uint32)
"""What each character of the basic plane is folded to, filled as characters are met."""


def _powers(base: int) -> Hashes:
    found: Hashes = np.full(_AT_ONCE, base, dtype=np.uint64)
    found[0] = 1
    return np.multiply.accumulate(found)


_BASE = random.SystemRandom().getrandbits(64) & ~7 | 5  # of these numbers the powers come back last
_POWERS = _powers(_BASE)
_INVERSE = _powers(pow(_BASE, -1, 1 << 64))


@dataclass(frozen=True, slots=True)
class Row:
    """The words of texts, one after the other."""

    hashes: Hashes
    """One for each word. Words that are equal have the same, within a process."""
    spaceless: Flags
    """Whether a word is one character of a script without spaces."""
    sizes: tuple[int, ...]
    """How many of the words are those of each text."""


def row_of(texts: Sequence[str]) -> Row:
    """The words of these texts: those that `words` finds, but for ones of more letters than a piece has."""
    plain = [legible(text) for text in texts]
    try:
        return _row(plain)
    except _ExpandingError:
        # Only then the whole text is folded in Python, since a table holds one character for each.
        return _row([text.casefold() for text in plain])


class _ExpandingError(Exception):
    """A character folds to several, such as the German sharp s."""


def _row(texts: Sequence[str]) -> Row:
    """The row of texts, worked on as one: each alone takes several times as long where they are short."""
    all_of_them = "\n".join(texts)
    begins = [np.empty(0, dtype=np.intp)]
    hashes = [np.empty(0, dtype=np.uint64)]
    spaceless = [np.empty(0, dtype=np.bool_)]
    for at, piece in _pieces(all_of_them):
        codes = _folded(piece)
        starts, own = _hashed(codes)
        # Places are in the whole text, hashes are not: the same word has the same hash in every piece.
        begins.append(starts + at)
        hashes.append(own)
        spaceless.append(codes[starts] >= _SPACELESS)
    bounds = list(itertools.accumulate((len(text) + 1 for text in texts), initial=0))
    # Each text is followed by a line break, which never belongs to a word, so sizes are told by place.
    sizes = np.diff(np.searchsorted(np.concatenate(begins), bounds))
    return Row(np.concatenate(hashes), np.concatenate(spaceless), tuple(sizes.tolist()))


def _pieces(text: str) -> Iterator[tuple[int, str]]:
    """The pieces of a text, cut at blanks where there are any, and where each begins."""
    at = 0
    while at < len(text):
        end = at + _AT_ONCE
        if end < len(text):
            blank = max(text.rfind(" ", at, end), text.rfind("\n", at, end))
            end = blank + 1 if blank >= at else end
        yield at, text[at:end]
        at = end


def _folded(text: str) -> Codes:
    """Each character folded, 0 for what stands between words; of scripts without spaces with a mark."""
    # Lone surrogates are legal in a Python string, and judged texts may have them.
    codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype=np.uint32)
    if text.isascii() or not (beyond := codes >= _PLANE).any():
        found = _looked_up(codes)
    else:
        found = _looked_up(np.where(beyond, 0, codes))
        far, back = np.unique(codes[beyond], return_inverse=True)
        found[beyond] = np.array([_fold(chr(code)) for code in far.tolist()], dtype=np.uint32)[back]
    if not text.isascii() and (found == _EXPANDS).any():
        raise _ExpandingError
    return found


def _looked_up(codes: Codes) -> Codes:
    found = _table[codes]
    if len(unknown := np.flatnonzero(found == _UNKNOWN)):
        for code in np.unique(codes[unknown]).tolist():
            _table[code] = _fold(chr(code))
        found = _table[codes]
    return found


def _fold(character: str) -> int:
    if is_spaceless(character):
        return ord(character) | _SPACELESS
    if not character.isalnum():
        return _BETWEEN
    folded = character.casefold()
    return ord(folded) if len(folded) == 1 else _EXPANDS


def _hashed(codes: Codes) -> tuple[Places, Hashes]:
    """Where each word begins, and its hash."""
    is_word = codes != _BETWEEN
    breaks = is_word[1:] != is_word[:-1]
    if (alone := codes >= _SPACELESS).any():
        breaks |= alone[1:] | alone[:-1]  # such a character is a word by itself
    edge = np.ones(1, dtype=np.bool_)
    starts = np.flatnonzero(is_word & np.concatenate((edge, breaks)))
    lasts = np.flatnonzero(is_word & np.concatenate((breaks, edge)))
    terms = codes * _POWERS[: len(codes)]
    sums = np.cumsum(terms)
    hashes = sums[lasts] - sums[starts] + terms[starts]
    # Divides by the power of the place, so that a word has one hash wherever it stands.
    hashes *= _INVERSE[starts]
    for long in np.flatnonzero(lasts - starts >= _LONG).tolist():
        # Python's hash of bytes is keyed anew in each process, so that nobody can prepare a collision.
        hashes[long] = hash(codes[starts[long] : lasts[long] + 1].tobytes()) & _64_BITS
    return starts, hashes
