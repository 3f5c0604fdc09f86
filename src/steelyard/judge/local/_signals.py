"""How much of a claim some sentences have: six measures, each in 0..1."""

from __future__ import annotations

from collections.abc import Container, Generator, Mapping, Sequence

from steelyard.judge._vectors import nearest
from steelyard.judge.local._finding import Signals
from steelyard.judge.local._material import Line


def measure(
    claim: Line,
    lines: Sequence[Line],
    weights: Mapping[str, float],
    known: Container[str],
    topic: frozenset[str],
) -> Generator[None, None, Signals]:
    """All six; `topic` names what the text is about, which later sentences leave out or call "it"."""
    stems = topic.union(*(line.stems for line in lines))
    pairs, sequence = _pairs(claim, lines), _sequence(claim, lines)
    # Vectors are looked up in slices: the tokenizer holds the interpreter while it reads.
    for line in (claim, *lines):
        yield
        line.look_up()
    yield
    return Signals(
        window=share(weights, stems),
        everywhere=share(weights, known),
        pairs=pairs,
        sequence=sequence,
        soft=_soft(claim, lines, stems),
        cosine=_cosine(claim, lines),
    )


def share(weights: Mapping[str, float], stems: Container[str]) -> float:
    """What part of some words is there, by what they tell."""
    return sum(weight for stem, weight in weights.items() if stem in stems) / sum(weights.values())


def _pairs(claim: Line, lines: Sequence[Line]) -> float:
    pairs = [
        (a.stem, b.stem, a.weight + b.weight) for a, b in zip(claim.words, claim.words[1:], strict=False)
    ]
    if not pairs:
        # A claim of one word has no neighbours; that it is there takes their place.
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
        # A word that is nowhere changes no row, and most words of a false claim are nowhere.
        if at is None:
            continue
        index = np.array(at)
        longer = row.copy()
        longer[index + 1] = np.maximum(row[index + 1], row[index] + word.weight)
        row = np.maximum.accumulate(longer)
    return float(row[-1]) / sum(word.weight for word in claim.words)


def _soft(claim: Line, lines: Sequence[Line], stems: frozenset[str]) -> float:
    """Words that are there count in full, so that only the others' vectors are compared."""
    import numpy as np

    there = np.concatenate([line.vectors for line in lines])
    other = [place for place, word in enumerate(claim.words) if word.stem not in stems]
    likest = dict(zip(other, nearest(claim.vectors[other], there).tolist(), strict=True))
    found: list[float] = [word.weight * likest.get(place, 1.0) for place, word in enumerate(claim.words)]
    return sum(found) / sum(word.weight for word in claim.words)


def _cosine(claim: Line, lines: Sequence[Line]) -> float:
    import numpy as np

    means = np.stack([line.mean for line in lines])
    whole = means.sum(axis=0)
    length = float(np.linalg.norm(whole))
    together = float(whole @ claim.mean) / length if length else 0.0
    # The window as a whole may be nearer than any sentence of it: a claim is often put together from two.
    return min(1.0, max(0.0, together, float((means @ claim.mean).max())))
