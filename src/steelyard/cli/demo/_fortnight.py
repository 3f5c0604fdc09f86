"""A made-up fortnight of a shop's assistant: a new version loses one customer's passages, and answers invent.

Nothing of it was judged. It shows what the pages say of a fall, its slice and its cause.
"""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from types import SimpleNamespace
from typing import Final

from steelyard._internal.typed import read
from steelyard.record import Context, Record, Stage, Timings, TraceRef
from steelyard.results import open_labels
from steelyard.results.labels import Label
from steelyard.scores import Diagnosis, Evaluation, Evidence, Provenance, Score, Usage, Verdict
from steelyard.sinks import SQLiteSink

TURNS: Final = 2_400
TENANT: Final = "acme"
"""Whose answers fall."""
VERSIONS: Final = ("1.8", "1.9")
_DAY: Final = 86_400.0
_DAYS: Final = 14
_RELEASED: Final = 9.4
"""The day on which the new version comes into use."""
_PICKED: Final = 0.1
_MADE: Final = Provenance(judge="demo", prompt_version="1", metric_version="1")


@dataclass(frozen=True, kw_only=True)
class _Topic:
    """What customers ask about: questions, the help page, what it says of them, and what it does not."""

    questions: tuple[str, ...]
    passage: str
    claims: tuple[str, ...]
    invented: str


@cache
def _topics() -> tuple[_Topic, ...]:
    raw = files("steelyard.cli.demo").joinpath("shop.json").read_text(encoding="utf-8")
    return tuple(read(_Topic, one) for one in json.loads(raw))


def write_fortnight(path: str, *, now: float) -> None:
    """Write results and labels of a fortnight that ends now."""
    draw = random.Random(7)
    turns = list(_turns(draw, now))
    counted = _Counted()

    async def run() -> None:
        sink = SQLiteSink(path)
        sink.observe(counted)
        await sink.write(turns)
        await sink.aclose()

    asyncio.run(run())
    open_labels(path).put(_labels(draw, turns))


class _Counted:
    """What a Monitor would say of such a fortnight."""

    def stats(self) -> SimpleNamespace:
        counts = {"seen": 10 * TURNS, "accepted": TURNS, "evaluated": TURNS}
        none = dict.fromkeys(("pending", "abandoned", "spooled"), 0)
        return SimpleNamespace(**counts, **none, skipped={"sampled_out": 9 * TURNS}, dead={})


def _turns(draw: random.Random, now: float) -> Iterator[Evaluation]:
    number = session = 0
    while number < TURNS:
        session += 1
        day = draw.random() * _DAYS
        tenant = draw.choices((TENANT, "globex", "northwind"), (3, 3, 4))[0]
        for place in range(draw.choice((1, 1, 2, 3))):
            at = now - (_DAYS - day) * _DAY + 50 * place
            if number < TURNS and at < now:
                yield _turn(draw, number, at, f"s{session}", tenant, is_new=day >= _RELEASED)
                number += 1


def _turn(
    draw: random.Random, number: int, at: float, session: str, tenant: str, *, is_new: bool
) -> Evaluation:
    topic = draw.choice(_topics())
    is_lost = is_new and tenant == TENANT and draw.random() < 0.6
    is_invented = is_lost or draw.random() < 0.07
    pages = {one: Context(text=one.passage, id=f"help/{at}") for at, one in enumerate(_topics(), start=1)}
    others = [page for one, page in pages.items() if one is not topic]
    right = replace(pages[topic], rank=0)
    found = (right, *draw.sample(others, 3))
    shown = found[1:3] if is_lost else found[:2]
    claims = (*topic.claims, topic.invented) if is_invented else topic.claims
    answer = " ".join(claims)
    record = Record(
        id=f"demo-{number:04}",
        question=draw.choice(topic.questions),
        answer=answer,
        contexts=shown,
        retrieved=found,
        stages=(
            Stage(name="search", query="", contexts=found),
            Stage(name="rerank", query="", contexts=shown),
        ),
        tags=(draw.choice(("web", "web", "phone")),),
        tenant=tenant,
        session=session,
        metadata={"version": VERSIONS[is_new], "route": draw.choice(("/ask", "/ask", "/chat"))},
        trace=TraceRef(trace_id=f"{number + 1:032x}", framework="langchain"),
        timings=Timings(started_at=at, total=draw.uniform(0.8, 3.0)),
    )
    return Evaluation(
        record_id=record.id,
        record=record,
        scores=tuple(_scores(draw, number, topic, claims, shown)),
        usage=Usage(
            requests=2, questions=6, prompt_tokens=900, completion_tokens=60, cost=0.0002, seconds=1.4
        ),
        diagnosis=_diagnosis(is_lost=is_lost, is_invented=is_invented),
        evaluated_at=at + 4,
        duration=draw.uniform(0.6, 2.5),
    )


def _scores(
    draw: random.Random, number: int, topic: _Topic, claims: tuple[str, ...], shown: tuple[Context, ...]
) -> Iterator[Score]:
    held = tuple(_verdict(claim, topic, shown) for claim in claims)
    useful = tuple(Verdict(about=one.text, kind="useful", value=one.text == topic.passage) for one in shown)
    found: dict[str, tuple[float, tuple[Verdict, ...]]] = {
        "faithfulness": (sum(verdict.value is True for verdict in held) / len(held), held),
        "context_precision": (float(bool(useful[0].value)), useful),
        "answer_relevancy": (min(max(draw.gauss(0.88, 0.06), 0.0), 1.0), ()),
    }
    for metric, (value, verdicts) in found.items():
        yield Score(
            id=f"demo-{metric}-{number}",
            metric=metric,
            status="scored",
            value=value,
            passed=value >= 0.7,
            threshold=0.7,
            inclusion_probability=_PICKED,
            verdicts=verdicts,
            provenance=_MADE,
        )


def _verdict(claim: str, topic: _Topic, shown: tuple[Context, ...]) -> Verdict:
    for place, context in enumerate(shown):
        if (start := context.text.find(claim)) >= 0:
            evidence = Evidence(context=place, start=start, end=start + len(claim), text=claim)
            return Verdict(about=claim, kind="supported", value=True, probability=0.95, evidence=(evidence,))
    reason = "no context says so" if claim == topic.invented else "the passage that says so was not shown"
    return Verdict(about=claim, kind="supported", value=False, probability=0.06, reason=reason)


def _diagnosis(*, is_lost: bool, is_invented: bool) -> Diagnosis:
    if is_lost:
        because = "passage 1 of search has more of what was asked, and was not shown"
        return Diagnosis(
            cause="passage_lost",
            rule="gain",
            strength=0.9,
            because=because,
            stage="search",
            lost=(0,),
            metric="faithfulness",
            claim=0,
            answered_anyway=True,
        )
    if is_invented:
        because = "no passage says what the answer says"
        return Diagnosis(cause="invented", rule="verdicts", strength=0.9, because=because, claim=2)
    return Diagnosis(backing="earned", because="a passage shown says it")


def _labels(draw: random.Random, turns: list[Evaluation]) -> Iterator[Label]:
    for one in draw.sample(turns, 40):
        is_good = one["faithfulness"].passed
        for who in ("Ann", "Bo")[: draw.choice((1, 1, 2))]:
            agrees = draw.random() < 0.9
            yield Label(
                record_id=one.record_id,
                value="good" if is_good == agrees else "bad",
                who=who,
                labelled_at=min(one.at + draw.uniform(1, 30) * 3600, turns[0].at + _DAYS * _DAY),
                note="" if agrees else "reads well all the same",
                drawn=0.02,
            )
