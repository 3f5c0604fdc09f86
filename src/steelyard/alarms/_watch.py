"""What one alarm knows: the turns before, those since things may have changed, and the bet on a fall.

Everything is plain numbers, which `steelyard._internal.typed` writes and reads, so that it survives a restart
and several processes can take turns with it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, Self

from steelyard.alarms._alarm import Alarm, bar_of
from steelyard.alarms._event import AlarmEvent, Range, WorstTurn, how_made, time_words
from steelyard.alarms._season import Season
from steelyard.scores import Evaluation, Score
from steelyard.stats import Estimate, FallAlarm, Moments, Neighbours, OpenSums

State = Literal["learning", "quiet", "fallen"]

_WORST = 5
_COURSE = 240
_SEEN = 512
"""Result ids remembered, so that a turn that is delivered again counts once."""
_LATE = 3600.0
"""Seconds by which a turn that was judged late may be behind the latest one and still speak of now."""
_LEVEL = 0.95
_LEAST_UNITS = 30.0
"""Fewer sessions hardly tell how much sessions differ."""
_LEAST_TARGET = 1e-3
"""There is no betting on a mean below 0."""


@dataclass(slots=True)
class Watch:
    """The state of one alarm."""

    fingerprint: str
    """Of the alarm this is the state of."""
    state: State = "quiet"
    """`learning` what is normal, `quiet`, or `fallen`."""
    smallest: float = 1.0
    """The lowest probability with which a turn was picked so far."""
    target: float | None = None
    """The quality in 0..1 that scores are compared with; None while learning."""
    turns: int = 0
    """Scored turns seen, ever."""
    last_at: float | None = None
    """When the latest of them happened, as Unix time."""
    late: int = 0
    """Turns that were judged late since something was last told, and count on the day they happened."""
    silent: bool = False
    """Whether silence was told."""
    lower_is_better: bool = False
    """As the metric's Scores say."""
    bet: FallAlarm | None = None
    """The bet on a fall, or on a recovery."""
    alike: OpenSums = field(default_factory=OpenSums)
    """How far turns of one session are alike."""
    order: Neighbours = field(default_factory=Neighbours)
    """How far neighbours are, which counts if no turn has a session."""
    season: Season = field(default_factory=Season)
    """The usual course of a week."""
    drift: float = 0.0
    """How far the scores have run below the target since `changed_at` (Page's CUSUM, Biometrika 41, 1954)."""
    changed_at: float | None = None
    """Since when the scores may be different."""
    alike_at_first: float = 1.0
    """While learning, how alike turns were in the first half: a fall makes those of both halves alike."""
    before: Moments = field(default_factory=Moments)
    """Of the turns until then; while learning, of the first half of them."""
    since: Moments = field(default_factory=Moments)
    """Of the turns since then; while learning, of the second half."""
    normal: Moments = field(default_factory=Moments)
    """With `falls_by`: of all turns while nothing has fallen."""
    learned: int = 0
    """How often the target was set from them."""
    learnt: str = ""
    """What their mean was when it was set last, and of which time they were."""
    worst: list[WorstTurn] = field(default_factory=list)
    """The worst turns since then."""
    judge_before: str = ""
    """How the scores before were made."""
    judge: str = ""
    """How the last score was made."""
    seen: dict[str, None] = field(default_factory=dict)
    """The last results, by id, oldest first."""
    course: list[tuple[float, float]] = field(default_factory=list)
    """When, and what the stake of the bet had become then; thinned, the older the more."""

    @classmethod
    def start(cls, alarm: Alarm) -> Self:
        """The state before the first turn."""
        watch = cls(alarm.fingerprint)
        if alarm.falls_by is None:
            bar = alarm.below if alarm.below is not None else alarm.above
            assert bar is not None
            watch.target = alarm.quality(bar, lower_is_better=False)
        else:
            watch.state = "learning"
        return watch

    def take(self, alarm: Alarm, evaluation: Evaluation) -> AlarmEvent | None:
        """Take a turn into account; what there is to tell, if anything."""
        score = next((one for one in evaluation.scores if one.metric == alarm.metric), None)
        if score is None or score.value is None or not alarm.matches(evaluation.record):
            return None
        identity = score.id or f"{evaluation.record_id}:{score.metric}"
        lower = score.direction == "lower"
        quality = alarm.quality(score.value, lower_is_better=lower)
        if quality is None or identity in self.seen:
            return None
        self.seen[identity] = None
        if len(self.seen) > _SEEN:
            del self.seen[next(iter(self.seen))]
        self.turns += 1
        late = self._is_late(evaluation)
        self.last_at = max(evaluation.at, self.last_at or evaluation.at)
        self.silent = False
        self.lower_is_better = lower
        self.judge = how_made(score.provenance)
        if late:
            self.late += 1
            self.before.add(quality, score.inclusion_probability)
            return None
        self._remember(evaluation, score, quality)
        # No plan knows it: budgets, throttles and rules that change thin the sample further. No turn may
        # count for less than it stands for, so the bet is sized by the smallest probability seen.
        self.smallest = min(self.smallest, score.inclusion_probability)
        return self._step(alarm, quality, score.inclusion_probability, evaluation)

    def _is_late(self, evaluation: Evaluation) -> bool:
        """Whether a turn says something of the past alone: the bet is on what happens now.

        Both times are asked, so that neither turns that are all judged at night nor a clock that is ahead
        keep an alarm from hearing of a fall.
        """
        if self.target is None or self.last_at is None:
            return False
        at = evaluation.at
        return at < self.last_at - _LATE and at < evaluation.evaluated_at - _LATE

    def silence(self, alarm: Alarm, now: float) -> AlarmEvent | None:
        """What there is to tell if no turn was scored for too long."""
        if alarm.silent_after is None or self.last_at is None or self.silent:
            return None
        if now - self.last_at < alarm.silent_after:
            return None
        self.silent = True
        return self._event(alarm, "silent", now)

    def _estimate(self, sums: Moments, level: float = _LEVEL) -> Estimate | None:
        return sums.estimate(level=level, floor=self.smallest, design_effect=self.design_effect)

    @property
    def design_effect(self) -> float:
        """How many times the variance is what it would be if turns were independent."""
        return self.order.design_effect if self.by_order else self.alike.design_effect

    @property
    def by_order(self) -> bool:
        """Whether no turn says which session it is of, so that its neighbours tell what it resembles."""
        return not self.alike.open

    def _step(
        self, alarm: Alarm, quality: float, inclusion: float, evaluation: Evaluation
    ) -> AlarmEvent | None:
        at, session = evaluation.at, evaluation.unit
        usual = self.season.usual(at)
        self.alike.add(quality, inclusion, session=session)
        if self.by_order:
            self.order.add(quality - usual, inclusion)
        variance = self._variance() * self.design_effect
        doubt = self.season.doubt(at, smallest=self.smallest, variance=variance)
        if self.state != "fallen":
            self.season.add(at, quality, inclusion, variance=variance)
        learning = self.target is None
        if alarm.falls_by is not None and self.state != "fallen":
            self._learn(alarm, quality, inclusion)
        if learning:
            self.judge_before = self.judge
            return None
        # A recovery is a fall of the mirrored scores.
        usual = -usual if self.state == "fallen" else usual
        self._follow(quality, inclusion, at, usual - min(doubt, FallAlarm.most_doubt))
        goes_off = self._bet(alarm, quality, inclusion, session=session, usual=usual, doubt=doubt)
        self._note(at)
        if not goes_off:
            return None
        kind: Literal["fell", "recovered"] = "recovered" if self.state == "fallen" else "fell"
        event = self._event(alarm, kind, at)
        self._turn_over(kind)
        self.late = 0
        return event

    def _note(self, at: float) -> None:
        assert self.bet is not None
        self.course.append((round(at), round(self.bet.evidence, 4)))
        if len(self.course) > _COURSE:
            del self.course[1::2]

    def _variance(self) -> float:
        turns = self.alike.turns
        mean = turns.value / turns.weight
        return max(turns.value_value / turns.weight - mean * mean, 0.0)

    def _learn(self, alarm: Alarm, quality: float, inclusion: float) -> None:
        """Set the target, `falls_by` below the mean so far, and by no less than that mean may be off by.

        It is set after `baseline` turns of 30 sessions or more, however alike they are, since a fall among
        them makes them alike too; and raised where twice, four times, ... as many allow it; a slow fall never
        lowers it. The mean is below the lower end of its interval with a quarter of alpha the first time, an
        eighth the second, and so on; the bet has the other half.
        """
        assert alarm.falls_by is not None
        self.normal.add(quality, inclusion)
        if self.target is None:
            first = self.normal.n <= alarm.baseline // 2
            (self.before if first else self.since).add(quality, inclusion)
            self.alike_at_first = self.design_effect if first else self.alike_at_first
        if self.normal.n < alarm.baseline << self.learned or self.alike.units < _LEAST_UNITS:
            return
        missed = alarm.alpha / 4 / 2**self.learned
        self.learned += 1
        mean = self._estimate(self.normal, 1 - 2 * missed)
        halves = self._fell_meanwhile() if self.target is None else ()
        if halves:
            # What they were before is normal, so that the fall is told.
            mean = self.before.estimate(level=1 - 2 * missed, design_effect=self.alike_at_first)
            self.order = Neighbours()
        assert mean is not None
        self._aim(alarm, mean, halves)

    def _aim(self, alarm: Alarm, mean: Estimate, halves: Sequence[Estimate]) -> None:
        """Set the target by what is normal; `halves` of the turns that were learnt from, if they fell."""
        low, high = alarm.range
        target = min(mean.value - (alarm.falls_by or 0.0) / (high - low), mean.low)
        if target > (self.target or 0.0):
            times = [time_words(at) for at in (self.season.first, self.last_at) if at is not None]
            self.learnt = f"{self.range_of(alarm, self.normal)}, {' to '.join(times)}"
            if halves:
                ends = " to ".join(f"{self._shown(alarm, half.value):.3f}" for half in halves)
                self.learnt += f"; they fell meanwhile, from {ends}: the first half is compared with"
        if self.target is None:
            self.state, self.worst = "quiet", []
            self.before, self.since = self.before if halves else replace(self.normal), Moments()
        self.target = max(target, self.target or 0.0, _LEAST_TARGET)

    def _fell_meanwhile(self) -> Sequence[Estimate]:
        """The halves of the turns that were learnt from, if the second is clearly worse."""
        # A fall makes turns alike: the first half tells how alike they are.
        one, other = (half.estimate(design_effect=self.alike_at_first) for half in (self.before, self.since))
        return (one, other) if one is not None and other is not None and one.low > other.high else ()

    def _follow(self, quality: float, inclusion: float, at: float, usual: float) -> None:
        assert self.target is not None
        gap = self.target - quality if self.state != "fallen" else quality - self.target
        gap += usual
        # In units of the largest weight a turn can have, so that no step is larger than 1.
        self.drift += gap * self.smallest / inclusion
        self.since.add(quality, inclusion)
        if self.changed_at is None:
            self.changed_at = at
        # Nothing is left that speaks for a change: these turns are like those before.
        if self.drift <= 0:
            if self.state != "fallen":
                self.judge_before = self.judge
                self.worst = []
            self.drift = 0.0
            self.before.merge(self.since)
            self.since, self.changed_at = Moments(), None

    def _bet(
        self,
        alarm: Alarm,
        quality: float,
        inclusion: float,
        *,
        session: str | None,
        usual: float,
        doubt: float,
    ) -> bool:
        assert self.target is not None
        fallen = self.state == "fallen"
        alpha = 1 / bar_of(alarm)
        target = 1 - self.target if fallen else self.target
        bet = self.bet = self.bet or FallAlarm(target=target)
        bet.target, bet.alpha, bet.smallest_inclusion = target, alpha, self.smallest
        return bet.add(
            1 - quality if fallen else quality,
            inclusion,
            session=session,
            usual=usual,
            doubt=doubt,
            design_effect=self.design_effect if self.by_order else 1.0,
        )

    def _turn_over(self, kind: Literal["fell", "recovered"]) -> None:
        self.state = "fallen" if kind == "fell" else "quiet"
        # What the bet on the fall has won says nothing about the way back.
        self.bet, self.drift, self.changed_at = None, 0.0, None
        # A change of the level looks like turns that are alike.
        self.order = Neighbours()
        self.season.forget_week()
        self.before, self.since, self.worst = self.since, Moments(), []
        self.judge_before = self.judge

    def _remember(self, evaluation: Evaluation, score: Score, quality: float) -> None:
        assert score.value is not None
        turn = WorstTurn(
            record_id=evaluation.record_id,
            trace_id=(evaluation.trace.trace_id or "") if evaluation.trace else "",
            value=score.value,
            quality=quality,
        )
        self.worst = sorted([*self.worst, turn], key=lambda one: one.quality)[:_WORST]

    def _event(self, alarm: Alarm, kind: Literal["fell", "recovered", "silent"], at: float) -> AlarmEvent:
        return AlarmEvent(
            alarm=alarm.label,
            kind=kind,
            metric=alarm.metric,
            slice=alarm.slice,
            at=at,
            since=self.changed_at if kind != "silent" else self.last_at,
            target=self.shown_target(alarm),
            learnt=self.learnt,
            before=None if self.target is None else self.range_of(alarm, self.before),
            now=self.range_of(alarm, self.normal if self.target is None else self.since),
            late=self.late,
            by_order=self.order.design_effect if self.by_order else 0.0,
            alpha=alarm.alpha,
            judge_before=self.judge_before,
            judge_now=self.judge,
            worst=tuple(self.worst) if kind == "fell" else (),
            link=alarm.link,
        )

    def shown_target(self, alarm: Alarm) -> float | None:
        """What turns are compared with, in the metric's values; None while learning."""
        return None if self.target is None else self._shown(alarm, self.target)

    def range_of(self, alarm: Alarm, sums: Moments) -> Range | None:
        """The mean of some turns with its interval, in the metric's values; None of none."""
        estimate = self._estimate(sums)
        if estimate is None:
            return None
        ends = sorted(self._shown(alarm, end) for end in (estimate.low, estimate.high))
        return Range(value=self._shown(alarm, estimate.value), low=ends[0], high=ends[1], turns=estimate.n)

    def _shown(self, alarm: Alarm, quality: float) -> float:
        return alarm.value(quality, lower_is_better=self.lower_is_better)
