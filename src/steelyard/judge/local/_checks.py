"""What speaks against a claim although its words are there: another owner, order, amount, row or quantity.

Each check compares the claim with one place of the evidence that speaks of the same thing, and answers only
if both say something to the point. All of them are rules of language; none looks at how likely a claim is. A
check stays only while it pays on pairs that it was not written for (docs/explain/trusting-the-judge.md).
"""

from __future__ import annotations

import math
import re
from collections.abc import Generator, Iterable, Iterator, Sequence
from functools import cache
from itertools import combinations
from typing import NamedTuple

from steelyard.judge._word import Word, lists, rule, stem
from steelyard.judge.local._material import Line, ReadText

_TELLING = 4.0
"""Weight from which a word says what a clause is about."""
_SAME = 0.6
"""Share of a clause's telling words that a clause about the same thing has."""


class Mismatch(NamedTuple):
    """A difference that forbids a yes."""

    reason: str
    """What it is, in a few words."""
    opposite: bool
    """Whether the evidence says the opposite, and not only something else."""


def _telling(words: Iterable[Word]) -> set[str]:
    """The stems of the words that say what a clause is about, numbers aside."""
    return {word.stem for word in words if word.weight >= _TELLING and word.kind != "number"}


def _closest(clause: Sequence[Word], lines: Sequence[Line], kind: str) -> list[tuple[Line, Sequence[Word]]]:
    """The clauses with most of a clause's telling words, and their sentences; words of `kind` may differ."""
    weights = {word.stem: word.weight for word in clause if word.kind != kind and word.weight >= _TELLING}
    total = sum(weights.values())
    if not total:
        return []
    scored = [
        (math.fsum(weights[word] for word in weights.keys() & stems) / total, line, part)
        for line in lines
        for part, stems in zip(line.clauses, line.clause_stems, strict=True)
    ]
    best = max((score for score, _, _ in scored), default=0.0)
    return [(line, part) for score, line, part in scored if score >= max(_SAME, best - 0.01)]


_COPIED = 0.8
"""Share of a clause's telling words from which it was copied rather than reworded."""


def _added(claim: Line, lines: Sequence[Line]) -> Mismatch | None:
    """Where the rest is in the evidence, a clause of which nothing is there was added."""
    parts = [(clause, words) for clause in claim.clauses if (words := _telling(clause))]
    if len(parts) < 2:
        return None
    there = frozenset[str]().union(*(line.stems for line in lines))
    shares = [len(words & there) / len(words) for _, words in parts]
    # Only of what is copied otherwise: if the wording is free, other words are not an addition.
    if sorted(shares)[1] < _COPIED:
        return None
    for (clause, words), share in zip(parts, shares, strict=True):
        if share == 0 and len(words) > 1:
            shown = " ".join(word.surface for word in clause[:6])
            return Mismatch(f"{shown!r} is not in the evidence", opposite=False)
    return None


_Found = Generator[None, None, Mismatch | None]
"""A check that pauses between the clauses of a claim: of a log or a list of keys there are many."""


def _other_amount(claim: Line, lines: Sequence[Line]) -> _Found:
    """A clause about the same thing has another number of the same sort, and none has the claim's."""
    for clause in claim.clauses:
        yield
        numbers = [word for word in clause if word.kind == "number"]
        near = [part for _, part in _closest(clause, lines, "number")] if numbers else []
        for number in numbers:
            other = _instead(number, near)
            if other is not None and not written_apart(number.surface, lines):
                return Mismatch(f"{number.surface!r} where the evidence has {other.surface!r}", opposite=True)
    return None


def _instead(number: Word, near: Sequence[Sequence[Word]]) -> Word | None:
    """The first number of the same sort in some clauses; None if one of them is the number itself."""
    same = [w for part in near for w in part if w.kind == "number" and _sort(w) == _sort(number)]
    return same[0] if same and all(word.stem != number.stem for word in same) else None


