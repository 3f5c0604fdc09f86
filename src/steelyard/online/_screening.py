"""The screen at work: it scores every turn that it is given, and says how much the judge would tell of it."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace

from steelyard._internal.logs import SafeLogger
from steelyard._internal.warn_once import WarnOnce
from steelyard.engine import evaluate_one
from steelyard.online._school import School
from steelyard.online.config._options import MonitorOptions
from steelyard.online.queue._turns import Seen, Selected
from steelyard.online.selection._allocation import Allocation, least_share
from steelyard.scores import Evaluation, Score

_log = SafeLogger("steelyard.online")
_ENOUGH = 20
"""Turns without any score by the screen, from the first on, after which it is said to fail."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ScreenReading:
    """What a Monitor's screen has done."""

    name: str
    """The screen's name."""
    seen: int = 0
    """Turns that it was asked about."""
    failed: int = 0
    """Of those, turns of which it said nothing."""
    judged: int = 0
    """Of those, turns that the judge scored as well."""
    fitted: str = ""
    """The version of what it has learnt from the judge; empty while that is nothing."""


def joined(seen: Evaluation, judged: Evaluation) -> Evaluation:
    """The judge's Evaluation with the screen's Scores, and what both cost."""
    return judged.replace(
        screen=seen.screen, usage=seen.usage + judged.usage, duration=seen.duration + judged.duration
    )


def cut_off(seen: Evaluation, inclusion: Mapping[str, float]) -> Evaluation:
    """The Evaluation of a turn for which there was no room in the budget any more."""
    scores = tuple(
        replace(
            Score.failed(name, cause="over_budget", explanation="the budget had no room for it"),
            inclusion_probability=share,
        )
        for name, share in inclusion.items()
    )
    return seen.replace(scores=scores)


def said_of(evaluation: Evaluation) -> dict[str, float | None]:
    """By metric, what the screen said in 0..1: the value it expects of the judge if fitted, else its own."""
    found = {}
    for score in evaluation.screen:
        said = score.value if score.calibrated_value is None else score.calibrated_value
        found[score.metric] = None if said is None or score.value is None else min(max(said, 0.0), 1.0)
    return found


class Screening:
    """Asks the screen, and learns from what the judge says afterwards where the judge is needed."""

    def __init__(self, options: MonitorOptions) -> None:
        assert options.screen is not None
        self._options = options
        self._screen = options.screen
        self._allocation = Allocation(options.screen_floor)
        self._reading = ScreenReading(name=options.screen.name)
        self._school = School(options) if options.screen_file and options.judge else None
        self._warn = WarnOnce(_log)

    @property
    def reading(self) -> ScreenReading:
        """What it has done so far."""
        return self._reading

    async def look(self, turn: Selected) -> Evaluation:
        """Have the screen score a turn; whatever goes wrong ends up on its Scores."""
        options = self._options
        made = await evaluate_one(
            turn.record,
            options.screened,
            judge=self._screen,
            embedder=options.embedder,
            fuse=options.fuse,
            deadline=time.monotonic() + options.deadline,
            inclusion=turn.screened,
            score_guesses=options.score_guesses,
            diagnosing=False,
        )
        seen = made.replace(scores=(), screen=made.scores)
        return seen if self._school is None else self._school.apply(seen)

    def failed(self, turn: Selected) -> Evaluation:
        """The turn after a screen that did not come to an end."""
        return Evaluation(
            record_id=turn.record.id,
            scores=(),
            screen=tuple(
                Score.failed(metric.name, cause="deadline", explanation="the screen did not come to an end")
                for metric in self._options.screened
            ),
            record=turn.record,
            trace=turn.record.trace,
            evaluated_at=time.time(),
        )

    def weigh(self, turn: Selected, evaluation: Evaluation, *, drawn: bool = False) -> Seen:
        """With which probability the judge is asked about a turn, now that the screen has spoken.

        Args:
            turn: The turn.
            evaluation: What the screen said of it.
            drawn: Whether it waits for the judge since a draw of which nothing was kept, as of a worker
                without a screen: it was at no lower rate than the least there is, so that this one is right.
        """
        said = said_of(evaluation)
        share = self._allocation.share(said)
        if drawn:
            share = least_share(self._options.screen_floor)
        # Who wants all turns of a kind judged wants all of them.
        rate = 1.0 if turn.rate >= 1 else min(turn.rate * share, turn.screened)
        self._count(nothing=all(value is None for value in said.values()))
        return Seen(evaluation=evaluation, rate=rate)

    def learn(self, evaluation: Evaluation) -> None:
        """The judge has scored a turn that the screen saw."""
        self._reading = replace(self._reading, judged=self._reading.judged + 1)
        if self._school is not None:
            self._school.learn(evaluation)
            self._reading = replace(self._reading, fitted=self._school.version)
        said = said_of(evaluation)
        for score in evaluation.scores:
            if score.value is not None and score.metric in said:
                self._allocation.learn(
                    score.metric, said[score.metric], score.value, score.inclusion_probability
                )

    def _count(self, *, nothing: bool) -> None:
        reading = self._reading
        self._reading = replace(reading, seen=reading.seen + 1, failed=reading.failed + nothing)
        if self._reading.seen == self._reading.failed == _ENOUGH:
            self._warn(
                "fails",
                "the screen %r has scored none of %d turns; the judge goes on as if there were none. "
                "Evaluation.screen says why",
                self._screen.name,
                _ENOUGH,
            )


def screening_of(options: MonitorOptions) -> Screening | None:
    """The screen at work, where there is one and something for it to score."""
    if not options.screened:
        return None
    if options.screen_floor == 0:
        _log.warning(
            "screen_floor is 0: turns of which the screen is sure keep a tenth of their rate, "
            "so that no turn is impossible and every figure stays true"
        )
    return Screening(options)
