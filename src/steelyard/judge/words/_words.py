"""Words as the verifier compares them: folded, stemmed, weighed, with their places in the text."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache

from steelyard.judge.words._lists import INVISIBLE, MARKS, fold, rule, visible
from steelyard.judge.words._numbers import GROUPED, completes, figure, is_figure, with_units
from steelyard.judge.words._word import NUMBER, RARE, TELLING, Kind, Located, Word, stem, weight

# Scripts without spaces between words are compared character by character, but for negations of several.
_SPACELESS = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_SPELLED = "ませんでした|ません|(?<![少危汚切])(?:なかった|ない)|ไม่|没有|沒有|不仅|不僅|不但|非常|未来|未來"
_LETTER = rf"[^\W\d_{_SPACELESS}{INVISIBLE}]"
# The first alternative is a shortcut for plain words; the last would match them too.
_PATTERN = re.compile(
    rf"[Nn]o one\b|[A-Za-z]++(?![\w'’.{INVISIBLE}{MARKS}])|{_SPELLED}|[{_SPACELESS}]"
    rf"|(?:(?<![\w)\]-])[-−](?=\d))?(?:{GROUPED}|\d[\d{INVISIBLE}]*(?:[.,:/٫٬]\d+)*)"
    r"|(?<!\w)[^\W\d_](?:\.[^\W\d_](?!\w))+"
    rf"|{_LETTER}+(?:(?:[{MARKS}]|[{INVISIBLE}]++(?=[^\W\d_])|['’](?=[^\W\d_])){_LETTER}*)*"
)
_CONTRACTED = {"can't": "can", "won't": "will", "shan't": "shall", "ain't": "is"}
_AMERICA = frozenset({"US", "USA"})
"""The one acronym that is a pronoun in small letters."""
_LITTLE = 2.0
"""What one of the commonest words of other languages tells: as much as "with"."""
_MARKER = re.compile(r"\s*\(?\d{1,2}[.)]\s+(?=\S)")
_ADVERB = re.compile(r"[a-z]{4}(?:ally|[ai]bly|edly|ingly|ously|[ae]ntly|[ai]tely|ively|fully|arly)$")


def words(text: str, *, proper: Callable[[str], bool] = lambda word: False) -> list[Word]:
    """The words of a sentence, in order; arguments as for `located`."""
    return [word for word, _, _ in located(text, proper=proper)]


def located(
    text: str, *, proper: Callable[[str], bool] = lambda word: False, measured: bool = True
) -> list[Located]:
    """The words of a sentence and where they stand.

    Args:
        text: A sentence: names are told from capitals, and the first word's capital says nothing by itself.
        proper: Whether a capitalised word that opens a sentence is a name.
        measured: Whether a number and its unit become one number.
    """
    found: list[Located] = []
    counted = False
    marker = _MARKER.match(text)
    for match in _PATTERN.finditer(text, marker.end() if marker else 0):
        raw = match[0]
        read = _read(raw if raw.isascii() else visible(raw))
        if not read:
            continue
        word, (start, end) = read[0], match.span()
        if not found:
            word = _opening(word, proper)
        elif counted and (whole := completes(text, found[-1], word, start, end)) is not None:
            found[-1] = whole
            continue
        counted = counted or is_figure(word)
        found.append((word, start, end))
        found.extend([(more, start, end) for more in read[1:]])
    return with_units(text, found) if measured and counted else found


def _opening(word: Word, proper: Callable[[str], bool]) -> Word:
    """The first word of a sentence, which is a name only if it is rare or never written otherwise."""
    if word.kind != "name":
        return word
    named = word.weight >= RARE or proper(word.surface)
    return word if named and not _ADVERB.search(word.surface) else word._replace(kind="word")


@lru_cache(maxsize=32_768)
def _read(surface: str) -> tuple[Word, ...]:
    """A written word as what it is compared by: none where nothing is left of it, two for `didn't`."""
    surface = "nobody" if surface[2:] == " one" else surface
    if surface[0].isdigit():
        return (Word(figure(surface), surface, NUMBER, "number"),)
    if surface[0] in "-−":
        return (Word(f"-{figure(surface[1:])}", surface, NUMBER, "number"),)
    if surface.replace(".", "") in _AMERICA:
        return (Word("america", surface, weight("america"), "name"),)
    folded = fold(surface)
    if not folded:
        return ()
    if folded.endswith("n't") and len(folded) > 3:
        verb = _CONTRACTED.get(folded, folded[:-3])
        return (
            Word(stem(verb), surface[:-3], weight(verb), "word"),
            Word("not", "not", weight("not"), "word"),
        )
    tells = _LITTLE if folded in rule("common") and not _is_named(surface, folded) else weight(folded)
    return (Word(stem(folded), surface, tells, _kind(surface, folded, tells)),)


def _is_named(surface: str, folded: str) -> bool:
    """Whether a little word of another language is an acronym or part of a name: "MIT", "Los Angeles"."""
    return surface.isupper() or (folded in rule("particles") and surface[0].isupper())


def _kind(surface: str, folded: str, tells: float) -> Kind:
    if folded in rule("counts"):
        return "number"
    return "name" if len(surface) > 1 and surface[0].isupper() and tells >= TELLING else "word"
