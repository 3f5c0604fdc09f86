"""Evaluations and results files for the tests of reports."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import numpy as np

from steelyard.record import Context, Record
from steelyard.scores import Evaluation, Evidence, Provenance, Score, Verdict
from writing import write

NOON = 1_760_000_000.0
MONDAY = 1_759_708_800.0
DAY = 86400.0


def turn(
    number: int,
    value: float | None,
    *,
    at: float = NOON,
    inclusion: float = 1.0,
    question: str = "What is the capital of France?",
    answer: str = "It is Paris. It has nine million people.",
    context: str = "France is a country. Paris is the capital of France.",
    content: bool = True,
    **metadata: str,
) -> Evaluation:
    """One turn with two claims, of which the first rests on a sentence of its context."""
    start = max(context.find("Paris"), 0)
    evidence = Evidence(context=0, start=start, end=len(context), text=context[start:])
    verdicts = (
        Verdict(about=answer.split(". ")[0], kind="supported", value=True, evidence=(evidence,)),
        Verdict(
            about="It has nine million people.", kind="supported", value=False, reason="no context says so"
        ),
    )
    if value is None:
        score = Score.failed("faithfulness", cause="timeout", explanation="the judge did not answer in time")
    else:
        score = Score(
            metric="faithfulness",
            status="scored",
            value=value,
            passed=value >= 0.5,
            threshold=0.5,
            inclusion_probability=inclusion,
            verdicts=verdicts,
        )
    record = Record(
        id=f"r{number}",
        question=question,
        answer=answer,
        contexts=(Context(text=context),),
        tags=("web",),
        metadata=metadata,
    )
    return Evaluation(
        record_id=record.id,
        scores=(score,),
        record=record if content else None,
        evaluated_at=at,
        duration=1.0,
    )


def by_judge(one: Evaluation, judge: str = "local-lexical") -> Evaluation:
    """The same turn, whose scores say who made them."""
    made = Provenance(judge=judge)
    return one.replace(scores=tuple(replace(score, provenance=made) for score in one.scores))


def results(path: Path, turns: Iterable[Evaluation]) -> Path:
    """A results file with these turns."""
    write(path, *turns)
    return path


def month(draw: np.random.Generator, *, falls: bool) -> list[Evaluation]:
    """Conversations of four tenants; from day 20 on a third of one tenant's answers goes wrong."""
    found: list[Evaluation] = []
    for session in range(1_600):
        start, tenant = draw.uniform(0, 28), int(draw.integers(0, 4))
        usual = draw.beta(0.92 * 9, 0.08 * 9) + 0.03 * np.sin(2 * np.pi * start / 7)
        usual -= 0.35 * (falls and tenant == 2 and start >= 20)
        for place in range(draw.geometric(0.25)):
            inclusion = 0.8 if start < 14 else 0.4
            if draw.random() > inclusion:
                continue
            one = turn(
                len(found),
                float(draw.random() < usual),
                at=MONDAY + DAY * start + 60 * place,
                inclusion=inclusion,
                customer=f"tenant {tenant}",
                content=True,
            )
            found.append(replace(one, session=f"s{session}", happened_at=one.evaluated_at))
    return found


SCREENED = 1200


def screened_traffic(*, judged: float = 0.15, worse: bool = True, seed: int = 1) -> list[Evaluation]:
    """Three weeks of turns; those of one customer are worse, and the screen sees most of it."""
    draw = np.random.default_rng(seed)
    found = []
    for number in range(SCREENED):
        customer = ("a", "b", "c")[number % 3]
        good = draw.beta(2, 1.5 if customer == "c" and worse else 0.4)
        truth, said = float(draw.random() < good), float(np.clip(good + 0.1 * draw.normal(), 0, 1))
        at = NOON + number * 21 * DAY / SCREENED
        evaluation = turn(number, truth, at=at, inclusion=judged, customer=customer)
        (score,) = evaluation.scores
        cheap = replace(
            score,
            value=said,
            inclusion_probability=1.0,
            provenance=Provenance(judge="cheap"),
            verdicts=(),
        )
        dear = replace(score, provenance=Provenance(judge="chat:dear"))
        seen = draw.random() < judged
        found.append(evaluation.replace(scores=(dear,) if seen else (), screen=(cheap,)))
    return found
