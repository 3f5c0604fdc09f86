"""Metrics of what was retrieved: whether it is what the question needs, and in which order it stands."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import combinations
from typing import ClassVar, Literal

from steelyard.errors import ConfigurationError
from steelyard.metrics._formulas import (
    average_precision,
    chances,
    cosine,
    expected_level,
    expected_precision,
    expected_share,
    jaccard,
    share,
    share_error,
)
from steelyard.metrics._metric import Metric, Threshold
from steelyard.metrics._steps import (
    MOST_JUDGED,
    ClaimsFrom,
    Step,
    claims_of,
    explain,
    sentences_of,
    share_score,
    verdicts,
)
from steelyard.questions import (
    Answer,
    Claims,
    Embed,
    Entities,
    Level,
    MetricRun,
    Part,
    Predicate,
    Question,
    Relevant,
    Sufficient,
    Supported,
    Texts,
    Useful,
    Vector,
    YesNo,
    require,
)
from steelyard.record import Context, Record
from steelyard.scores import Score, Verdict
from steelyard.text import spread


def rank_useful(metric: Metric, record: Record, toward: Literal["answer", "reference"]) -> MetricRun:
    """Ask of every context whether it was useful, and score the ranking; use with `yield from`."""
    contexts = record.contexts
    asked = [Useful(context=index, toward=toward) for index in range(len(contexts))]
    answers = require((yield asked), YesNo)
    useful = [answer.value for answer in answers]
    first = next((rank for rank, hit in enumerate(useful, start=1) if hit), None)
    where = f", the first at rank {first}" if first else ""
    return metric.scored(
        average_precision(useful),
        expected=expected_precision(chances(answers)),
        verdicts=verdicts("useful", [context.text for context in contexts], answers),
        explanation=f"{sum(useful)} of {len(useful)} contexts useful for the {toward}{where}",
    )


@dataclass(frozen=True, kw_only=True)
class ContextPrecision(Metric):
    """Average precision over ranks of the contexts that are useful for the reference, in 0..1.

    Source: average precision (Manning, Raghavan & Schütze 2008, section 8.4) as Ragas and DeepEval apply it
    to retrieved contexts. Contexts of which none is useful give 0.
    """

    key = "context_precision"
    needs: ClassVar[tuple[Part, ...]] = ("question", "contexts", "reference")

    def questions(self, record: Record) -> MetricRun:
        return (yield from rank_useful(self, record, "reference"))


@dataclass(frozen=True, kw_only=True)
class ContextUtilization(Metric):
    """Average precision over ranks of the contexts that were useful for the answer, in 0..1.

    The reference-free sibling of context precision (Ragas: `ContextUtilization`). Contexts of which none is
    useful give 0.
    """

    key = "context_utilization"
    needs: ClassVar[tuple[Part, ...]] = ("question", "contexts", "answer")

    def questions(self, record: Record) -> MetricRun:
        return (yield from rank_useful(self, record, "answer"))


@dataclass(frozen=True, kw_only=True)
class ContextRecall(Metric):
    """Claims of the reference that the contexts support / all claims of the reference, in 0..1.

    Source: Ragas' `ContextRecall` (and DeepEval's contextual recall, which counts sentences:
    `claims="sentences"`). The answer stays hidden from the judge.
    """

    key = "context_recall"
    needs: ClassVar[tuple[Part, ...]] = ("contexts", "reference")

    threshold: Threshold = 1.0
    """Every claim of the reference is supported."""
    claims: ClaimsFrom = "extracted"
    """Whether the judge extracts the claims, or each sentence of the reference is one."""

    def questions(self, record: Record) -> MetricRun:
        """Claims first, then one verdict each."""
        claims = yield from claims_of(record, "reference", self.claims)
        if not claims:
            return self.not_applicable("no_claims", "the reference makes no claim")
        answers = require((yield [Supported(claim=claim, of="reference") for claim in claims]), YesNo)
        what = "claims of the reference not retrieved"
        return share_score(self, "supported", claims, answers, what=what, record=record)


@dataclass(frozen=True, kw_only=True)
class ContextEntityRecall(Metric):
    """Entities of the reference that the contexts name too / entities of the reference, in 0..1.

    Source: Ragas' `ContextEntityRecall`, |E(contexts) & E(reference)| / |E(reference)|, over sets. Entities
    are compared without case, width or spacing; with `aliases="judged"` the judge is asked about those that
    were not found, so that "UK" can be found as "United Kingdom".
    """

    key = "context_entity_recall"
    needs: ClassVar[tuple[Part, ...]] = ("contexts", "reference")

    aliases: Literal["exact", "judged"] = "exact"
    """Whether other names of an entity count."""

    def questions(self, record: Record) -> MetricRun:
        """Both extractions in one round; with `aliases="judged"` one question per entity not found."""
        asked = [Entities(of="reference"), Entities(of="contexts")]
        expected, present = require((yield asked), Texts)
        wanted = {_normal(name): name for name in expected.items}
        if not wanted:
            return self.not_applicable("no_entities", "the reference names no entity")
        found = {_normal(name) for name in present.items} & wanted.keys()
        if self.aliases == "judged":
            found |= yield from _judged({key: name for key, name in wanted.items() if key not in found})
        lost = [name for key, name in wanted.items() if key not in found]
        return self.scored(
            share(key in found for key in wanted),
            verdicts=tuple(
                Verdict(about=name, kind="named", value=key in found) for key, name in wanted.items()
            ),
            explanation=explain(lost, len(wanted), "entities of the reference not in the contexts"),
        )


def _judged(missing: dict[str, str]) -> Generator[Sequence[Question], Sequence[Answer], set[str]]:
    """Which of the missing entities the judge finds in the contexts under another name."""
    if not missing:
        return set()
    criterion = "Is this named in the contexts, under whatever name: "
    asked = [
        Predicate(criterion=criterion + name, needs=frozenset({"contexts"})) for name in missing.values()
    ]
    answers = require((yield asked), YesNo)
    return {key for key, answer in zip(missing, answers, strict=True) if answer.value}


def _normal(name: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", name).casefold().split())


_VALUES = {0.0: 0.0, 1.0: 0.0, 2.0: 0.5, 3.0: 1.0}
"""What the levels of the question are worth: nothing, part, all."""


@dataclass(frozen=True, kw_only=True)
class ContextSufficiency(Metric):
    """How much of the question could be answered from the contexts alone: 0 none, .5 part, 1 all of it.

    Source: sufficient context (Joren et al. 2025, arXiv:2411.06037), with "in part" between its two labels.
    One question to the judge, who does not see the answer. The explanation says what is missing.

    It tells what other metrics mix up: a bad answer from too little was the retrieval's, a bad answer from
    enough the model's; a good answer from too little was luck, or what the model had learnt.
    """

    key = "context_sufficiency"
    needs: ClassVar[tuple[Part, ...]] = ("question", "contexts")

    threshold: Threshold = 0.75
    """All of it, rather than part of it."""

    def questions(self, record: Record) -> MetricRun:
        """One question."""
        question = Sufficient()
        (answer,) = require((yield (question,)), Level)
        words = dict(question.levels)[answer.value]
        missing = f"; missing: {answer.reason}" if answer.reason else ""
        return self.scored(
            _VALUES[answer.value],
            expected=expected_level([answer], _VALUES),
            verdicts=(Verdict(about=words, kind=question.kind, value=answer.value, reason=answer.reason),),
            explanation=f"{words}{missing}",
        )


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


@dataclass(frozen=True, kw_only=True)
class _Retrieval(Metric):
    """What the two have in common: when a retrieved context is an expected one."""

    needs: ClassVar[tuple[Part, ...]] = ("contexts", "reference_contexts")

    by: Literal["id", "text"] = "text"
    """Whether contexts are the same by id or by text."""
    similar: float = 1.0
    """With `by="text"`, the similarity (difflib's ratio, 0..1) from which two texts are the same."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.similar <= 1:
            raise ConfigurationError(f"similar must be in (0, 1], not {self.similar!r}")

    def questions(self, record: Record) -> MetricRun:
        """Nothing to ask."""
        sides = (*record.contexts, *record.reference_contexts)
        if self.by == "id" and not all(context.id for context in sides):
            return self.not_applicable("missing_ids", "some contexts have no id")
        return self.compare(record)
        yield []  # a generator that asks nothing

    def compare(self, record: Record) -> Score:
        raise NotImplementedError

    def _same(self, one: Context, other: Context) -> bool:
        if self.by == "id":
            return one.id == other.id
        left, right = " ".join(one.text.split()), " ".join(other.text.split())
        if left == right or self.similar == 1:
            return left == right
        matcher = SequenceMatcher(None, left, right, autojunk=False)
        return matcher.real_quick_ratio() >= self.similar and matcher.ratio() >= self.similar

    def _marks(self, contexts: tuple[Context, ...], among: tuple[Context, ...]) -> list[bool]:
        return [any(self._same(context, other) for other in among) for context in contexts]


@dataclass(frozen=True, kw_only=True)
class RetrievalPrecision(_Retrieval):
    """Retrieved contexts that were expected / retrieved contexts, in 0..1.

    Source: Ragas' `IDBasedContextPrecision`; with `ranked=True` average precision over ranks, as in its
    `NonLLMContextPrecisionWithReference`.
    """

    key = "retrieval_precision"

    ranked: bool = False
    """Whether expected contexts further up count more."""

    def compare(self, record: Record) -> Score:
        """Mark each retrieved context."""
        marks = self._marks(record.contexts, record.reference_contexts)
        return self.scored(
            average_precision(marks) if self.ranked else share(marks),
            verdicts=_verdicts(record.contexts, marks, "expected"),
            explanation=f"{sum(marks)} of {len(marks)} retrieved contexts were expected",
        )


@dataclass(frozen=True, kw_only=True)
class RetrievalRecall(_Retrieval):
    """Expected contexts that were retrieved / expected contexts, in 0..1.

    Source: Ragas' `IDBasedContextRecall` and `NonLLMContextRecall`.
    """

    key = "retrieval_recall"

    def compare(self, record: Record) -> Score:
        """Mark each expected context."""
        marks = self._marks(record.reference_contexts, record.contexts)
        return self.scored(
            share(marks),
            verdicts=_verdicts(record.reference_contexts, marks, "retrieved"),
            explanation=f"{sum(marks)} of {len(marks)} expected contexts were retrieved",
        )


def _verdicts(contexts: tuple[Context, ...], marks: list[bool], kind: str) -> tuple[Verdict, ...]:
    pairs = zip(contexts, marks, strict=True)
    return tuple(Verdict(about=context.id or context.text, kind=kind, value=mark) for context, mark in pairs)