def written_apart(surface: str, lines: Iterable[Line | ReadText]) -> bool:
    """Whether a number is there with a space in it, as text taken from a page may have it: "36, 000"."""
    if len(surface) > _LONGEST_NUMBER or not _GROUPED.search(surface):
        return False
    pattern = re.compile(r"(?<!\d)" + r"\s?".join(map(re.escape, _GROUPED.split(surface))) + r"(?!\d)")
    return any(pattern.search(line.text) for line in lines)


_GROUPED = re.compile(r"(?<=\d[,.])(?=\d)")
_LONGEST_NUMBER = 40
"""Characters of a number that is looked for with spaces in it; longer ones are no numbers of a text."""


def _sort(word: Word) -> str:
    """What kind of number it is: numbers of different sorts do not exclude each other."""
    if " " in word.stem:
        return word.stem.rpartition(" ")[2]
    is_year = len(word.stem) == 4 and word.stem.isdigit() and "1000" <= word.stem < "2200"
    return "time" if ":" in word.stem else "year" if is_year else "number"


def _other_word(claim: Line, lines: Sequence[Line]) -> Mismatch | None:
    """The evidence lacks a word of the claim, and has its opposite, which the claim lacks."""
    there = frozenset[str]().union(*(line.stems for line in lines))
    for word in claim.words:
        against = _opposites().get(word.stem, frozenset()) & (there - claim.stems)
        if against and word.stem not in there:
            return Mismatch(f"{word.surface!r} against {min(against)!r}", opposite=True)
    return None


@cache
def _opposites() -> dict[str, frozenset[str]]:
    table: dict[str, frozenset[str]] = {}
    for pair in lists().opposites:
        one, other = map(stem, pair)
        table[one] = table.get(one, frozenset()) | {other}
        table[other] = table.get(other, frozenset()) | {one}
    return table


_ABOUT = 2
"""Telling words beside its names from which a clause can be told from others."""


def _other_owner(claim: Line, lines: Sequence[Line]) -> _Found:
    """A clause about the same thing has another name in it, and none has one of the claim's.

    A clause without a subject has that of its sentence: "and sold it to her son".
    """
    # What opens the claim may be known for a name by how the evidence writes it.
    evident = {word.stem for line in lines for word in line.words if word.kind == "name"}
    for clause in claim.clauses:
        yield
        names = {word.stem: word for word in clause if word.kind == "name" or word.stem in evident}
        if not names or len(_telling(clause) - names.keys()) < _ABOUT:
            continue
        near = _closest(clause, lines, "name")
        there = next((word for _, part in near for word in part if word.kind == "name"), None)
        if there and not names.keys() & _said(near):
            name = next(iter(names.values()))
            return Mismatch(f"{name.surface!r} where it has {there.surface!r}", opposite=False)
    return None


def _said(near: Sequence[tuple[Line, Sequence[Word]]]) -> set[str]:
    """The stems of some clauses, with what may be their subjects and stands in other clauses."""
    said = {word.stem for _, part in near for word in part}
    for line, part in near:
        # A clause that begins with a name or an article has a subject of its own; with it belong the clauses
        # of names alone: the further ones of "Ada Quist, Ben Ruiz and Carla Nyman".
        if part[0].kind == "name" or part[0].surface.casefold() in rule("articles"):
            bare = [one for one in line.clauses if all(word.kind == "name" for word in one)]
            said |= {word.stem for one in bare for word in one}
        else:
            said |= line.stems
    return said


_DIFFERENCES: tuple[tuple[str, str, tuple[str, ...], str, str, bool], ...] = (
    ("all", "", ("of_part",), "of_all", "the evidence does not say it of all", True),
    ("all", "except", ("all", "exception"), "", "the evidence has an exception", True),
    ("most", "", ("few",), "", "the evidence speaks of more or fewer", True),
    ("few", "", ("most_or_all",), "few", "the evidence speaks of more or fewer", True),
    ("certain", "possible", ("possible",), "certain", "the evidence is not so sure", False),
)
"""Names of rules: of which the claim has a word, and has none; of each of which the evidence has one, and of
which it has none; the difference, and whether it is the opposite. The first that fits counts."""


