"""What turns a claim round although its words are there: another owner, order, cause or amount.

Each check compares the claim with one place of the evidence that speaks of the same thing, and answers only
where both say something to the point. All of them are rules of language; none looks at how likely a claim is.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from steelyard.judge.local._material import Line
from steelyard.judge.local.words import Word

_TELLING = 4.0
"""Weight from which a word says what a clause is about."""
_SAME = 0.6
"""Share of a clause's telling words that a clause about the same thing has."""
_COPIED = 0.8
"""Share of a clause's telling words from which it was copied rather than reworded."""


class Turn(NamedTuple):
    """A difference that forbids a yes."""

    reason: str
    """What it is, in a few words."""
    opposite: bool
    """Whether the evidence says the opposite, and not only something else."""


def turns(claim: Line, lines: Sequence[Line], known: frozenset[str]) -> list[Turn]:
    """The differences between a claim and the sentences that say most of it.

    Args:
        claim: The claim.
        lines: The sentences.
        known: The stems of everything that the claim is held against.
    """
    found = [
        _other_amount(claim, lines),
        _other_owner(claim, lines),
        _other_row(claim, lines),
        _other_order(claim, lines),
        _other_cause(claim, lines),
        _other_quantity(claim, lines),
        _added(claim, known),
    ]
    return [turn for turn in found if turn]


def _telling(words: Iterable[Word]) -> set[str]:
    return {word.stem for word in words if word.weight >= _TELLING and word.kind != "number"}


def _closest(clause: Sequence[Word], lines: Sequence[Line], kind: str) -> list[Sequence[Word]]:
    """The clauses of the evidence that have most of a clause's telling words, one kind left aside."""
    weights = {word.stem: word.weight for word in clause if word.kind != kind and word.weight >= _TELLING}
    total = sum(weights.values())
    if not total:
        return []
    scored = [
        (math.fsum(weights[word] for word in weights.keys() & {w.stem for w in part}) / total, part)
        for line in lines
        for part in line.clauses
    ]
    best = max((score for score, _ in scored), default=0.0)
    return [part for score, part in scored if score >= max(_SAME, best - 0.01)]


def _sort(word: Word) -> str:
    """What kind of number it is: numbers of different sorts do not exclude each other."""
    if " " in word.stem:
        return word.stem.rpartition(" ")[2]
    if word.stem.startswith("month"):
        return "month"
    if "-" in word.stem[1:]:
        return "day"
    if "/" in word.stem:
        return "fraction"
    return "year" if len(word.stem) == 4 and word.stem.isdigit() and word.stem < "2200" else "number"


def _other_amount(claim: Line, lines: Sequence[Line]) -> Turn | None:
    """A clause about the same thing has another number of the same sort, and none has the claim's."""
    for clause in claim.clauses:
        numbers = [word for word in clause if word.kind == "number"]
        closest = _closest(clause, lines, "number") if numbers else []
        for number in numbers:
            same = [w for part in closest for w in part if w.kind == "number" and _sort(w) == _sort(number)]
            if same and number.stem not in {word.stem for word in same}:
                return Turn(f"{number.surface!r} where the evidence has {same[0].surface!r}", opposite=True)
    return None


def _other_owner(claim: Line, lines: Sequence[Line]) -> Turn | None:
    """A clause about the same thing has another name in it, and none has one of the claim's."""
    for clause in claim.clauses:
        names = {word.stem: word for word in clause if word.kind == "name"}
        if not names:
            continue
        closest = _closest(clause, lines, "name")
        there = [word for part in closest for word in part if word.kind == "name"]
        said = {word.stem for part in closest for word in part}
        if there and not names.keys() & said:
            return Turn(
                f"{next(iter(names.values())).surface!r} where it has {there[0].surface!r}", opposite=False
            )
    return None


