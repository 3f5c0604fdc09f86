"""Amounts: another number where the evidence speaks of the same thing."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from steelyard.judge.local._material import Line, Text
from steelyard.judge.local.verifying.checks._mismatch import Mismatch, closest, is_year
from steelyard.judge.local.words import Word, rule


def other_amount(claim: Line, lines: Sequence[Line]) -> Mismatch | None:
    """A clause about the same thing has another number of the same sort, and none has the claim's."""
    for clause in claim.clauses:
        numbers = [w for at, w in enumerate(clause) if w.kind == "number" and not _is_place(clause, at)]
        near = [part for _, part in closest(clause, lines, "number")] if numbers else []
        for number in numbers:
            other = _instead(number, near)
            if other is None or _anchored(number, clause, near, lines):
                continue
            if not written_apart(number.surface, lines):
                return Mismatch(f"{number.surface!r} where the evidence has {other.surface!r}", opposite=True)
    return None


def _is_place(words: Sequence[Word], at: int) -> bool:
    """Whether a number says which item: "step 4", "the third step"."""
    beside = [words[place].surface.casefold() for place in (at - 1, at + 1) if 0 <= place < len(words)]
    return not rule("places").isdisjoint(beside)


def _instead(number: Word, near: Sequence[Sequence[Word]]) -> Word | None:
    """The first number of the same sort in some clauses; None if one of them is the number itself."""
    same = [w for part in near for w in part if w.kind == "number" and _sort(w) == _sort(number)]
    return same[0] if same and all(word.stem != number.stem for word in same) else None


def written_apart(surface: str, lines: Iterable[Line | Text]) -> bool:
    """Whether a number is there with a space in it, as text taken from a page may have it: "36, 000"."""
    if not _GROUPED.search(surface):
        return False
    pattern = re.compile(r"(?<!\d)" + r"\s?".join(map(re.escape, _GROUPED.split(surface))) + r"(?!\d)")
    return any(pattern.search(line.text) for line in lines)


_GROUPED = re.compile(r"(?<=\d[,.])(?=\d)")


def _anchored(
    number: Word, clause: Sequence[Word], near: Sequence[Sequence[Word]], lines: Sequence[Line]
) -> bool:
    """Whether a number stands elsewhere beside a name or number of the claim that the near clauses lack."""
    anchors = {word.stem for word in clause if word.kind != "word"} - {number.stem}
    anchors -= {word.stem for part in near for word in part}
    parts = [{word.stem for word in part} for line in lines for part in line.clauses]
    return any(number.stem in part and anchors & part for part in parts)


def _sort(word: Word) -> str:
    """What kind of number it is: numbers of different sorts do not exclude each other."""
    if " " in word.stem:
        return word.stem.rpartition(" ")[2]
    if word.stem.startswith("month"):
        return "month"
    if "-" in word.stem[1:]:
        return "day"
    if ":" in word.stem:
        return "time"
    return "year" if is_year(word) else "number"
