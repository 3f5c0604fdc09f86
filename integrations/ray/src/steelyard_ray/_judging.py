"""What an actor does: it makes its judge once, and scores one batch after the other in a loop of its own."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from steelyard.engine import evaluate_one
from steelyard.errors import ConfigurationError
from steelyard.judge import StaticEmbedder, judge_from
from steelyard.metrics import default_metrics, parse_metrics
from steelyard.questions import Fuse
from steelyard.record import Record
from steelyard.scores import Evaluation


@dataclass(frozen=True, kw_only=True)
class JudgeSettings:
    """Who judges what, in a form that can be sent to another machine; keys are never part of it."""

    metrics: Sequence[str] = field(default=())
    """Names; none for the judge's default suite."""
    judge: str = "local"
    """`local`, `openai:MODEL` or `decisions:MODEL`."""
    base_url: str | None = None
    """The judge's server."""
    key_variable: str | None = None
    """The environment variable, on the machines that judge, with the server's key."""
    fuse: Fuse = "view"
    """How questions share requests."""
    deadline: float = 120.0
    """Seconds for one turn."""
    concurrency: int = 8
    """Turns in flight in one actor."""


class Judging:
    """Scores records with a judge of its own."""

    def __init__(self, settings: JudgeSettings) -> None:
        self._settings = settings
        self._judge = judge_from(
            settings.judge,
            base_url=settings.base_url,
            api_key=_key(settings.key_variable) if settings.key_variable else None,
            concurrency=settings.concurrency,
        )
        named = parse_metrics(list(settings.metrics), self._judge) if settings.metrics else None
        self.metrics = list(named or default_metrics(self._judge))
        self._embedder = StaticEmbedder()
        self._loop = asyncio.new_event_loop()

    def score(
        self, records: Sequence[Record], names: Sequence[Sequence[str]] | None = None, inclusion: float = 1.0
    ) -> list[Evaluation]:
        """Score some records.

        Args:
            records: The turns.
            names: For each, the metrics to score it with; all where None.
            inclusion: The probability with which they were picked.
        """
        return self._loop.run_until_complete(self._all(records, names, inclusion))

    async def _all(
        self, records: Sequence[Record], names: Sequence[Sequence[str]] | None, inclusion: float
    ) -> list[Evaluation]:
        slots = asyncio.Semaphore(self._settings.concurrency)

        async def one(at: int) -> Evaluation:
            chosen = self.metrics if names is None else [m for m in self.metrics if m.name in names[at]]
            async with slots:
                return await evaluate_one(
                    records[at],
                    chosen,
                    judge=self._judge,
                    embedder=self._embedder,
                    fuse=self._settings.fuse,
                    deadline=time.monotonic() + self._settings.deadline,
                    inclusion=inclusion,
                )

        return await asyncio.gather(*(one(at) for at in range(len(records))))


def _key(variable: str) -> str:
    key = os.environ.get(variable)
    if not key:
        raise ConfigurationError(f"the variable {variable} is not set on the machine that judges")
    return key
