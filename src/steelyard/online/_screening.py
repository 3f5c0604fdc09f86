"""The screen at work: it scores every turn that it is given, and says how much the judge would tell of it."""

from __future__ import annotations

import time
from collections import defaultdict, deque
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steelyard._internal.logs import SafeLogger, WarnOnce
from steelyard._internal.text import error_words
from steelyard.calibration import FittedScreen, Lesson, findings_of, fit_screen, made_by
from steelyard.engine import evaluate_one
from steelyard.online._options import MonitorOptions
from steelyard.online.queue._turns import Seen, Selected
from steelyard.scores import Evaluation, Score

_log = SafeLogger("steelyard.online")
_ENOUGH = 20
"""Turns without any score by the screen, from the first on, after which it is said to fail."""
_BINS = 8
_PRIOR = 10.0
"""As many verdicts speak for a bin's varying like all together."""
_NOTHING = 1e-300  # a mean over nothing is 0
_FIRST = 200
_MOST = 3_200
"""Lessons that are kept of each metric, the latest; a map takes some tens of milliseconds then."""


class School:
    """Draws a map after 200 turns that both judges scored, and anew whenever there are twice as many.

    A map is drawn from earlier turns and serves later ones alone: a turn's own verdict is never in what its
    screen said of it.
    """

    def __init__(self, options: MonitorOptions) -> None:
        assert options.screen is not None and options.judge is not None
        self._path = options.screen_file
        self._screen = (options.screen.name, options.screen.prompt_version)
        self._judge = (options.judge.name, options.judge.prompt_version)
        self._lessons: defaultdict[str, deque[Lesson]] = defaultdict(lambda: deque(maxlen=_MOST))
        self._due: defaultdict[str, int] = defaultdict(lambda: _FIRST)
        self._warn = WarnOnce(_log)
        self._fitted = FittedScreen.load(self._path)
        if self._fitted is not None and (self._fitted.screen, self._fitted.judge) != (
            self._screen,
            self._judge,
        ):
            _log.warning(
                "what %s holds was learnt by %r from %r, and is not applied to %r and %r; they learn anew",
                *(self._path, self._fitted.screen[0], self._fitted.judge[0]),
                *(self._screen[0], self._judge[0]),
            )
            self._fitted = None
        for metric, known in ({} if self._fitted is None else self._fitted.maps).items():
            # Fewer turns than it was made from would make a worse one.
            self._due[metric] = max(_FIRST, min(known.turns, _MOST))

    @property
    def version(self) -> str:
        """Of the maps in force; empty of none."""
        return "" if self._fitted is None else self._fitted.version

    def apply(self, evaluation: Evaluation) -> Evaluation:
        """The turn with what the judge is expected to say of it."""
        return evaluation if self._fitted is None else self._fitted.apply(evaluation)

    def learn(self, evaluation: Evaluation) -> None:
        """Take a turn into account that both have scored."""
        seen = {score.metric: score for score in evaluation.screen if score.value is not None}
        for score in evaluation.scores:
            screen = seen.get(score.metric)
            if screen is None or score.value is None:
                continue
            # What another screen found, while the turn waited for its judge, would teach something else.
            if made_by(screen.provenance) != self._screen:
                continue
            lessons = self._lessons[score.metric]
            lessons.append(
                Lesson(
                    found=findings_of(screen),
                    judged=min(max(score.value, 0.0), 1.0),
                    inclusion=score.inclusion_probability,
                    session=evaluation.unit,
                )
            )
            if len(lessons) >= self._due[score.metric]:
                self._due[score.metric] = min(2 * self._due[score.metric], _MOST + 1)
                self._draw(score.metric)

    def _draw(self, metric: str) -> None:
        """Draw a metric's map; one that does not help leaves none in force."""
        maps = {} if self._fitted is None else dict(self._fitted.maps)
        made = fit_screen(self._lessons[metric])
        if made is None:
            _log.info("the screen learns nothing for %s: a map leaves as much as its own value does", metric)
            if maps.pop(metric, None) is None:
                return
        else:
            maps[metric] = made
        self._fitted = FittedScreen(screen=self._screen, judge=self._judge, maps=maps)
        try:
            self._fitted.save(self._path)
        except OSError as error:
            self._warn(
                "file",
                "what the screen has learnt cannot be stored: %s; name a file that can be written",
                error_words(error),
            )


