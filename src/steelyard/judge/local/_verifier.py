"""The lexical verifier: how well some texts carry a sentence, and what speaks against it.

Six signals, equally weighted, say how much of the claim is found; four penalties name what must not differ.
Nothing here was fitted: learned combinations of the same signals did not carry over from one data set to the
next.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Iterable, Sequence
from dataclasses import asdict, dataclass, fields

from steelyard.judge.local._material import Line, Text
from steelyard.judge.local._opposites import TELLING, negates, opposites
from steelyard.judge.local._text import Word
from steelyard.judge.local._turns import Turn, turns

VERSION = "2"
"""Goes up when the same texts would get another score."""

SPAN = 3
"""Sentences in a window."""
ENOUGH = 0.66
"""Score from which a claim is supported. Sentences of people's judgements (the development sets of
docs/judges.md) are supported more often than not from about here."""
_CLOSE = 0.6
"""Share of a claim that a sentence must have before a negation in one of the two counts."""
_FORBIDDEN = 0.45
"""Least probability of a claim whose words are there while something forbids a yes."""
OVERLAP = 0.5
"""Share of a claim that a text must say before a difference counts as saying the opposite."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Signals:
    """How much of the claim is there; each in 0..1, words weighted by what they tell."""

    window: float = 0.0
    """Share of the claim's words in the best window."""
    everywhere: float = 0.0
    """Share of the claim's words anywhere in the texts."""
    pairs: float = 0.0
    """Share of the claim's neighbouring words that are neighbours in the window."""
    sequence: float = 0.0
    """Share of the claim's words in the longest common subsequence with the window."""
    soft: float = 0.0
    """Cosine of each word of the claim with the most similar word of the window, averaged."""
    cosine: float = 0.0
    """Cosine of the claim with the most similar sentence of the window, or with all of it."""

    @property
    def mean(self) -> float:
        """All six with equal weights."""
        values: list[float] = [getattr(self, field.name) for field in fields(self)]
        return sum(values) / len(values)


@dataclass(frozen=True, kw_only=True, slots=True)
class Penalties:
    """What the texts do not have or say otherwise."""

    missing_numbers: tuple[str, ...] = ()
    """Numbers of the claim that are nowhere in the texts."""
    missing_names: tuple[str, ...] = ()
    """Names of the claim that are nowhere in the texts."""
    negation_flip: bool = False
    """Whether just one of claim and evidence is negated."""
    antonym_flip: tuple[str, str] | None = None
    """A word of the claim and its opposite in the window."""

    @property
    def total(self) -> float:
        """What is taken off the mean of the signals."""
        return (
            0.15 * bool(self.missing_numbers)
            + 0.15 * bool(self.missing_names)
            + 0.10 * self.negation_flip
            + 0.10 * bool(self.antonym_flip)
        )


@dataclass(frozen=True, slots=True)
class Window:
    """Neighbouring sentences of one text."""

    text: int
    """Index of the text."""
    first: int
    """Index of its first sentence."""
    last: int
    """One past its last sentence."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """What the verifier found about one claim."""

    signals: Signals = Signals()
    penalties: Penalties = Penalties()
    window: Window | None = None
    """Where most of the claim is; None where nothing of it is found anywhere."""

    rival_number: bool = False
    """Whether the nearest sentence has another number where the claim's is missing."""
    turns: tuple[Turn, ...] = ()
    """What else turns the claim round."""

    @property
    def score(self) -> float:
        """Mean of the signals minus the penalties, in 0..1."""
        return min(1.0, max(0.0, self.signals.mean - self.penalties.total))

    @property
    def probability(self) -> float:
        """The score on a scale where a yes begins at one half; below that where something forbids it."""
        found = _on_scale(self.score)
        return found if self.holds else min(found, _FORBIDDEN + (0.499 - _FORBIDDEN) * self.score)

    @property
    def loosely(self) -> float:
        """As `probability`, for a claim whose words stand in another order by nature: a question's."""
        found = self.signals
        return _on_scale((found.window + found.everywhere + found.soft) / 3)

    @property
    def holds(self) -> bool:
        """Whether nothing that was found forbids a yes.

        However much of the rest is there, a claim is not supported while one of its numbers or names is
        nowhere in the texts, or while the window says the opposite: a sentence in which one year was
        invented reads just like its source.
        """
        missing = self.penalties.missing_numbers or self.penalties.missing_names
        return not missing and not self.turns and self.conflict < 0.5

    @property
    def conflict(self) -> float:
        """How much the window says the opposite: its likeness to the claim, where something is turned."""
        opposite = any(turn.opposite for turn in self.turns)
        turned = self.penalties.negation_flip or self.penalties.antonym_flip or self.rival_number or opposite
        return self.signals.soft if turned and self.signals.window >= OVERLAP else 0.0

    @property
    def reason(self) -> str:
        """What was found, in a few words."""
        wrong = [f"number {number!r} is nowhere" for number in self.penalties.missing_numbers]
        wrong += [f"name {name!r} is nowhere" for name in self.penalties.missing_names]
        if self.penalties.negation_flip:
            wrong.append("one of claim and evidence is negated")
        if self.penalties.antonym_flip:
            wrong.append("{!r} against {!r}".format(*self.penalties.antonym_flip))
        wrong += [turn.reason for turn in self.turns]
        return "; ".join(
            [f"{self.signals.window:.0%} of its words are found together, rare ones counting more", *wrong]
        )

    @property
    def notes(self) -> dict[str, object]:
        """Everything, for the evidence of a verdict."""
        rounded = {name: round(value, 3) for name, value in asdict(self.signals).items()}
        return {**asdict(self.penalties), "signals": rounded}


