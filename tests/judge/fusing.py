"""Metrics of different depth, and a batcher that asks for them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

from judge_server import JudgeServer
from steelyard.judge import ChatJudge, OpenAIEmbedder
from steelyard.questions import (
    Claims,
    Embed,
    Fuse,
    GeneratedQuestions,
    MetricRun,
    Noncommittal,
    QuestionBatcher,
    Supported,
    Texts,
    Useful,
    Vector,
    YesNo,
    require,
)
from steelyard.record import Context, Record
from steelyard.scores import Score, Usage

RECORD = Record(
    id="r1",
    question="Where was Einstein born?",
    contexts=(Context(text="Einstein was born in Ulm."), Context(text="Ulm lies on the Danube.")),
    answer="In Ulm, in 1879.",
    reference="He was born in Ulm.",
)


@dataclass
class Asks:
    """A metric made of a function."""

    name: str
    rounds: Callable[[Record], MetricRun]

    def ask(self, record: Record) -> MetricRun:
        return self.rounds(record)


def scored(name: str, value: float) -> Score:
    return Score(metric=name, status="scored", value=value)


def shallow(record: Record) -> MetricRun:
    """One round."""
    useful = require((yield [Useful(context=0), Useful(context=1)]), YesNo)
    return scored("shallow", sum(answer.value for answer in useful) / 2)


def deep(record: Record) -> MetricRun:
    """Two rounds: claims, then a verdict on each."""
    (claims,) = require((yield [Claims()]), Texts)
    answers = require((yield [Supported(claim=claim) for claim in claims.items]), YesNo)
    return scored("deep", sum(answer.value for answer in answers) / len(answers))


def embeds(record: Record) -> MetricRun:
    """Two rounds, the last one by the embedder."""
    written, evades = yield [GeneratedQuestions(count=3), Noncommittal()]
    (questions,) = require([written], Texts)
    require([evades], YesNo)
    vectors = require((yield [Embed(text=text) for text in questions.items]), Vector)
    return scored("embeds", float(len(vectors)))


def ask(
    server: JudgeServer, metrics: Sequence[Asks], *, fuse: Fuse = "view", **options: Any
) -> tuple[dict[str, Score], Usage]:
    judge = ChatJudge("m", base_url=server.url, **options)
    embedder = OpenAIEmbedder(base_url=server.url)
    batcher = QuestionBatcher(judge=judge, embedder=embedder, fuse=fuse)

    async def main() -> list[Score]:
        async with aclosing(judge), aclosing(embedder):
            return await batcher.run(RECORD, metrics)

    return {score.metric: score for score in asyncio.run(main())}, batcher.usage


def three(record: Record) -> MetricRun:
    answers = require((yield [Supported(claim=claim) for claim in ("A a.", "B b.", "C c.")]), YesNo)
    return scored("three", sum(answer.value for answer in answers) / 3)
