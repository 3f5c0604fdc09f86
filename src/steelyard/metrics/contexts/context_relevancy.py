"""Context relevancy: how much of what was retrieved does the question need?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import ClassVar, Literal

from steelyard.errors import ConfigurationError
from steelyard.metrics._formulas import chances, cosine, expected_share, jaccard, share_error
from steelyard.metrics._metric import Metric
from steelyard.metrics._steps import MOST_JUDGED, Step, sentences_of, verdicts
from steelyard.questions import (
    Answer,
    Claims,
    Embed,
    MetricRun,
    Part,
    Question,
    Relevant,
    Texts,
    Vector,
    YesNo,
    require,
)
from steelyard.record import Record
from steelyard.text import spread

_Agreeing = Generator[Sequence[Question], Sequence[Answer], float]


@dataclass(frozen=True, kw_only=True)
class ContextRelevancy(Metric):
    """Sentences of the contexts that the question needs / all their sentences, in 0..1.

    Source: Es et al. 2024 (arXiv:2309.15217), section 3, CR = extracted sentences / sentences of the
    contexts. A sentence that stands there several times is asked about once and counts as often as it
    stands; "none of them" is 0.

    `variant="statements"` is DeepEval's: what is judged are the statements that the judge extracts from the
    contexts, not their sentences.

    With `repeats` = n > 1 the judgement is made n times independently, and the value is the mean share times
    the agreement: the mean pairwise similarity of the picked sentences, by embedding (cosine of the mean
    vectors) or as Jaccard index of the two sets. With n = 1 agreement is 1.
    """

    key = "context_relevancy"
    needs: ClassVar[tuple[Part, ...]] = ("question", "contexts")
    version = "3"

    variant: Literal["sentences", "statements"] = "sentences"
    """What is judged: sentences as they stand, or statements that the judge extracts."""
    repeats: int = 1
    """Independent judgements (Ragas called it strictness)."""
    agreement: Literal["embedding", "jaccard"] = "embedding"
    """How two judgements are compared."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.repeats < 1:
            raise ConfigurationError(f"repeats must be at least 1, not {self.repeats!r}")

    def questions(self, record: Record) -> MetricRun:
        """One verdict per sentence (or statement) and repeat."""
        times = Counter((yield from self._texts(record)))
        texts, counts = list(times), list(times.values())
        if not texts:
            return self.not_applicable(f"no_{self.variant}", f"the contexts hold no {self.variant}")
        # Sample 0 is what other metrics ask too, and shares their answer; repeats are questions of their own.
        samples = range(1, self.repeats + 1) if self.repeats > 1 else (0,)
        asked = [Relevant(text=text, sample=sample) for sample in samples for text in texts]
        answers = require((yield asked), YesNo)
        picks = [
            [text for text, answer in zip(texts, answers[start:], strict=False) if answer.value]
            for start in range(0, len(answers), len(texts))
        ]
        needed = [sum(times[text] for text in picked) for picked in picks]
        total = sum(counts)
        explanation = f"{needed[0]} of {total} {self.variant} needed for the question"
        agreement, error, expected = 1.0, None, None
        if len(picks) > 1:
            agreement = yield from self._agreement(picks)
            explanation += f"; agreement of {len(picks)} judgements {agreement:.2f}"
        else:
            # Of independent answers only, which those to repeated questions are not.
            error = share_error([a.probability for a in answers], counts)
            expected = expected_share(chances(answers), counts=counts)
        return self.scored(
            sum(needed) / total / len(picks) * agreement,
            expected=expected,
            verdicts=verdicts("relevant", texts * len(picks), answers),
            standard_error=error,
            explanation=explanation,
        )

    def _texts(self, record: Record) -> Step:
        if self.variant == "statements":
            (found,) = require((yield [Claims(of="contexts")]), Texts)
            # A statement that the judge gives twice is asked about once.
            return spread(list(dict.fromkeys(found.items)), MOST_JUDGED)
        return (yield from sentences_of(context.text for context in record.contexts))

    def _agreement(self, picks: list[list[str]]) -> _Agreeing:
        pairs = list(combinations(picks, 2))
        if self.agreement == "jaccard":
            return sum(jaccard(set(one), set(other)) for one, other in pairs) / len(pairs)
        texts = list(dict.fromkeys(text for picked in picks for text in picked))
        vectors = require((yield [Embed(text=text) for text in texts]), Vector) if texts else []
        by_text = dict(zip(texts, (vector.values for vector in vectors), strict=True))
        return sum(self._similar(one, other, by_text) for one, other in pairs) / len(pairs)

    @staticmethod
    def _similar(one: list[str], other: list[str], by_text: dict[str, tuple[float, ...]]) -> float:
        """Two equal picks agree wholly, a pick and no pick not at all; a cosine below 0 is not agreement."""
        if one == other:
            return 1.0
        if not one or not other:
            return 0.0
        sums = [
            [sum(column) for column in zip(*map(by_text.__getitem__, picked), strict=True)]
            for picked in (one, other)
        ]
        return max(0.0, cosine(*sums))