def _on_scale(score: float) -> float:
    """A score as a probability: straight from 0 to one half at `ENOUGH`, and on to 1."""
    if score < ENOUGH:
        return score / ENOUGH / 2
    return 0.5 + (score - ENOUGH) / (1 - ENOUGH) / 2


def verify(claim: Line, texts: Sequence[Text]) -> Generator[None, None, Finding]:
    """Hold one claim against some texts.

    Args:
        claim: The sentence.
        texts: What it is held against, together.

    Yields:
        Between slices of work.
    """
    weights = {word.stem: word.weight for word in claim.words}
    total = sum(weights.values())
    window = yield from _best(claim, weights, texts)
    if window is None:
        return Finding()
    yield
    lines = texts[window.text].lines[window.first : window.last]
    known = frozenset[str]().union(*(text.stems for text in texts))
    stems = frozenset[str]().union(*(line.stems for line in lines))
    pairs, sequence = _pairs(claim, lines), _sequence(claim, lines)
    for line in (claim, *lines):
        yield
        line.look_up()
    yield
    signals = Signals(
        window=_share(weights, stems, total),
        everywhere=_share(weights, known, total),
        pairs=pairs,
        sequence=sequence,
        soft=_soft(claim, lines, stems),
        cosine=_cosine(claim, lines),
    )
    yield
    penalties = Penalties(
        missing_numbers=_missing_numbers(claim, texts, known),
        missing_names=_missing_names(claim, texts, known),
        negation_flip=_negation_flip(claim, lines, weights),
        antonym_flip=_antonym_flip(claim, stems),
    )
    rival = bool(penalties.missing_numbers) and any(
        word.kind == "number" and word.stem not in claim.stems for line in lines for word in line.words
    )
    shown = _trim(window, claim, texts)
    yield
    return Finding(
        signals=signals,
        penalties=penalties,
        window=shown,
        rival_number=rival,
        turns=tuple(turns(claim, lines, known)),
    )


def _best(
    claim: Line, weights: dict[str, float], texts: Sequence[Text]
) -> Generator[None, None, Window | None]:
    """The window with most of the claim's words; among equals the one that reads most like the claim."""
    wanted = claim.stems
    most = 0.0
    equals: list[Window] = []
    for number, text in enumerate(texts):
        hits = [wanted & line.stems for line in text.lines]
        for first in range(max(1, len(hits) - SPAN + 1) if any(hits) else 0):
            found = frozenset[str]().union(*hits[first : first + SPAN])
            score = math.fsum([weights[stem] for stem in found])  # the same in whatever order a set has
            if score > most:
                most, equals = score, []
            if score == most > 0:
                equals.append(Window(number, first, min(first + SPAN, len(hits))))
            if first % _STRETCH == 0:
                yield
        yield
    if len(equals) < 2:
        return equals[0] if equals else None
    best, nearest = equals[0], -1.0
    for window in equals[:_EQUALS]:
        lines = texts[window.text].lines[window.first : window.last]
        likeness = max([float(line.mean @ claim.mean) for line in lines])
        if likeness > nearest:
            best, nearest = window, likeness
        yield
    return best


_STRETCH = 50
"""Windows that are counted in one slice."""
_OF_THINGS = frozenset({"no", "without", "ohne", "sans", "sin", "senza", "sem"})
"""Words that negate what follows them and not the sentence they stand in."""
_EQUALS = 50
"""Windows with equally many words that are compared more closely."""


