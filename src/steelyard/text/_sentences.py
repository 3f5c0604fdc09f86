"""Sentences of a text, with their places."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence and where it stands: `source[start:end] == text`."""

    text: str = field(repr=False)
    start: int
    end: int


_TITLES = """
mr mrs ms dr prof st gen col lt sgt capt maj cmdr adm rev hon gov sen rep pres mt messrs e.g i.e cf vs viz
approx ca jan feb mar apr jun jul aug sep sept oct nov dec
mio mrd bzw z.b u.a d.h s.o vgl sog inkl evtl ggf geb gest dipl hrsg
"""
_BEFORE_NAMES = frozenset(_TITLES.split())
"""Abbreviations that something must follow."""
_NUMBERED = "no nos vol pp p fig figs sec ch art eq nr str kap abs"
_BEFORE_NUMBERS = frozenset(_NUMBERED.split())
"""Abbreviations only where a number follows; "No." is a sentence too."""
_LASTS = "etc al inc ltd co corp jr sr u.s u.k u.n d.c a.m p.m ph.d m.d b.c a.d"
_CLOSING = frozenset(_LASTS.split())
"""Abbreviations that may end a sentence."""
_OPENERS = """
the a an this that these those it he she they we you i in on at as but and so if when while after before
however there its his her their our my for from by with although since because who what where why how is
are was were
then later afterwards afterward thereafter soon now today yesterday tomorrow once also another both all each
every everyone everybody everything no nobody none nothing not most many some several still yet until during
"""
_STARTS = frozenset(_OPENERS.split())
"""Words whose capital shows that a sentence starts with them, for they are not part of a name."""
_TIMES = """
monday tuesday wednesday thursday friday saturday sunday january february march april may june july august
september october november december est edt cst cdt mst mdt pst pdt gmt utc cet cest bst ist jst
"""
_AFTER_TIMES = frozenset(_TIMES.split())
"""What goes on after "5 p.m."; any other word with a capital begins a sentence."""
_NAMES_OF_MONTHS = """
januar jänner februar märz april mai juni juli august september oktober november dezember
"""
_MONTHS = frozenset(_NAMES_OF_MONTHS.split())
"""German months, which follow an ordinal: "3. Mai"."""
_ORDINAL = re.compile(
    r"(?:^|[^\w.])(?:(?<!\bI )am|vom|zum|beim|im|der|dem|den|des|das|die|bis|seit|ab) \d{1,3}$", re.IGNORECASE
)
"""A German ordinal, told by the word before it: "am 3.", "der 1."."""

# A Latin mark ends a sentence before white space; marks of scripts without spaces do wherever they stand;
# an empty line or a bullet on a new line ends one without any mark. A run of marks is looked at once, from
# its first one on, or a page of dots would take minutes.
_MARKS = ".!?…‼⁇⁈⁉؟۔։።"
_END = re.compile(
    rf"(?<![{_MARKS}])(?P<mark>[{_MARKS}]++)(?P<close>[\"'”’»)\]*_]*+)(?=\s|$)"
    r"|[。！？｡।॥။។]+[」』”’）]*"
    r"|\n\s*\n|\n(?=\s*(?:[-*•–‣▪]|\d{1,3}[.)]|#{1,6})\s)"
)
_INITIAL = re.compile(r"(?:^|[\s(])(?:\w\.)*\w$")
_ENUMERATOR = re.compile(r"(?:^|\n)[^\S\n]*\(?\w{1,3}$")
_NEXT = re.compile(r"\s*[\"'“‘(\[*_]*(\w+)")
_SAYS = re.compile(r"[^\W_]")
_BEFORE = 200
"""Characters without a letter or digit at most, before the first one of a sentence."""
_LONGEST = 4_000
"""Characters of a sentence at most: a text without an end is read in pieces that take a millisecond each."""


def sentences(text: str) -> list[Sentence]:
    """Split a text into sentences.

    Args:
        text: Any text, in any script that marks its sentences.

    Returns:
        Sentences in order, without surrounding white space; pieces without a letter or digit are left out.
        What goes on for more than 4,000 characters is cut where a line or a word ends.
    """
    return list(iter_sentences(text))


def iter_sentences(text: str) -> Iterator[Sentence]:
    """`sentences`, one at a time, for long texts."""
    start = at = _begin(text, 0)
    while match := _END.search(text, at):
        end = at = match.end()
        if match["mark"] and not _ends(text, match):
            if end - start <= _LONGEST:
                continue
            end = _cut(text, start)
        yield from _piece(text, start, end)
        start = _begin(text, end)
        at = max(at, start)
    yield from _piece(text, start, len(text))


def _begin(text: str, start: int) -> int:
    """Where the next sentence may begin: of a long stretch that says nothing, near its end."""
    said = _SAYS.search(text, start)
    return max(start, (said.start() if said else len(text)) - _BEFORE)


def _ends(text: str, match: re.Match[str]) -> bool:
    """Whether a mark ends a sentence; a full stop may also end an abbreviation or the number of an item."""
    mark = match["mark"]
    if mark.strip(".…"):
        return True
    follows = _NEXT.match(text, match.end(), match.end() + 40)
    if follows is None:
        return True
    if follows[1][0].islower():
        return False
    return mark != "." or not _abbreviates(text, match.start(), follows[1])


def _abbreviates(text: str, stop: int, follows: str) -> bool:
    before = text[max(0, stop - 12) : stop]
    last = before.split()[-1] if before.split() else ""
    if _is_ordinal(text[max(0, stop - 16) : stop], follows.casefold()):
        return True
    if _ENUMERATOR.search(before) and (before[-1].isdigit() or len(last) == 1):
        return True
    word = last.lstrip("(\"'“‘[").casefold()
    if word in _BEFORE_NAMES:
        return True
    if word in _BEFORE_NUMBERS or (word.endswith("str") and word.isalpha()):  # "Hauptstr. 5"
        return follows[0].isdigit()
    return _opens_nothing(word, before, follows)


def _opens_nothing(word: str, before: str, follows: str) -> bool:
    """Whether what follows a time, an initial or "etc." is unlikely to begin a sentence."""
    if word in ("a.m", "p.m"):
        return follows.casefold() in _AFTER_TIMES
    initial = len(word.replace(".", "")) <= 2 and word[-1:].isalpha() and _INITIAL.search(before)
    return bool(word in _CLOSING or initial) and follows.casefold() not in _STARTS


def _is_ordinal(before: str, follows: str) -> bool:
    """Whether a number before a full stop is a German ordinal."""
    if not before[-1:].isdigit() or follows in _STARTS:
        return False
    of_month = follows in _MONTHS and not before[-3:].isdigit() and before[-2:-1] not in (".", ",")
    return of_month or bool(_ORDINAL.search(before))


def _piece(text: str, start: int, end: int) -> Iterator[Sentence]:
    while start < end:
        piece = text[start : end if end - start <= _LONGEST else _cut(text, start)]
        if _SAYS.search(piece):
            left = start + len(piece) - len(piece.lstrip())
            yield Sentence(piece.strip(), left, left + len(piece.strip()))
        start += len(piece)


def _cut(text: str, start: int) -> int:
    """Where a sentence that is too long is cut: behind its last line, or else its last word."""
    most = start + _LONGEST
    found = (text.rfind(space, start + _LONGEST // 2, most) for space in "\n ")
    return next((place + 1 for place in found if place >= 0), most)
