"""Each metric gives what its published definition gives, computed the slow way over random verdicts."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from statistics import fmean, harmonic_mean

import pytest

from scripts import FixedEmbedder, Script
from steelyard.metrics import (
    AnswerAccuracy,
    AnswerCorrectness,
    AnswerRelevancy,
    AnswerSimilarity,
    ContextEntityRecall,
    ContextPrecision,
    ContextRecall,
    ContextRelevance,
    ContextRelevancy,
    ContextUtilization,
    FactualCorrectness,
    Faithfulness,
    Hallucination,
    Metric,
    NoiseSensitivity,
    RagScore,
    ResponseGroundedness,
    RetrievalPrecision,
    RetrievalRecall,
)
from steelyard.record import Context, Record

NAMES = tuple("abcdefg")
SENTENCES = ("One is.", "Two is.", "Three is.", "Four is.")
VECTORS = {
    "q?": (1.0, 0.0),
    "answer": (0.6, 0.8),
    "reference": (-1.0, 0.5),
    "p?": (0.0, 2.0),
    "r?": (3.0, 4.0),
}


@dataclass(frozen=True)
class World:
    """A record and all that a judge believes of it."""

    record: Record
    script: Script

    @property
    def made(self) -> Sequence[str]:
        return list(dict.fromkeys(self.script.answer_claims))

    @property
    def known(self) -> Sequence[str]:
        return list(dict.fromkeys(self.script.reference_claims))

    def true(self, texts: Sequence[str]) -> list[bool]:
        return [text in self.script.true for text in texts]

    def useful(self) -> list[bool]:
        return [rank in self.script.useful for rank in range(len(self.record.contexts))]

    def sentences(self) -> list[str]:
        return [f"{one}." for context in self.record.contexts for one in context.text.split(".") if one]

    def matched(self, by: str, *, of_expected: bool = False) -> list[bool]:
        """Of each passage that was retrieved (or expected), whether it was expected (or retrieved)."""
        sides = (self.record.contexts, self.record.reference_contexts)
        left, right = sides[::-1] if of_expected else sides
        return [any(getattr(one, by) == getattr(other, by) for other in right) for one in left]

    def entails(self, rank: int, claim: str) -> bool:
        return (claim, rank) in self.script.by_passage


def world(seed: int) -> World:
    draw = Random(seed)

    def some(things: Sequence[str], most: int) -> tuple[str, ...]:
        return tuple(draw.choices(things, k=draw.randint(1, most)))

    contexts = [
        Context(text=" ".join(draw.sample(SENTENCES, draw.randint(1, 2))), id=draw.choice("xyz"))
        for _ in range(draw.randint(1, 4))
    ]
    expected = [
        Context(text=draw.choice(SENTENCES), id=draw.choice("xyz")) for _ in range(draw.randint(1, 3))
    ]
    ranks = range(len(contexts))
    return World(
        Record(
            question="q?",
            answer="answer",
            reference="reference",
            contexts=tuple(contexts),
            reference_contexts=tuple(expected),
        ),
        Script(
            answer_claims=some(NAMES[:5], 5),
            reference_claims=some(NAMES[2:], 5),
            true=frozenset(draw.sample([*NAMES, *SENTENCES], draw.randint(0, 9))),
            useful=frozenset(draw.sample([*ranks], draw.randint(0, len(ranks)))),
            entities={"reference": some(["Kyiv", "kyiv ", "Rome"], 3), "contexts": some(["KYIV", "Oslo"], 2)},
            questions=("p?", "r?"),
            evasive=draw.random() < 0.2,
            ratings={1: draw.choice([0.0, 2.0]), 2: draw.choice([0.0, 2.0, None])},
            by_passage=frozenset((name, rank) for name in NAMES for rank in ranks if draw.random() < 0.3),
        ),
    )


def f(precision: float, recall: float, beta: float = 1.0) -> float:
    return (
        0.0
        if precision == recall == 0
        else (1 + beta**2) * precision * recall / (beta**2 * precision + recall)
    )


def ranked(hits: Sequence[bool]) -> float:
    """Average precision: the mean of precision at k over all k that hold something."""
    at = [fmean(hits[: k + 1]) for k in range(len(hits)) if hits[k]]
    return fmean(at) if at else 0.0


def cosine(one: str, other: str) -> float:
    (a, b), (c, d) = VECTORS[one], VECTORS[other]
    return float((a * c + b * d) / ((a * a + b * b) ** 0.5 * (c * c + d * d) ** 0.5))


def shared(w: World, claims: Sequence[str], others: Sequence[str]) -> list[bool]:
    """Which claims are made by the other side too; those in the same words need no judge."""
    return [claim in others or claim in w.script.true for claim in claims]


def correctness(w: World, beta: float, weight: float) -> float:
    tp = sum(shared(w, w.made, w.known))
    fp, fn = len(w.made) - tp, shared(w, w.known, w.made).count(False)
    factual = (1 + beta**2) * tp / ((1 + beta**2) * tp + beta**2 * fn + fp) if tp or fp or fn else 0.0
    return weight * factual + (1 - weight) * max(0.0, cosine("answer", "reference"))


def factual(w: World, beta: float, recall: str) -> float:
    found, met = sum(w.true(w.made)), sum(w.true(w.known))
    missing = len(w.known) - met
    by_counts = found / (found + missing) if found + missing else 0.0
    return f(found / len(w.made), met / len(w.known) if recall == "claims" else by_counts, beta)


def noise(w: World, mode: str) -> float:
    ranks = range(len(w.record.contexts))
    relevant = {rank for rank in ranks if any(w.entails(rank, claim) for claim in w.known)}
    wrong = [claim for claim in w.made if claim not in w.script.true]
    by = [{rank for rank in ranks if w.entails(rank, claim)} for claim in wrong]
    if mode == "relevant":
        return sum(bool(ranks & relevant) for ranks in by) / len(w.made)
    return sum(bool(ranks) and not ranks & relevant for ranks in by) / len(w.made)


def rated(w: World, top: float) -> float:
    return fmean(value for value in w.script.ratings.values() if value is not None) / top


def entities(w: World) -> float:
    wanted = {name.casefold().strip() for name in w.script.entities["reference"]}
    return len(wanted & {name.casefold().strip() for name in w.script.entities["contexts"]}) / len(wanted)


def relevancy(w: World) -> float:
    return 0.0 if w.script.evasive else fmean(cosine("q?", question) for question in ("p?", "r?"))


DEFINITIONS: list[tuple[Metric, Callable[[World], float]]] = [
    (Faithfulness(), lambda w: fmean(w.true(w.made))),
    (Faithfulness(variant="non_contradiction"), lambda w: 1 - fmean(w.true(w.made))),
    (Hallucination(), lambda w: fmean(w.true(w.made))),
    (ContextRecall(), lambda w: fmean(w.true(w.known))),
    (ContextPrecision(), lambda w: ranked(w.useful())),
    (ContextUtilization(), lambda w: ranked(w.useful())),
    (ContextRelevancy(), lambda w: fmean(w.true([f"{one.strip()}" for one in w.sentences()]))),
    (ContextEntityRecall(), entities),
    (AnswerSimilarity(), lambda w: max(0.0, cosine("answer", "reference"))),
    (AnswerRelevancy(count=2), relevancy),
    (AnswerRelevancy(count=1, noncommittal="none"), lambda w: cosine("q?", "p?")),
    (AnswerCorrectness(), lambda w: correctness(w, 1.0, 0.75)),
    (AnswerCorrectness(weights=(2, 6), beta=2), lambda w: correctness(w, 2.0, 0.25)),
    (FactualCorrectness(), lambda w: factual(w, 1.0, "claims")),
    (FactualCorrectness(beta=0.5, recall="counts"), lambda w: factual(w, 0.5, "counts")),
    (FactualCorrectness(mode="precision"), lambda w: fmean(w.true(w.made))),
    (FactualCorrectness(mode="recall"), lambda w: fmean(w.true(w.known))),
    (NoiseSensitivity(), lambda w: noise(w, "relevant")),
    (NoiseSensitivity(mode="irrelevant"), lambda w: noise(w, "irrelevant")),
    (ContextRelevance(), lambda w: rated(w, 2.0)),
    (ResponseGroundedness(), lambda w: rated(w, 2.0)),
    (AnswerAccuracy(), lambda w: rated(w, 4.0)),
    (RetrievalPrecision(), lambda w: fmean(w.matched("text"))),
    (RetrievalPrecision(by="id"), lambda w: fmean(w.matched("id"))),
    (RetrievalPrecision(by="id", ranked=True), lambda w: ranked(w.matched("id"))),
    (RetrievalRecall(), lambda w: fmean(w.matched("text", of_expected=True))),
    (RetrievalRecall(by="id"), lambda w: fmean(w.matched("id", of_expected=True))),
    (
        RagScore(parts=(Faithfulness(), ContextRecall(), ContextPrecision())),
        lambda w: harmonic_mean([fmean(w.true(w.made)), fmean(w.true(w.known)), ranked(w.useful())]),
    ),
]


@pytest.mark.parametrize(("metric", "definition"), DEFINITIONS, ids=lambda one: getattr(one, "key", ""))
def test_a_metric_is_its_definition(metric: Metric, definition: Callable[[World], float]) -> None:
    embedder = FixedEmbedder(VECTORS.__getitem__)
    for seed in range(40):
        w = world(seed)
        score = asyncio.run(metric.score(w.record, judge=w.script.judge(), embedder=embedder))
        assert score.value is not None and score.value == pytest.approx(definition(w)), (seed, w)
        bar = metric.threshold
        if isinstance(bar, float):
            right = score.value <= bar if metric.direction == "lower" else score.value >= bar
            assert score.passed == right
