"""What every metric makes of turns that are judged at random, held against what it made of them before.

So is what the rules find in turns with any verdicts.
"""

from __future__ import annotations

import json
import re
from dataclasses import asdict
from random import Random
from typing import Any

from kept import check, rounded
from metrics.test_properties import CLAIMS, RECORD
from scripts import FixedEmbedder, Script
from steelyard.diagnosis import diagnose
from steelyard.engine import evaluate
from steelyard.metrics import ALL, AnswerRelevancy
from steelyard.record import Context, Record, Stage
from steelyard.scores import Evidence, Score, Verdict, evaluation_to_dict

LEFT_OUT = ("answer", "reference", "contexts", "reference_contexts", "question")


def script(draw: Random) -> Script:
    """A judge that finds anything."""

    def some(most: int) -> tuple[str, ...]:
        return tuple(draw.choices(CLAIMS, k=draw.randint(0, most)))

    return Script(
        answer_claims=some(5),
        reference_claims=some(5),
        true=frozenset((*some(4), *(f"passage {one}." for one in some(3)))),
        useful=frozenset(draw.sample(range(5), draw.randint(0, 4))),
        entities={"reference": ("x", "y"), "contexts": draw.choice([(), ("x",), ("x", "y", "z")])},
        questions=("p?", "q?", "r?"),
        evasive=draw.random() < 0.2,
        ratings={number: draw.choice([None, 0.0, 1.0, 2.0]) for number in range(3)},
        by_passage=frozenset((one, draw.randrange(5)) for one in some(5)),
    )


def record(draw: Random) -> Record:
    """A turn that may lack anything."""
    lacks: Any = {name: type(getattr(RECORD, name))() for name in LEFT_OUT if draw.random() < 0.1}
    contexts = tuple(draw.sample(RECORD.contexts, draw.randint(1, 5)))
    expected = tuple(Context(text=f"passage {one}.", id=one) for one in draw.sample(CLAIMS, 2))
    given = RECORD.replace(id="r", contexts=contexts, reference_contexts=expected)
    return given.replace(
        contexts_source=draw.choice(["in_prompt", "in_prompt", "retrieved", "guessed"])
    ).replace(**lacks)


def scored(draw: Random) -> str:
    """Every score of a turn, with all that is known of it but the time."""
    judge, vectors = script(draw).judge(), Random(draw.random())
    embedder = FixedEmbedder(lambda text: (1.0, 1.0) if "?" not in text else (1.0, vectors.random()))
    fuse: Any = draw.choice(["view", "record", "off"])
    evading: Any = draw.choice(["none", "all", "any"])
    variant: Any = draw.choice(["statements", "questions", "questions"])
    relevancy = AnswerRelevancy(variant=variant, repeats=draw.choice([1, 2, 3]), noncommittal=evading)
    made = evaluate(
        [record(draw)],
        metrics=[relevancy if metric is AnswerRelevancy else metric() for metric in ALL],
        judge=judge,
        embedder=embedder,
        fuse=fuse,
        progress=False,
    )
    told = [[one.get("id"), rounded(one)] for one in evaluation_to_dict(next(iter(made)))["scores"]]
    asked = [repr(one) for request in judge.requests for one in request.questions.values()]
    # What may be seen has no order.
    asked = [
        re.sub(r"frozenset.*?\}\)", lambda found: " ".join(sorted(re.findall(r"\w+", found[0]))), one)
        for one in asked
    ]
    return "\n".join([*(json.dumps(one, sort_keys=True) for one in told), *sorted(set(asked))])


def test_scores_are_what_they_were() -> None:
    check("any_scores", "\n".join(scored(Random(seed)) for seed in range(8)))


TEXTS = (
    "A motorcycle on the ferry to Skarn costs 11 crowns.",
    "The ferry to Skarn leaves at nine from the old pier.",
    "Bicycles travel free of charge on Sundays.",
    "Tulips need little water in winter.",
)
JUDGED = {
    "faithfulness": "supported",
    "hallucination": "contradicted",
    "context_recall": "supported",
    "context_precision": "useful",
    "context_utilization": "useful",
    "context_sufficiency": "sufficient",
    "context_relevance": "rating",
    "answer_relevancy": "noncommittal",
}


def passages(draw: Random) -> tuple[Context, ...]:
    some = draw.sample(TEXTS, draw.choice([0, 1, 1, 2, 2, 2, 3, 3]))
    return tuple(
        Context(text=one, id=one[:5], seen=draw.choice([None, 1.0, 0.96, 0.95, 0.4])) for one in some
    )


def verdict(draw: Random, kind: str) -> Verdict:
    """One that may be of any claim, rests on any passages, and is more or less sure."""
    about = "" if kind == "sufficient" else draw.choice(TEXTS)
    rests = [
        Evidence(context=draw.choice([None, 0, 1, 2]), notes=note) for note in ({}, {"negation_flip": True})
    ]
    value: Any = draw.choice([0.0, 1.0, 2.0]) if kind in ("sufficient", "rating") else draw.random() < 0.5
    sure = draw.choice([None, None, 0.75, round(draw.random(), 2)])
    return Verdict(
        about=about, kind=kind, value=value, probability=sure, evidence=tuple(draw.sample(rests, 1))
    )


def judged(draw: Random, metric: str, kind: str) -> Score:
    value = draw.choice([0.0, 0.3, 0.74, 0.75, 1.0])
    given = tuple(verdict(draw, kind) for _ in range(draw.randint(1, 3)))
    status: Any = draw.choice(["scored"] * 9 + ["failed"])
    return Score(metric=metric, status=status, value=value, passed=value >= 0.75, verdicts=given)


def diagnosed(draw: Random) -> str:
    """What any turn with any scores is found to suffer from."""
    given = Record(
        question="What does a motorcycle cost on the ferry to Skarn?",
        answer=draw.choice([*TEXTS, "I do not know.", "It costs 12 crowns. I am not sure."]),
        contexts=passages(draw),
        retrieved=passages(draw) if draw.random() < 0.4 else (),
        stages=tuple(Stage(name=one, query="q", contexts=passages(draw)) for one in draw.sample("ab", 1)),
        status=draw.choice(["ok"] * 27 + ["error", "truncated", "cancelled"]),  # type: ignore[arg-type]
    )
    scores = [judged(draw, *one) for one in JUDGED.items() if draw.random() < 0.5]
    found = diagnose(given, scores)
    return json.dumps(found and {name: value for name, value in rounded(asdict(found)).items() if value})


def test_diagnoses_are_what_they_were() -> None:
    check("any_diagnoses", "\n".join(diagnosed(Random(seed)) for seed in range(300)))
