"""What every metric makes of turns that are judged at random, held against what it made of them before."""

from __future__ import annotations

import json
from random import Random
from typing import Any

from kept import check, rounded
from metrics.test_properties import CLAIMS, RECORD
from scripts import FixedEmbedder, Script
from steelyard.engine import evaluate
from steelyard.metrics import ALL
from steelyard.record import Context, Record
from steelyard.scores import evaluation_to_dict

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
    made = evaluate(
        [record(draw)],
        metrics=[metric() for metric in ALL],
        judge=judge,
        embedder=embedder,
        fuse=fuse,
        progress=False,
    )
    told = [[one["id"], rounded(one)] for one in evaluation_to_dict(next(iter(made)))["scores"]]
    return "\n".join(json.dumps(one, sort_keys=True) for one in told)


def test_scores_are_what_they_were() -> None:
    check("any_scores", "\n".join(scored(Random(seed)) for seed in range(8)))
