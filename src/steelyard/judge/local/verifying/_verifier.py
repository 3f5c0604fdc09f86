"""The lexical verifier: how well some texts carry a sentence, and what speaks against it.

Six signals, equally weighted, say how much of the claim is found; penalties and checks name what must not
differ. Nothing here was fitted: learned combinations of the same signals did not carry over from one data set
to the next.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence

from steelyard.judge.local._material import Line, Text
from steelyard.judge.local.verifying._checks import mismatches
from steelyard.judge.local.verifying._finding import Finding
from steelyard.judge.local.verifying._penalties import penalties
from steelyard.judge.local.verifying._signals import measure
from steelyard.judge.local.verifying._windows import find, lines_of, trim

VERSION = "6"
"""Goes up when the same texts would get another score."""


def verify(claim: Line, texts: Sequence[Text]) -> Generator[None, None, Finding]:
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
    known = frozenset[str]().union(*(text.stems for text in texts))
    # Later sentences say "it" of what the first one names.
    opening = texts[window.text].lines[0]
    topic = frozenset(word.stem for word in opening.words if word.kind == "name")
    signals = yield from measure(claim, lines, weights, known, topic)
    yield
    missed = penalties(claim, lines, texts, weights, known)
    # Another number in the place of the claim's is a contradiction; a missing one is only silence.
    rival = bool(missed.missing_numbers) and any(
        word.kind == "number" and word.stem not in claim.stems for line in lines for word in line.words
    )
    yield
    return Finding(
        signals=signals,
        penalties=missed,
        window=trim(window, claim, texts),
        rival_number=rival,
        tabular=any(line.names(claim) for line in lines),
        mismatches=mismatches(claim, lines),
    )
