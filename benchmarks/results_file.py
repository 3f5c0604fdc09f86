"""Makes the results file that benchmarks/report.py and benchmarks/view.py look at."""

from __future__ import annotations

import asyncio
import random
import time
from pathlib import Path

from steelyard.record import Context, Record
from steelyard.scores import Diagnosis, Evaluation, Evidence, Provenance, Score, Usage, Verdict
from steelyard.sinks import PostgresSink, SQLiteSink

TOPICS = {
    "parcel": ["Where is my parcel {n}?", "My parcel {n} is late, what now?", "Can I redirect parcel {n}?"],
    "refund": ["How do I get a refund for order {n}?", "When does the refund of {n} arrive?"],
    "password": ["I forgot the password of account {n}", "How do I reset my password {n}?"],
    "invoice": ["Where do I find invoice {n}?", "The invoice {n} shows a wrong address"],
}
DAYS = 14


def picked(number: int, count: int, draw: random.Random, now: float) -> Evaluation:
    """One turn that was picked; those that were not leave no trace in a results file."""
    while True:
        made = evaluation(number, count, draw, now)
        if draw.random() < made.scores[0].inclusion_probability:
            return made


def evaluation(number: int, count: int, draw: random.Random, now: float) -> Evaluation:
    """One turn of a shop's assistant: from day 10 on, refunds under version 2 go wrong more often."""
    age = DAYS * 86400 * (1 - number / count)
    topic = draw.choice(list(TOPICS))
    version = "v2" if number > count * 0.7 else "v1"
    bad = draw.random() < (0.5 if version == "v2" and topic == "refund" else 0.12)
    suspicious = draw.random() < (0.6 if bad else 0.05)
    passage = (
        f"Parcels leave within two days. A {topic} is dealt with in writing within 14 days of the request. "
        "Customers find the form in their account."
    )
    start, end = passage.index("A "), passage.index(" Customers")
    claims = [
        (f"A {topic} is dealt with within 14 days.", True),
        ("The form is in your account.", True),
        ("We pay the return freight.", not bad),
        ("You can call us day and night.", not bad),
    ]
    verdicts = tuple(
        Verdict(
            about=claim,
            kind="supported",
            value=value,
            probability=0.93 if value else 0.08,
            reason="" if value else "no context says so",
            evidence=(Evidence(context=0, start=start, end=end, text=passage[start:end]),) if value else (),
        )
        for claim, value in claims
    )
    value = sum(held for _, held in claims) / len(claims)
    made = Provenance(judge="chat:gpt-4o-mini", prompt_version="7")
    inclusion = 1.0 if suspicious else 0.1
    scores = (
        _score("faithfulness", value, number, inclusion, made, verdicts),
        _score("answer_relevancy", min(max(draw.gauss(0.86, 0.08), 0.0), 1.0), number, inclusion, made),
        Score.not_applicable("context_recall", cause="missing_reference", explanation="no reference answer")
        if number % 3
        else _score("context_recall", draw.choice([0.5, 1.0, 1.0]), number, inclusion, made),
    )
    record = Record(
        id=f"r{number}",
        question=draw.choice(TOPICS[topic]).format(n=draw.randrange(10_000)),
        contexts=(Context(text=passage), Context(text="Our shops are open from nine to six.")),
        answer=" ".join(claim for claim, _ in claims),
        tags=("web" if number % 4 else "phone",),
        metadata={
            "version": version,
            "language": draw.choice(["en", "en", "de"]),
            "route": "/ask" if number % 5 else "/chat",
        },
    )
    usage = Usage(requests=2, questions=6, prompt_tokens=900, completion_tokens=60, cost=0.0002, seconds=1.4)
    return Evaluation(
        record_id=record.id,
        scores=scores,
        record=record,
        usage=usage,
        evaluated_at=now - age,
        duration=draw.uniform(0.6, 2.5),
        session=f"s{number // 3}",
        diagnosis=Diagnosis(cause="invented", rule="no_passage", because="no passage says so")
        if value < 1
        else Diagnosis(),
    )


def _score(
    metric: str,
    value: float,
    number: int,
    inclusion: float,
    made: Provenance,
    verdicts: tuple[Verdict, ...] = (),
) -> Score:
    return Score(
        id=f"{metric}{number}",
        metric=metric,
        status="scored",
        value=value,
        passed=value >= 0.7,
        threshold=0.7,
        inclusion_probability=inclusion,
        verdicts=verdicts,
        provenance=made,
    )


def write(where: Path | str, count: int) -> None:
    """Make a results file, or fill a Postgres database, by the sink that applications use."""

    async def run() -> None:
        sink = SQLiteSink(where) if isinstance(where, Path) else PostgresSink(where)
        draw, now = random.Random(1), time.time()
        for start in range(0, count, 1_000):
            stop = min(start + 1_000, count)
            await sink.write([picked(number, count, draw, now) for number in range(start, stop)])
        await sink.aclose()

    asyncio.run(run())
