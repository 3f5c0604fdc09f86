"""The lexical verifier: how well some texts carry a sentence, and what speaks against it.

Six signals, equally weighted, say how much of the claim is found; what must not differ (numbers, names,
negations, and what `_checks` compares) forbids a yes. Nothing here was fitted: learned combinations of the
same signals did not carry over from one data set to the next.
"""

from __future__ import annotations

from collections.abc import Container, Generator, Sequence

from steelyard.judge.local._checks import mismatches, written_apart
from steelyard.judge.local._finding import Finding
from steelyard.judge.local._material import Known, Line, ReadText
from steelyard.judge.local._negations import is_turned
from steelyard.judge.local._signals import measure
from steelyard.judge.local._windows import find, lines_of, trim

VERSION = "7"
"""Goes up when the same texts would get another score."""


def verify(claim: Line, texts: Sequence[ReadText]) -> Generator[None, None, Finding]:
    """Hold one claim against some texts.

    Args:
        claim: The sentence.
        texts: What it is checked against, together.

    Yields:
        Between slices of work.
    """
    weights = {word.stem: word.weight for word in claim.words}
    window = yield from find(claim, weights, texts)
    if window is None:
        return Finding()
    yield
    lines = lines_of(window, texts)
    known = Known(texts)
    # Later sentences say "it" of what the first one names.
    opening = texts[window.text].lines[0]
    topic = frozenset(word.stem for word in opening.words if word.kind == "name")
    signals = yield from measure(claim, lines, weights, known, topic)
    yield
    numbers = _missing_numbers(claim, texts, known)
    names = yield from _missing_names(claim, texts, known)
    yield
    turned = is_turned(claim, lines, weights)
    yield
    different = yield from mismatches(claim, lines)
    return Finding(
        signals=signals,
        window=trim(window, claim, texts),
        missing_numbers=numbers,
        missing_names=names,
        negation_flip=turned,
        # Another number in the place of the claim's is a contradiction; a missing one is only silence.
        rival_number=bool(numbers)
        and any(w.kind == "number" and w.stem not in claim.stems for line in lines for w in line.words),
        in_row=any(line.names(claim) for line in lines),
        mismatches=different,
    )


def _missing_numbers(claim: Line, texts: Sequence[ReadText], known: Container[str]) -> tuple[str, ...]:
    """Numbers that the texts do not have; a bare number may be one of a quantity, and the other way round."""
    missing = (
        word.surface
        for word in claim.words
        if word.kind == "number" and word.stem not in known and word.raw not in known
        if not any(word.stem in text.raw for text in texts)
        if not written_apart(word.surface, texts)
    )
    return tuple(dict.fromkeys(missing))


def _missing_names(
    claim: Line, texts: Sequence[ReadText], known: Container[str]
) -> Generator[None, None, tuple[str, ...]]:
    """Names that the texts do not have, neither in full nor as the initials of neighbouring names."""
    missing = dict.fromkeys(w.surface for w in claim.words if w.kind == "name" and w.stem not in known)
    # Initials are looked up only for what may be some: they are made of every sentence.
    if not any(2 <= len(name.replace(".", "")) <= 6 and name.isupper() for name in missing):
        return tuple(missing)
    runs: list[str] = []
    for line in (line for text in texts for line in text.lines):
        runs.append(_initials(line))
        yield
    return tuple(name for name in missing if not any(name.replace(".", "") in run for run in runs))


def _initials(line: Line) -> str:
    """Initials of capitalised words, runs of them apart; little words are skipped: `Bank of England`."""
    return "".join(
        word.surface[0] if word.surface[0].isupper() else " "
        for word in line.words
        if word.surface[0].isupper() or len(word.surface) > 3
    )
