"""How hard a page is to read."""

from __future__ import annotations

import re

_CODE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")
_WORD = re.compile(r"[A-Za-z]+(?:'[a-z]+)?")


def prose(page: str) -> list[str]:
    """The sentences of a page in Markdown, without code, tables and headings."""
    text = _LINK.sub(r"\1", _CODE.sub("", page))
    lines = [line for line in text.splitlines() if not re.match(r"\s*(?:[|#>]|!\[|```)", line)]
    # A list's points and paragraphs end where they end, whatever stands there.
    whole = re.sub(r"\n\s*(?:[-*]|\d+\.) |\n\s*\n", ". ", "\n".join(lines))
    whole = re.sub(r"`[^`]*`", "code", whole)
    return [one for one in re.split(r"(?<=[.!?])\s+", whole) if _WORD.search(one)]


def reading_grade(page: str) -> float:
    """The Flesch-Kincaid grade of a page's prose (Kincaid and others 1975): years of school, about."""
    sentences = prose(page)
    words = [word for sentence in sentences for word in _WORD.findall(sentence)]
    syllables = sum(map(_syllables, words))
    return 0.39 * len(words) / len(sentences) + 11.8 * syllables / len(words) - 15.59


def _syllables(word: str) -> int:
    """Groups of vowels, without a silent e at the end."""
    short = re.sub(r"(?<=[^aeiouyl])e$|(?<=[^aeiouytd])ed$", "", word.lower())
    return max(len(re.findall(r"[aeiouy]+", short)), 1)
