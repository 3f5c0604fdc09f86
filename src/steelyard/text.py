"""Sentences of a text, with their places. The one splitter that metrics and the local judge share."""

from __future__ import annotations

import re
from dataclasses import dataclass

__all__ = ["Sentence", "sentences"]


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence and where it stands: `source[start:end] == text`."""

    text: str
    start: int
    end: int


_ABBREVIATIONS = frozenset(
    [
        "mr",
        "mrs",
        "ms",
        "dr",
        "prof",
        "sr",
        "jr",
        "st",
        "vs",
        "etc",
        "e.g",
        "i.e",
        "cf",
        "al",
        "fig",
        "no",
        "vol",
        "pp",
        "ca",
        "approx",
        "inc",
        "ltd",
        "co",
        "corp",
        "u.s",
        "u.k",
        "a.m",
        "p.m",
        "jan",
        "feb",
        "mar",
        "apr",
        "jun",
        "jul",
        "aug",
        "sep",
        "sept",
        "oct",
        "nov",
        "dec",
        "gen",
        "col",
        "lt",
        "sgt",
        "capt",
        "rev",
        "hon",
        "gov",
        "sen",
        "rep",
    ]
)
# A full stop ends a sentence before white space; CJK and Devanagari marks end one wherever they stand;
# an empty line or a bullet on a new line ends one without any mark.
_END = re.compile(
    r"(?P<mark>[.!?…]+)(?P<close>[\"'”’»)\]]*)(?=\s|$)"
    r"|[。！？।॥]+[」』”’）]*"
    r"|\n\s*\n|\n(?=\s*(?:[-*•–]|\d{1,3}[.)])\s)"
)
_INITIAL = re.compile(r"(?:^|[\s(])(?:\w\.)*\w$")


def sentences(text: str) -> list[Sentence]:
    """Split a text into sentences.

    Args:
        text: Any text, in any script that marks its sentences.

    Returns:
        Sentences in order, without surrounding white space; pieces without a letter or digit are left out.
    """
    found: list[Sentence] = []
    start = 0
    for match in _END.finditer(text):
        if match["mark"] == "." and not _ends(text, match):
            continue
        _keep(found, text, start, match.end())
        start = match.end()
    _keep(found, text, start, len(text))
    return found


def _ends(text: str, match: re.Match[str]) -> bool:
    """Whether a single full stop ends a sentence rather than an abbreviation or an initial."""
    rest = text[match.end() : match.end() + 3].lstrip()
    if rest and rest[0].islower():
        return False
    before = text[max(0, match.start() - 12) : match.start()]
    word = before.split()[-1].lstrip("(\"'“‘").lower() if before.split() else ""
    if word in _ABBREVIATIONS:
        return not rest
    initial = _INITIAL.search(before)
    return not (initial and word and word[-1].isalpha() and len(word.replace(".", "")) <= 2 and rest)


def _keep(found: list[Sentence], text: str, start: int, end: int) -> None:
    piece = text[start:end]
    if any(map(str.isalnum, piece)):
        left = start + len(piece) - len(piece.lstrip())
        found.append(Sentence(piece.strip(), left, left + len(piece.strip())))