def _other_row(claim: Line, lines: Sequence[Line]) -> Turn | None:
    """The rows of a table that the claim names lack what other rows have."""
    rows = [line for line in lines if line.row is not None]
    named = [line for line in rows if line.row and line.row <= claim.stems]
    if not named or len(named) == len(rows):
        return None
    here = frozenset[str]().union(*(line.stems for line in named))
    elsewhere = frozenset[str]().union(*(line.stems for line in rows if line not in named)) - here
    labels = frozenset[str]().union(*(line.row for line in rows if line.row))
    wrong = [
        w for w in claim.words if w.stem in elsewhere - labels and (w.kind != "word" or w.weight > _TELLING)
    ]
    return Turn(f"{wrong[0].surface!r} stands in another row", opposite=True) if wrong else None


# Order in time.

_EARLIER = {"before": True, "after": False, "avant": True, "après": False, "vor": True, "nach": False}
_EARLIER |= {"bevor": True, "nachdem": False, "antes": True, "después": False, "prima": True, "dopo": False}
_THEN = frozenset({"afterwards", "afterward", "then", "later", "next", "subsequently", "second"})
_MARKERS = _THEN | {"first", "last", "finally", "until", "since", "later"}


def _other_order(claim: Line, lines: Sequence[Line]) -> Turn | None:
    """The claim says that one thing came before another, and the evidence the other way round."""
    said = _order(claim.words)
    if said is None:
        return None
    first, second = said
    for line in lines:
        told = _order(line.words)
        if told is None:
            continue
        same = _shared(first, told[0]) + _shared(second, told[1])
        swapped = _shared(first, told[1]) + _shared(second, told[0])
        if max(same, swapped) >= 1 and same != swapped:
            return Turn("the order in time is another", opposite=True) if swapped > same else None
    return _by_place(first, second, lines)


def _shared(wanted: set[str], there: set[str]) -> float:
    return len(wanted & there) / len(wanted) if wanted else 0.0


def _order(words: Sequence[Word]) -> tuple[set[str], set[str]] | None:
    """What a sentence says came first, and what came second."""
    surfaces = [word.surface.casefold() for word in words]
    for place, surface in enumerate(surfaces):
        if surface in _EARLIER and 0 < place < len(words) - 1:
            left, right = _around(words[:place]), _around(words[place + 1 : place + 9])
            if left - right and right - left:
                both = (left - right, right - left)
                return both if _EARLIER[surface] else (both[1], both[0])
    if "first" in surfaces:
        place = surfaces.index("first")
        then = next((at for at in range(place + 1, len(words)) if surfaces[at] in _THEN), None)
        if then is not None:
            left, right = _around(words[:place]), _around(words[place + 1 : then + 6])
            if left - right and right - left:
                return left - right, right - left
    return None


def _around(words: Sequence[Word]) -> set[str]:
    return {word.stem for word in words if word.weight >= _TELLING or word.kind == "number"}


def _by_place(first: set[str], second: set[str], lines: Sequence[Line]) -> Turn | None:
    """By the years beside the two, or by where they stand in a text that counts its steps."""
    words = [word for line in lines for word in line.words]
    one, other = _place(first, words), _place(second, words)
    if one is None or other is None or one == other:
        return None
    years = [
        (at, int(word.stem))
        for at, word in enumerate(words)
        if word.kind == "number" and _sort(word) == "year"
    ]
    dated = [min(years, key=lambda year: abs(year[0] - at))[1] for at in (one, other)] if years else []
    if dated and dated[0] != dated[1]:
        return Turn("the years are in another order", opposite=True) if dated[0] > dated[1] else None
    stepped = any(word.surface.casefold() in _MARKERS for word in words)
    return Turn("the steps are in another order", opposite=True) if stepped and one > other else None


def _place(wanted: set[str], words: Sequence[Word]) -> float | None:
    """Where most of some words stand together."""
    if sum(word.stem in wanted for word in words) == 0:
        return None
    spans = [
        (len({word.stem for word in words[at : at + 6]} & wanted), -at)
        for at in range(max(1, len(words) - 5))
    ]
    return -max(spans)[1]


# Cause.

_BECAUSE = frozenset({"because", "weil", "parce", "porque", "perché", "omdat"})


