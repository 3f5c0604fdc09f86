"""What a claim has that the texts do not have or say otherwise: numbers, names, negations."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from steelyard.judge.local._material import Line, Text
from steelyard.judge.local.verifying._checks import written_apart
from steelyard.judge.local.verifying._finding import Penalties
from steelyard.judge.local.verifying._signals import share
from steelyard.judge.local.words import Word, fold, lists, rule, stem

# Korean and Turkish put the negation into the verb, which a list of words cannot hold.
_HANGUL = re.compile(r"(?:않|없|못하|아니|아닙)\w*|못|안")
_TURKISH = re.compile(r"\w{2,}(?:m[ae]z(?:l[ae]r)?|m[ıiuü]yor\w*|m[ae]d[ıi](?:l[ae]r)?)")
_TURKISH_LETTERS = frozenset("ığşİĞŞ")


def first_negation(words: Sequence[Word]) -> int | None:
    """The place of the first negation in a clause. "Not only" is not one, nor is the "never" of a title."""
    return next((at for at in range(len(words)) if denies(words[at]) and _is_meant(words, at)), None)


def denies(word: Word) -> bool:
    """Whether a word by itself is a negation."""
    surface = word.surface
    if surface.isascii():
        return surface.casefold() in lists().negations or surface == "not"
    folded = fold(surface) in lists().negations
    return folded or _HANGUL.fullmatch(surface) is not None or _is_turkish(surface)


def prefixes(words: Sequence[Word], at: int) -> bool:
    """Whether the negation at a place turns round the next word alone: "non-toxic" in English."""
    return words[at].surface.casefold() == "non" and at + 1 < len(words) and _is_english(words)


def _is_meant(words: Sequence[Word], at: int) -> bool:
    """Whether what is a negation by itself is one where it stands."""
    surface = words[at].surface
    lower = surface.casefold()
    after = words[at + 1] if at + 1 < len(words) else None
    # "No 5" is a number, and "not only" says that it is so.
    numbered = lower == "no" and after is not None and after.surface[0].isdigit()
    if numbered or (after and after.surface.casefold() in rule("not_only")):
        return False
    if lower in rule("qualifies") and at and words[at - 1].surface.casefold() in rule("before_qualities"):
        return False
    if lower in rule("ambiguous") and _is_english(words) and not prefixes(words, at):
        return False
    return not _is_named(surface, after, at)


def _is_named(surface: str, after: Word | None, at: int) -> bool:
    """Whether a word is part of a title: capitalised inside of a clause, or before another capital."""
    if not surface[0].isupper() or surface.isupper():
        return False
    titled = after is not None and after.surface[0].isupper()
    return at > 0 or (titled and surface not in ("No", "Not"))


def _is_english(words: Sequence[Word]) -> bool:
    return any(word.surface.casefold() in rule("english") for word in words)


def _is_turkish(surface: str) -> bool:
    return not _TURKISH_LETTERS.isdisjoint(surface) and _TURKISH.fullmatch(surface.casefold()) is not None


_CLOSE = 0.6
"""Share of a claim that a sentence must have before a negation in one of the two counts."""
_TELLING = 3.5
"""Weight from which a word can be what is negated; articles, pronouns and auxiliaries are below it."""


def penalties(
    claim: Line,
    lines: Sequence[Line],
    texts: Sequence[Text],
    weights: Mapping[str, float],
    known: frozenset[str],
) -> Penalties:
    """What must not differ and does; `lines` are the window, `known` the stems of all texts."""
    return Penalties(
        missing_numbers=_missing_numbers(claim, texts, known),
        missing_names=_missing_names(claim, texts, known),
        negation_flip=_negation_flip(claim, lines, weights),
    )


def _missing(claim: Line, kind: str, known: frozenset[str]) -> tuple[str, ...]:
    return tuple(
        dict.fromkeys(word.surface for word in claim.words if word.kind == kind and word.stem not in known)
    )


def _missing_numbers(claim: Line, texts: Sequence[Text], known: frozenset[str]) -> tuple[str, ...]:
    """Numbers that the texts do not have; a bare number may be one of a quantity, and the other way round."""
    raw = frozenset[str]().union(*(text.raw for text in texts))
    return tuple(
        dict.fromkeys(
            word.surface
            for word in claim.words
            if word.kind == "number"
            and word.stem not in known
            and word.raw not in known
            and word.stem not in raw
            and not written_apart(word.surface, texts)
        )
    )


def _missing_names(claim: Line, texts: Sequence[Text], known: frozenset[str]) -> tuple[str, ...]:
    """Names that the texts do not have, neither in full nor as the initials of neighbouring names."""
    missing = _missing(claim, "name", known)
    # Initials are looked up only for what may be some: they are made of every sentence.
    if not any(_is_acronym(name) for name in missing):
        return missing
    initials = {"".join(run) for text in texts for line in text.lines for run in _capitals(line)}
    return tuple(name for name in missing if not any(name.replace(".", "") in run for run in initials))


def _is_acronym(name: str) -> bool:
    return 2 <= len(name.replace(".", "")) <= 6 and name.isupper()


def _capitals(line: Line) -> list[list[str]]:
    """Initials of each run of capitalised words, little words skipped: `Bank of England`."""
    runs: list[list[str]] = [[]]
    for word in line.words:
        if word.surface[0].isupper():
            runs[-1].append(word.surface[0])
        # "of", "and", "the" are left out of initials, so they do not end a run of capitals.
        elif len(word.surface) > 3:
            runs.append([])
    return runs


def _negation_flip(claim: Line, lines: Sequence[Line], weights: Mapping[str, float]) -> bool:
    """Whether just one of a clause of the claim and what the evidence says of the same is negated.

    What the evidence negates are the telling words of its negated clauses that no other clause of it has: in
    "the mill was flooded, but the church was not" that is the church.
    """
    # A table's row has no clauses, and its cells of "no" deny nothing.
    close = [line for line in lines if line.row is None and share(weights, line.stems) >= _CLOSE]
    there = frozenset[str]().union(*(line.stems for line in close))
    parts = [part for line in close for part in _parts(line, claim.stems)]
    return any(_turned_round(said, parts) for said in _parts(claim, there))


def _parts(line: Line, there: frozenset[str]) -> list[_Part]:
    return [_polar(part, there) for clause in line.clauses for part in _cut(clause)]


def _turned_round(said: _Part, parts: Sequence[_Part]) -> bool:
    """Whether a clause of the claim denies what the evidence states, or states what it denies."""
    denied = set[str]().union(*(part.words for part in parts if part.negated))
    stated = set[str]().union(*(part.words for part in parts if not part.negated))
    if said.negated:
        return bool(said.words & stated) and not said.words & denied
    against = said.words & (denied - stated)
    return bool(against) and not _said_elsewhere(said.words, against, parts)


def _cut(clause: Sequence[Word]) -> list[Sequence[Word]]:
    """A clause, and a word of it that is negated by itself."""
    at = first_negation(clause)
    if at is None or not prefixes(clause, at):
        return [clause]
    return [clause[at : at + 2], [*clause[:at], *clause[at + 2 :]]]


@dataclass(frozen=True, slots=True, repr=False)
class _Part:
    """A clause: its telling words without negations, those before the negation, and whether there is one."""

    words: set[str]
    subject: set[str]
    negated: bool


def _polar(clause: Sequence[Word], there: frozenset[str]) -> _Part:
    """A clause, with "unknown" as "not known" where the other side says "known"."""
    at = first_negation(clause)
    negated, place = at is not None, len(clause) if at is None else at
    meant = clause[place:] if negated and clause[place].surface.lower() in rule("of_things") else clause
    words = {w.stem for w in meant if w.weight >= _TELLING and not denies(w)}
    for word in meant:
        bare = _without_un(word.stem)
        if bare in there and word.stem not in there:
            words = words - {word.stem} | {bare}
            negated = not negated
    return _Part(words, {word.stem for word in clause[:place]}, negated)


def _said_elsewhere(words: set[str], against: set[str], parts: Sequence[_Part]) -> bool:
    """Whether the evidence denies something else of the same subject, and says this of it in another clause.

    So "interns can take unpaid days" is not denied by "interns are not paid, but they can take unpaid days".
    """
    denying = [part for part in parts if part.negated and words & part.words]
    stated = max((len(words & part.words) for part in parts if not part.negated), default=0)
    return stated > len(against) and all(words & part.words <= against & part.subject for part in denying)


def _without_un(word: str) -> str:
    """What "unknown" turns round; nothing of most words."""
    return (
        # "Uncle" and "under" are words of their own, and "unless" is a conjunction.
        stem(word.removeprefix("un")) if word.startswith("un") and len(word) > 5 and word != "unless" else ""
    )