def _other_quantity(claim: Line, lines: Sequence[Line]) -> Mismatch | None:
    """The claim says more of all of them than the evidence does, or is surer of it."""
    near = _nearest(claim, lines)
    if near is None:
        return None
    ours, theirs = ({word.surface.casefold() for word in words} for words in (claim.words, near))
    for wanted, absent, there, not_there, reason, opposite in _DIFFERENCES:
        said = ours & rule(wanted) and not ours & rule(absent)
        if said and all(theirs & rule(one) for one in there) and not theirs & rule(not_there):
            return Mismatch(reason, opposite=opposite)
    return None


def _nearest(claim: Line, lines: Sequence[Line]) -> Sequence[Word] | None:
    """The clause that has most of a claim's telling words, or else the sentence, if it has half of them."""
    wanted = _telling(claim.words)
    if not wanted or not lines:
        return None
    parts = [part for line in lines for part in line.clauses]
    for pool in (parts, [line.words for line in lines]):
        best = max(pool, key=lambda words: len(wanted & {word.stem for word in words}), default=[])
        if len(wanted & {word.stem for word in best}) * 2 >= len(wanted):
            return best
    return None


def _other_row(claim: Line, lines: Sequence[Line]) -> Mismatch | None:
    """The rows of a table that a clause names, or else the one before, lack what other rows have."""
    rows = [line for line in lines if line.row]
    meant = [line for line in rows if line.names(claim)]
    for clause in claim.clauses if meant else ():
        stems = {word.stem for word in clause}
        meant = [line for line in rows if (line.row or stems) <= stems] or meant
        if word := _misplaced(clause, meant, rows):
            return Mismatch(f"{word.surface!r} stands in another row", opposite=True)
    return None


def _misplaced(clause: Sequence[Word], meant: Sequence[Line], rows: Sequence[Line]) -> Word | None:
    elsewhere = _all(line for line in rows if line not in meant) - _all(meant)
    wrong = (w for w in clause if w.stem in elsewhere or (w.raw and w.raw in elsewhere))
    return next((w for w in wrong if w.kind != "word" or w.weight > _TELLING), None)


def _all(lines: Iterable[Line]) -> set[str]:
    """The stems of some rows, and the digits of their quantities."""
    return {form for line in lines for word in line.words for form in (word.stem, word.raw) if form}


_MOST_CLAUSES = 8
"""Of a sentence whose clauses are compared in pairs; one with more is a list."""


def _crossed(claim: Line, lines: Sequence[Line]) -> Mismatch | None:
    """Two clauses that are copied otherwise exchange a part: "A is red and B blue" of "A is blue, B red"."""
    ours = [words for clause in claim.clauses if (words := _around(clause))]
    if not 1 < len(ours) <= _MOST_CLAUSES:
        return None
    for theirs in (map(_around, line.clauses) for line in lines if len(line.clauses) <= _MOST_CLAUSES):
        for one, other in combinations(theirs, 2):
            near = (said for said in ours if len(said & (one | other)) >= _COPIED * len(said))
            if sum(bool(said & one - other and said & other - one) for said in near) > 1:
                return Mismatch("what two clauses say is said of each other", opposite=True)
    return None


_NEAR, _BEHIND = 5, 9
"""Words before "than" or a verb that are looked at, and behind them, or behind "then" or "before"."""
_TIME, _VERB = "time", "verb "


class _Sides(NamedTuple):
    """What stands on the two sides of a word; the same `pivot` has them in the same order."""

    pivot: str
    left: set[str]
    right: set[str]


