"""Bars that are learned: what 95 % of earlier turns reached, as a sink knows it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence

from steelyard.metrics import Metric, held_against
from steelyard.scores import Evaluation, Score
from steelyard.sinks import KnowsEarlierScores, Sink

_EVERY = 3600.0
"""Seconds between two looks at what is stored."""


class Baselines:
    """Holds scores against what 95 % of earlier turns reached, as the first sink that knows says."""

    def __init__(self, metrics: Sequence[Metric], sinks: Sequence[Sink]) -> None:
        self._learned = frozenset(metric.name for metric in metrics if metric.threshold == "baseline")
        self._known = next((sink for sink in sinks if isinstance(sink, KnowsEarlierScores)), None)
        self._bars: dict[object, tuple[float, float | None]] = {}

    async def apply(self, evaluation: Evaluation) -> Evaluation:
        """The Evaluation with a verdict for each score whose bar is learned, as far as it is known yet."""
        if not self._learned or self._known is None:
            return evaluation
        scores = [
            await self._held(self._known, score) if score.metric in self._learned else score
            for score in evaluation.scores
        ]
        return evaluation.replace(scores=tuple(scores))

    async def _held(self, known: KnowsEarlierScores, score: Score) -> Score:
        if score.value is None:
            return score
        key = (score.metric, score.options, score.provenance)
        due, bar = self._bars.get(key, (0.0, None))
        if time.monotonic() >= due:
            # Set first: turns that are judged meanwhile go by the bar there was.
            self._bars[key] = (time.monotonic() + _EVERY, bar)
            bar = await asyncio.to_thread(known.baseline, score, now=time.time())
            self._bars[key] = (time.monotonic() + _EVERY, bar)
        return held_against(score, bar)
