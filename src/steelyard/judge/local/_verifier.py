"""The lexical verifier: how well some texts carry a sentence, and what speaks against it.

Six signals, equally weighted, say how much of the claim is found; what must not differ (numbers, names,
negations, and what `_checks` compares) forbids a yes. Nothing here was fitted: learned combinations of the
same signals did not carry over from one data set to the next.
"""

from __future__ import annotations

import math
from collections.abc import Container, Generator, Mapping, Sequence

from steelyard.judge._static import cosine, nearest
from steelyard.judge._word import Word, fold, rule
from steelyard.judge.local._checks import mismatches, written_apart
from steelyard.judge.local._finding import Finding, Signals, Window
from steelyard.judge.local._material import Known, Line, ReadText

_CLOSE = 0.6
"""Share of a claim that a sentence must have before a negation in one of the two counts."""
_TELLING = 3.5
"""Weight from which a word can be what is negated; articles, pronouns and auxiliaries are below it."""


def is_turned(claim: Line, lines: Sequence[Line], weights: Mapping[str, float]) -> bool:
    """Whether a clause of the claim denies what the evidence states, or states what it denies.

    What the evidence negates are the telling words of its negated clauses that no other clause of it has: in
    "the mill was flooded, but the church was not" that is the church.
    """
    # A table's row has no clauses, and its cells of "no" deny nothing.
    close = [line for line in lines if line.row is None and share(weights, line.stems) >= _CLOSE]
    denied, stated = set[str](), set[str]()
    for clause, at in ((clause, _negation(clause)) for line in close for clause in line.clauses):
        # What stands before "not" is what it is said of, unless nothing stands behind it.
        (stated if at is None else denied).update(_stems(clause[at or 0 :]) or _stems(clause))
    return any(_against(clause, denied, stated) for clause in claim.clauses)


def _against(clause: Sequence[Word], denied: set[str], stated: set[str]) -> bool:
    words = _stems(clause)
    if _negation(clause) is None:
        return not words.isdisjoint(denied - stated)
    return not words.isdisjoint(stated) and words.isdisjoint(denied)


def _negation(clause: Sequence[Word]) -> int | None:
    """The place of the first negation in a clause."""
    return next((at for at in range(len(clause)) if _denies(clause[at]) and _is_meant(clause, at)), None)


def _stems(words: Sequence[Word]) -> set[str]:
    return {word.stem for word in words if word.weight >= _TELLING and not _denies(word)}


def _denies(word: Word) -> bool:
    """Whether a word by itself is a negation."""
    surface = word.surface
    return (surface.casefold() if surface.isascii() else fold(surface)) in rule("negations")


def _is_meant(words: Sequence[Word], at: int) -> bool:
    """Whether what is a negation by itself is one where it stands.

    "No 5" is a number, "not only" denies nothing, and neither does the "never" of a title, nor "sin" among
    words of English.
    """
    surface, lower = words[at].surface, words[at].surface.casefold()
    after = words[at + 1].surface if at + 1 < len(words) else ""
    if (lower == "no" and after[:1].isdigit()) or after.casefold() in rule("not_only"):
        return False
    if lower in rule("ambiguous") and any(word.surface.casefold() in rule("english") for word in words):
        return False
    titled = surface[0].isupper() and not surface.isupper()
    return not titled or (at == 0 and (not after[:1].isupper() or surface in ("No", "Not")))


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
    together = cosine(whole / length, claim.mean) if length else 0.0
    # The window as a whole may be nearer than any sentence of it: a claim is often put together from two.
    return min(1.0, max(0.0, together, *(cosine(mean, claim.mean) for mean in means)))


_SPAN = 3
"""Sentences in a window."""
_STRETCH = 50
"""Windows that are counted in one slice, and with equally many words that are compared more closely."""
_ROUNDING = 1e-6
_ROWS = 30
"""Rows of a table that are looked at on either side."""
_NONE: frozenset[str] = frozenset()


def find(
    claim: Line, weights: Mapping[str, float], texts: Sequence[ReadText]
) -> Generator[None, None, Window | None]:
    """The window with most of the claim's words; among equals the one that reads most like the claim."""
    best, equals = 0.0, list[Window]()
    for number, text in enumerate(texts):
        hits = _hits(claim, text.lines)
        gains = [math.fsum([weights[stem] for stem in hit]) for hit in hits]
        for first in range(max(1, len(hits) - _SPAN + 1) if any(hits) else 0):
            if first % _STRETCH == 0:
                yield
            last = min(first + _SPAN, len(hits))
            # Together they have at most what each has by itself.
            if math.fsum(gains[first:last]) < best - _ROUNDING:
                continue
            # Exact, for a set has its words in another order in each process.
            score = math.fsum([weights[stem] for stem in _NONE.union(*hits[first:last])])
            if score > best:
                best, equals = score, []
            if score == best > 0:
                equals.append(Window(number, first, last))
        yield
    return (yield from _likest(claim, equals, texts))


def _hits(claim: Line, lines: Sequence[Line]) -> list[frozenset[str]]:
    """What each sentence has of the claim; where it names rows of a table, the other rows have nothing."""
    named = any(line.names(claim) for line in lines)
    return [
        _NONE if named and line.row is not None and not line.names(claim) else claim.stems & line.stems
        for line in lines
    ]


def _likest(
    claim: Line, equals: Sequence[Window], texts: Sequence[ReadText]
) -> Generator[None, None, Window | None]:
    if len(equals) < 2:
        return equals[0] if equals else None
    likeness: list[float] = []
    for window in equals[:_STRETCH]:
        lines = texts[window.text].lines[window.first : window.last]
        likeness.append(max([cosine(line.mean, claim.mean) for line in lines]))
        yield
    return equals[likeness.index(max(likeness))]


def lines_of(window: Window, texts: Sequence[ReadText]) -> list[Line]:
    """The sentences of a window; of a table all rows, with what introduces them."""
    text = texts[window.text].lines
    first, last = window.first, window.last
    if any(line.row is not None for line in text[first:last]):
        while first > max(0, window.first - _ROWS) and text[first].row is not None:
            first -= 1
        while last < min(len(text), window.last + _ROWS) and text[last].row is not None:
            last += 1
    return list(text[first:last])


def trim(window: Window, claim: Line, texts: Sequence[ReadText]) -> Window:
    """The window without the sentences at its ends that have nothing of the claim the others lack."""
    hits = [claim.stems & line.stems for line in texts[window.text].lines[window.first : window.last]]
    first, last = 0, len(hits)
    while last - first > 1:
        if hits[last - 1] <= _NONE.union(*hits[first : last - 1]):
            last -= 1
        elif hits[first] <= _NONE.union(*hits[first + 1 : last]):
            first += 1
        else:
            break
    return Window(window.text, window.first + first, window.first + last)


VERSION = "9"
"""Goes up when the same texts would get another score."""


def verify(claim: Line, texts: Sequence[ReadText]) -> Generator[None, None, Finding]:
    """Hold one claim against some texts."""
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
    names = dict.fromkeys(w.surface for w in claim.words if w.kind == "name" and w.stem not in known)
    turned = is_turned(claim, lines, weights)
    yield
    different = yield from mismatches(claim, lines)
    return Finding(
        signals=signals,
        window=trim(window, claim, texts),
        has_numbers=any(word.kind == "number" for word in claim.words),
        missing_numbers=numbers,
        missing_names=tuple(names),
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