def _other_side(claim: Line, lines: Sequence[Line]) -> Mismatch | None:
    """What came first comes second, what is more is less, or who did it is who it was done to."""
    for said in _sides(claim):
        for told in (one for line in lines for one in _sides(line) if one.pivot == said.pivot):
            same = _shared(said.left, told.left) + _shared(said.right, told.right)
            swapped = _shared(said.left, told.right) + _shared(said.right, told.left)
            # Names stand around a verb for other reasons too, unless both have changed sides.
            if max(same, swapped) >= 1 + said.pivot.startswith(_VERB) and same != swapped:
                if swapped > same:
                    return Mismatch("what is said of one side is said of the other", opposite=True)
                break
    return None


def _shared(wanted: set[str], there: set[str]) -> float:
    return len(wanted & there) / len(wanted)


def _sides(line: Line) -> Iterator[_Sides]:
    """The sides of each word of a sentence that has some."""
    for pivot, words, others, turned in _cuts(line):
        left, right = _around(words), _around(others)
        if left - right and right - left:
            sides = (left - right, right - left)
            yield _Sides(pivot, *(reversed(sides) if turned else sides))


_Cut = tuple[str, Sequence[Word], Sequence[Word], bool]
"""What a sentence is cut at, the words on either side, and whether the right side comes first."""


def _cuts(line: Line) -> Iterator[_Cut]:
    words = line.words
    surfaces = [word.surface.casefold() for word in words]
    before, after, then, than = map(rule, ("before", "after", "then", "than"))
    for at, surface in enumerate(surfaces):
        if surface in before or surface in after:
            yield _TIME, words[:at], words[at + 1 : at + _BEHIND], surface in after
        elif surface in then and at > 1:
            yield _at_then(words, surfaces, at)
        elif surface in than:
            compared = [word for word in words[max(0, at - _NEAR) : at] if _is_comparative(word)]
            for by in compared[-1:]:
                yield by.stem, [word for word in words[:at] if word is not by], words[at + 1 :], False
        elif _is_formed(words[at], surface):
            yield _at_verb(words, surfaces, at)


def _is_formed(word: Word, surface: str) -> bool:
    return word.weight >= _TELLING and (surface.endswith("ed") or surface in lists().forms)


def _at_verb(words: Sequence[Word], surfaces: Sequence[str], at: int) -> _Cut:
    left, right = words[max(0, at - _NEAR) : at], words[at + 1 : at + _BEHIND]
    left, right = ([word for word in part if word.kind == "name"] for part in (left, right))
    return _VERB + words[at].stem, left, right, "by" in surfaces[at + 1 : at + 4]


def _at_then(words: Sequence[Word], surfaces: Sequence[str], at: int) -> _Cut:
    """The sides of "A, then B", "first A and later B", and "A first and B afterwards"."""
    first = surfaces.index("first") if "first" in surfaces[:at] else -1
    if first > 0:
        return _TIME, words[:first], words[first + 1 : at + _NEAR], False
    return _TIME, words[first + 1 : at], words[at + 1 :], False


def _is_comparative(word: Word) -> bool:
    surface = word.surface.casefold()
    return surface in rule("comparing") or (len(surface) > 4 and surface.endswith("er"))


def _around(words: Sequence[Word]) -> set[str]:
    """The stems of the words that say what a part of a sentence is about, numbers with them."""
    return {word.stem for word in words if word.weight >= _TELLING or word.kind == "number"}


_CHECKS = (_other_row, _other_side, _crossed, _other_quantity, _other_word, _added)


def mismatches(claim: Line, lines: Sequence[Line]) -> Generator[None, None, tuple[Mismatch, ...]]:
    """The differences between a claim and the sentences that say most of it; pauses between the checks."""
    amount = yield from _other_amount(claim, lines)
    owner = yield from _other_owner(claim, lines)
    found = [amount, owner]
    for check in _CHECKS:
        yield
        found.append(check(claim, lines))
    return tuple(difference for difference in found if difference is not None)