def _other_cause(claim: Line, lines: Sequence[Line]) -> Turn | None:
    """The claim's cause is the effect of the evidence, or is not in it at all."""
    said = _causes(claim.words)
    if said is None:
        return None
    cause, effect = said
    for line in lines:
        told = _causes(line.words)
        if told is None:
            continue
        same = _shared(cause, told[0]) + _shared(effect, told[1])
        swapped = _shared(cause, told[1]) + _shared(effect, told[0])
        if swapped > same and swapped >= 1:
            return Turn("cause and effect are the other way round", opposite=True)
    there = frozenset[str]().union(*(line.stems for line in lines))
    if cause and len(cause & there) / len(cause) < 0.5:
        return Turn("the cause is not in the evidence", opposite=False)
    return None


def _causes(words: Sequence[Word]) -> tuple[set[str], set[str]] | None:
    """What a sentence calls the cause, and what the effect."""
    surfaces = [word.surface.casefold() for word in words]
    for place, surface in enumerate(surfaces):
        if surface in _BECAUSE and place > 0:
            before, after = _around(words[:place]), _around(words[place + 1 :])
            return after - before, before - after
    if surfaces[:1] in (["because"], ["when"], ["since"], ["as"]) and len(words) > 5:
        # Without the comma the middle is the best guess: each side is compared as a whole.
        before, after = _around(words[1 : len(words) // 2]), _around(words[len(words) // 2 :])
        return before - after, after - before
    return None


# Quantifiers.

_ALL = frozenset(
    {"all", "every", "each", "always", "everyone", "everybody", "everything", "entirely", "alle"}
)
_MOST = frozenset({"most", "mostly", "majority", "usually"})
_FEW = frozenset({"few", "rarely", "seldom", "hardly", "scarcely"})
_SOME = frozenset({"some", "several", "sometimes", "may", "might", "partly", "few", "occasionally", "only"})
_EXCEPT = frozenset({"except", "but", "only", "without"})
_CERTAIN = frozenset({"certainly", "definitely", "always", "must", "prove", "proves", "proved", "surely"})
_POSSIBLE = frozenset(
    {"may", "might", "probably", "perhaps", "possibly", "suggest", "suggests", "can", "could"}
)


def _other_quantity(claim: Line, lines: Sequence[Line]) -> Turn | None:
    """The claim says more of all of them than the evidence does, or is surer of it."""
    near = _nearest(claim, lines)
    if near is None:
        return None
    ours, theirs = ({word.surface.casefold() for word in words} for words in (claim.words, near))
    if (
        ours & _ALL
        and not theirs & (_ALL | {"any", "no", "none"})
        and theirs & (_SOME | _MOST | _FEW | {"half"})
    ):
        return Turn("the evidence does not say it of all", opposite=True)
    if ours & _ALL and not ours & _EXCEPT and theirs & _ALL and theirs & {"except"}:
        return Turn("the evidence has an exception", opposite=True)
    if (ours & _MOST and theirs & _FEW) or (ours & _FEW and theirs & (_MOST | _ALL) and not theirs & _FEW):
        return Turn("the evidence speaks of more or fewer", opposite=True)
    if ours & _CERTAIN and theirs & _POSSIBLE and not theirs & _CERTAIN and not ours & _POSSIBLE:
        return Turn("the evidence is not so sure", opposite=False)
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


# What is added.


def _added(claim: Line, known: frozenset[str]) -> Turn | None:
    """Where the rest is in the evidence, a clause of which nothing is there was added."""
    parts = [(clause, _telling(clause)) for clause in claim.clauses]
    parts = [(clause, telling) for clause, telling in parts if telling]
    if len(parts) < 2:
        return None
    shares = [len(telling & known) / len(telling) for _, telling in parts]
    # Only of what is copied otherwise: where the wording is free, other words are no addition.
    if sorted(shares)[1] < _COPIED:
        return None
    for (clause, telling), share in zip(parts, shares, strict=True):
        if share == 0 and len(telling) > 1:
            words = " ".join(word.surface for word in clause[:6])
            return Turn(f"{words!r} is not in the evidence", opposite=False)
    return None
