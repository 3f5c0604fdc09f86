"""Evaluations and results files for the tests of reports."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from pathlib import Path

from steelyard.record import Context, Record
from steelyard.scores import Evaluation, Evidence, Score, Verdict
from steelyard.sinks import SQLiteSink

NOON = 1_760_000_000.0


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


def results(path: Path, turns: Iterable[Evaluation]) -> Path:
    """A results file with these turns."""

    async def run() -> None:
        sink = SQLiteSink(path)
        await sink.write(list(turns))
        await sink.aclose()

    asyncio.run(run())
    return path