class Allocation:
    """What the rates of turns are multiplied by: the judge looks more often where the screen has said little.

    Turns fall into bins by what the screen said of them. From the judge's verdicts so far it is known how
    much they vary within each bin, and the best use of a given number of verdicts is to pick from each bin in
    proportion to that standard deviation (Neyman, Journal of the Royal Statistical Society 97, 1934). A share
    of its own rate is left to every turn, and bins with few verdicts count as varying like all together, so
    that a screen that tells nothing, or the wrong thing, costs next to nothing. What a turn's rate is
    multiplied by depends on earlier turns alone: it is known before the draw, and is stored on the Score. Its
    mean over turns is 1.

    Args:
        floor: The share of its own rate that every turn keeps.
    """

    def __init__(self, floor: float) -> None:
        self._floor = floor
        # By metric, and then by bin: turns that the screen saw, verdicts, the turns that these stand for, and
        # the sums of the verdicts and of their squares over those turns.
        self._bins: defaultdict[str, NDArray[np.float64]] = defaultdict(lambda: np.zeros((5, _BINS)))

    def share(self, said: Mapping[str, float | None]) -> float:
        """What the rate of a turn is multiplied by; counts the turn.

        Args:
            said: By metric, what the screen said, in 0..1; None where it said nothing.
        """
        shares = [self._share(metric, value) for metric, value in said.items() if value is not None]
        return sum(shares) / len(shares) if shares else 1.0

    def learn(self, metric: str, said: float | None, value: float, inclusion: float) -> None:
        """The judge has scored a turn of which the screen said this."""
        if said is not None:
            value, weight = min(max(value, 0.0), 1.0), 1 / inclusion
            self._bins[metric][1:, _place(said)] += (1, weight, weight * value, weight * value * value)

    def _share(self, metric: str, said: float) -> float:
        bins = self._bins[metric]
        bins[0, _place(said)] += 1
        seen, judged, *sums = bins
        pooled = float(_variance(*(part.sum() for part in sums)))
        if pooled <= 0:
            return 1.0
        deviations = np.sqrt((judged * _variance(*sums) + _PRIOR * pooled) / (judged + _PRIOR))
        own = float(deviations[_place(said)] / np.average(deviations, weights=seen))
        return self._floor + (1 - self._floor) * own


def _variance(weight: Any, total: Any, squares: Any) -> Any:
    weight = np.maximum(weight, _NOTHING)
    return np.maximum(squares / weight - (total / weight) ** 2, 0.0)


def _place(said: float) -> int:
    return min(max(int(said * _BINS), 0), _BINS - 1)


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
        found[score.metric] = None if said is None else min(max(said, 0.0), 1.0)
    return found


class Screening:
    """Asks the screen, and learns from what the judge says afterwards where the judge is needed."""

    def __init__(self, options: MonitorOptions) -> None:
        assert options.screen is not None
        if options.screen_floor == 0:
            _log.warning(
                "screen_floor is 0: turns of which the screen is sure keep a tenth of their rate, "
                "so that no turn is impossible and every figure stays true"
            )
        self._options = options
        self._screen = options.screen
        self._allocation = Allocation(options.least_share)
        self._reading = ScreenReading(name=options.screen.name)
        self._school = School(options) if options.screen_file and options.judge else None
        self._warn = WarnOnce(_log)

    @property
    def reading(self) -> ScreenReading:
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
            share = self._options.least_share
        # Who wants all turns of a kind judged wants all of them.
        rate = 1.0 if turn.rate >= 1 else min(turn.rate * share, turn.screened)
        self._count(nothing=all(value is None for value in said.values()))
        return Seen(evaluation=evaluation, rate=rate)

    def learn(self, evaluation: Evaluation) -> None:
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