def _trim(window: Window, claim: Line, texts: Sequence[Text]) -> Window:
    """The window without the sentences at its ends that have nothing of the claim the others lack."""
    hits = [claim.stems & line.stems for line in texts[window.text].lines[window.first : window.last]]
    first, last = 0, len(hits)
    while last - first > 1:
        if hits[last - 1] <= frozenset[str]().union(*hits[first : last - 1]):
            last -= 1
        elif hits[first] <= frozenset[str]().union(*hits[first + 1 : last]):
            first += 1
        else:
            break
    return Window(window.text, window.first + first, window.first + last)


def _share(weights: dict[str, float], stems: frozenset[str], total: float) -> float:
    return sum(weight for stem, weight in weights.items() if stem in stems) / total


def _pairs(claim: Line, lines: Sequence[Line]) -> float:
    pairs = [
        (a.stem, b.stem, a.weight + b.weight) for a, b in zip(claim.words, claim.words[1:], strict=False)
    ]
    if not pairs:
        return float(any(claim.words[0].stem in line.stems for line in lines))
    there = {(a.stem, b.stem) for line in lines for a, b in zip(line.words, line.words[1:], strict=False)}
    return sum(weight for a, b, weight in pairs if (a, b) in there) / sum(weight for _, _, weight in pairs)


def _sequence(claim: Line, lines: Sequence[Line]) -> float:
    """Longest common subsequence by dynamic programming, one row per word of the claim."""
    import numpy as np

    there = [word.stem for line in lines for word in line.words]
    places: dict[str, list[int]] = {}
    for place, stem in enumerate(there):
        places.setdefault(stem, []).append(place)
    row = np.zeros(len(there) + 1)
    for word in claim.words:
        at = places.get(word.stem)
        if at is None:
            continue
        index = np.array(at)
        longer = row.copy()
        longer[index + 1] = np.maximum(row[index + 1], row[index] + word.weight)
        row = np.maximum.accumulate(longer)
    return float(row[-1]) / sum(word.weight for word in claim.words)


def _soft(claim: Line, lines: Sequence[Line], stems: frozenset[str]) -> float:
    import numpy as np

    there = np.concatenate([line.vectors for line in lines])
    nearest = (claim.vectors @ there.T).max(axis=1).clip(0.0, 1.0)
    total = 0.0
    for word, similarity in zip(claim.words, nearest.tolist(), strict=True):
        total += word.weight * (1.0 if word.stem in stems else similarity)
    return total / sum(word.weight for word in claim.words)


def _cosine(claim: Line, lines: Sequence[Line]) -> float:
    import numpy as np

    means = np.stack([line.mean for line in lines])
    whole = means.sum(axis=0)
    length = float(np.linalg.norm(whole))
    together = float(whole @ claim.mean) / length if length else 0.0
    return min(1.0, max(0.0, together, float((means @ claim.mean).max())))


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
            and not (word.raw in known if word.raw else word.stem in raw)
        )
    )


def _missing_names(claim: Line, texts: Sequence[Text], known: frozenset[str]) -> tuple[str, ...]:
    """Names that the texts do not have, neither in full nor as the initials of neighbouring names."""
    missing = _missing(claim, "name", known)
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
        elif len(word.surface) > 3:
            runs.append([])
    return runs


def _negation_flip(claim: Line, lines: Sequence[Line], weights: dict[str, float]) -> bool:
    """Whether just one of a clause of the claim and what the evidence says of the same is negated.

    What the evidence negates are the telling words of its negated clauses that no other clause of it has: in
    "the mill was flooded, but the church was not" that is the church.
    """
    total = sum(weights.values())
    close = [line for line in lines if _share(weights, line.stems, total) >= _CLOSE]
    parts = [part for line in close for part in line.clauses]
    denied = _stems_of(_negated(part) for part in parts if negates(part))
    stated = _stems_of(part for part in parts if not negates(part))
    for clause in claim.clauses:
        words = _stems_of([clause])
        if negates(clause):
            if words & stated and not words & denied:
                return True
        elif words & (denied - stated):
            return True
    return False


def _negated(clause: Sequence[Word]) -> Sequence[Word]:
    """What a clause negates: all of it, or what follows a "no" or "without" that only denies a thing."""
    first = next(index for index, word in enumerate(clause) if negates([word]))
    return clause[first:] if clause[first].surface.lower() in _OF_THINGS else clause


def _stems_of(clauses: Iterable[Sequence[Word]]) -> set[str]:
    """The telling words of some clauses, negations aside."""
    return {w.stem for part in clauses for w in part if w.weight >= TELLING and not negates([w])}


def _antonym_flip(claim: Line, stems: frozenset[str]) -> tuple[str, str] | None:
    """A word of the claim that the window lacks while it has the opposite."""
    for word in claim.words:
        if word.stem not in stems:
            for opposite in sorted(opposites(word.stem) - claim.stems):
                if opposite in stems:
                    return (word.surface, opposite)
    return None
