"""Alarms over many streams of turns at once: arrays with a row a stream, by the formulas of `Watch`.

A stream takes seconds with the classes and milliseconds here; a test holds the two against each other. What
is left out: sessions that 500 others put out of mind, and everything behind the first alarm.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from stats.session_parts import Turns
from steelyard.alarms import Alarm
from steelyard.alarms import _season as season
from steelyard.alarms._watch import Watch
from steelyard.scores import Evaluation, Score
from steelyard.stats import FallAlarm, Neighbours
from steelyard.stats import _open_units as units
from steelyard.stats import _sequence as sequence

Array = npt.NDArray[np.float64]
Codes = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
_DAY = 86_400.0
_WEEK = 7 * _DAY
_BARE = 1e-12


@dataclass(frozen=True)
class Streams:
    """Judged turns, a row a stream; `inclusion` is 0 behind the end of one."""

    values: Array
    inclusion: Array
    sessions: Codes
    """-1 for a turn of its own."""
    places: Codes
    """Of each turn among all of its stream, judged or not."""


def in_rows(streams: Iterable[tuple[Turns, Codes]], *, told: bool = True) -> Streams:
    """Streams and the places of their turns as rows; none has a session unless it is told."""
    given = list(streams)
    rows, longest = len(given), max(len(turns.values) for turns, _ in given)
    values, inclusion = np.zeros((rows, longest)), np.zeros((rows, longest))
    sessions, places = np.full((rows, longest), -1), np.zeros((rows, longest), np.int64)
    for row, (turns, place) in enumerate(given):
        count = len(place)
        values[row, :count], inclusion[row, :count] = turns.values, turns.inclusion
        places[row, :count] = place
        # A session of one turn is as good as none, and needs no room.
        if told and len(np.unique(turns.sessions)) < count:
            sessions[row, :count] = turns.sessions
    return Streams(values, inclusion, sessions, places)


class _Sessions:
    """Some sums for each session of each stream, the first of which counts its turns."""

    def __init__(self, rows: int, count: int, sums: int) -> None:
        self.sums = np.zeros((sums, rows, max(count, 1)))
        self.rows = np.arange(rows)

    def seen(self, session: Codes) -> Array:
        found: Array = np.where(session >= 0, self.sums[:, self.rows, np.maximum(session, 0)], 0.0)
        found[:, found[0] >= units.LONGEST] = 0.0
        return found

    def put(self, session: Codes, after: Array, on: Mask) -> None:
        keep = on & (session >= 0)
        self.sums[:, self.rows[keep], session[keep]] = after[:, keep]


class _Bets:
    """`FallAlarm`."""

    def __init__(self, rows: int, sessions: int, target: float) -> None:
        self.target = target
        self.stakes = np.zeros((rows, len(sequence._BETS)))
        self.open = _Sessions(rows, sessions, 5)
        self.weights = np.zeros((2, rows))
        self.n = np.zeros(rows)
        self.smallest = np.ones(rows)

    def add(
        self,
        value: Array,
        inclusion: Array,
        session: Codes,
        on: Mask,
        usual: Array,
        doubt: Array,
        effect: Array,
    ) -> Array:
        """The evidence of each stream after its turn."""
        share = self.smallest / inclusion
        target = self.target + np.clip(usual, -sequence._MOST_USUAL, sequence._MOST_USUAL)
        least = target - np.where(doubt > 0, FallAlarm.most_doubt, 0.0)
        seen = self.open.seen(session)
        more = [np.ones_like(value), share * np.maximum(1 - least, 0), share * (value - target)]
        after = seen + np.stack([*more, share * doubt, share])
        sizes = self._bets(least)
        bets = np.where(
            (sizes * after[1][:, None] <= sequence._MOST_LOST) | (seen[0] == 0)[:, None], sizes, 0
        )
        opened = _kept(self.n) - _kept(self.n + 1)
        grown = (_factor(after, bets) / _factor(seen, bets)) ** (1 / effect[:, None])
        self.stakes = np.where(on[:, None], (self.stakes + opened[:, None]) * grown, self.stakes)
        self.weights += np.where(on, np.stack([1 / inclusion, 1 / inclusion**2]), 0.0)
        self.open.put(session, after, on)
        self.n += on
        found: Array = self.stakes @ sequence._PARTS + _kept(self.n)
        return found

    def _bets(self, target: Array) -> Array:
        weights, squares = self.weights
        typical = np.where(squares > 0, weights / np.maximum(squares, _BARE), self.smallest)
        larger = np.maximum(typical / self.smallest, 1.0)
        most = sequence._MOST_LOST / np.maximum(1 - target, sequence._NARROWEST)
        found: Array = np.minimum(sequence._BETS * larger[:, None], most[:, None])
        return found


def _factor(sums: Array, bets: Array) -> Array:
    _, _, total, doubt, share = sums[:, :, None]
    found: Array = 1 - bets * (total + np.minimum(bets * doubt, FallAlarm.most_doubt * share))
    return found


def _kept(n: Array) -> Array:
    return 1 / (1 + n / sequence._HORIZON)


class _Alike:
    """`OpenSums`."""

    def __init__(self, rows: int, sessions: int) -> None:
        self.open = _Sessions(rows, sessions, 3)
        self.pairs = np.zeros((3, rows))
        self.sums = np.zeros((6, rows))
        """Of w, w x, w x x, w w, w w x, w w x x."""

    def add(self, value: Array, inclusion: Array, session: Codes, on: Mask) -> None:
        w, x = 1 / inclusion, value
        self.sums += np.where(on, np.stack([w, w * x, w * x * x, w * w, w * w * x, w * w * x * x]), 0.0)
        seen = self.open.seen(session)
        _, before, values = seen
        pairs = np.stack([2 * before * w, w * (values + before * x), 2 * values * w * x])
        self.pairs += np.where(on & (session >= 0), pairs, 0.0)
        self.open.put(session, seen + np.stack([np.ones_like(x), w, w * x]), on)

    @property
    def variance(self) -> Array:
        w, wx, wxx, *_ = self.sums
        found: Array = np.maximum(wxx / w - (wx / w) ** 2, 0.0)
        return found

    @property
    def effect(self) -> Array:
        w, wx, _, ww, wwx, wwxx = self.sums
        weights, mixed, products = self.pairs
        mean = wx / w
        spread = wwxx - 2 * mean * wwx + mean * mean * ww
        grown = 1 + (products - 2 * mean * mixed + mean * mean * weights) / np.where(spread > 0, spread, 1.0)
        count = w * w / (ww + weights)
        found = np.maximum(grown * count / np.maximum(count - 1, 1.0), 1.0)
        return np.where((spread > 0) & (weights > 0), found, 1.0)


class _Order:
    """`Neighbours`."""

    def __init__(self, rows: int, steps: int) -> None:
        self.weight, self.value, self.alone = np.zeros(rows), np.zeros(rows), np.zeros(rows)
        self.away = np.zeros((rows, units._LAGS + steps))
        self.products = np.zeros((rows, units._LAGS))
        self.long, self.block, self.blocks = np.zeros((3, rows)), np.zeros(rows), np.zeros((0, rows))
        self.block_products = np.zeros((units._BLOCKS + 1, rows))
        self.effect = np.full(rows, Neighbours().design_effect)
        self.n = 0

    def add(self, value: Array, inclusion: Array, on: Mask) -> None:
        weight = 1 / inclusion
        self.weight = np.where(on, self.weight * units._KEPT + weight, self.weight)
        self.value = np.where(on, self.value * units._KEPT + weight * value, self.value)
        away = np.where(on, weight * (value - self.value / self.weight), 0.0)
        self.alone = self.alone * units._REMEMBERED + away * away
        self.products *= units._REMEMBERED
        self.products += away[:, None] * self.away[:, self.n : self.n + units._LAGS][:, ::-1]
        self.away[:, self.n + units._LAGS] = away
        self.n += 1
        self._add_to_block(weight, value, on)
        if self.n >= units._FEWEST and not self.n % units._STEP:
            self.effect = np.clip(np.maximum(self._near(), self._far()), 1.0, units._MOST_ALIKE)

    def _add_to_block(self, weight: Array, value: Array, on: Mask) -> None:
        sums = self.long[:2] * units._LONG + np.stack([weight, weight * value])
        away = np.where(on, weight * (value - sums[1] / sums[0]), 0.0)
        self.long = np.where(on, np.stack([*sums, self.long[2] * units._LONG + away * away]), self.long)
        self.block = self.block + away
        if self.n % units._BLOCK:
            return
        self.blocks = np.concatenate([self.block[None], self.blocks])[: units._BEHIND + units._BLOCKS + 1]
        self.block = np.zeros_like(self.block)
        settled = self.blocks[units._BEHIND :]
        self.block_products[: len(settled)] *= units._LONG**units._BLOCK
        self.block_products[: len(settled)] += settled[:1] * settled

    def _near(self) -> Array:
        lag = np.arange(1, min(self.n // 3, units._LAGS) + 1)
        alone = np.maximum(self.alone, units._SMALL)[:, None]
        alike = self.products[:, : len(lag)] / alone * self.n / (self.n - lag)
        found = 1 + np.cumsum(2 * alike, axis=1)
        ends = lag >= units._WINDOW * found
        ends[:, -1] = True
        return np.take_along_axis(found, ends.argmax(axis=1)[:, None], 1)[:, 0]

    def _far(self) -> Array:
        settled = self.n // units._BLOCK - units._BEHIND
        if settled < units._FEWEST_BLOCKS:
            return np.ones_like(self.block)
        blocks = units._counted(settled * units._BLOCK) / units._counted(units._BLOCK)
        lags = min(settled // 3, units._BLOCKS)
        window = 1 - np.arange(1, lags + 1) / (lags + 1)
        found = self.block_products[0] + 2 * window @ self.block_products[1 : lags + 1]
        one = units._BLOCK * np.maximum(self.long[2], units._SMALL) / units._counted(self.n)
        found = found / blocks / one - units._CHANCE * np.sqrt((2 + 4 * window @ window) / blocks)
        return np.asarray(found)


class _Weeks:
    """`Season`."""

    def __init__(self, rows: int) -> None:
        self.rows = np.arange(rows)
        self.first, self.begins = np.full(rows, np.nan), np.full(rows, np.nan)
        self.weeks = np.zeros(rows)
        self.now, self.past = np.zeros((rows, season._SLOTS, 3)), np.zeros((rows, season._SLOTS, 3))
        self.course = np.zeros((rows, season._SLOTS))
        self.between = np.full(rows, season._VARIANCE)
        self.weights = np.zeros((2, rows))

    def usual(self, at: Array) -> Array:
        day, hour = _slots(at)
        return self.course[self.rows, day] + self.course[self.rows, hour]

    def doubt(self, at: Array, smallest: Array, variance: Array) -> Array:
        weight, square = np.maximum(self.weights, _BARE)
        days = np.maximum(7 * self.weeks + np.nan_to_num(at - self.begins) / _DAY, 1e-9)
        of_a_day = np.maximum(variance * square / weight**2 * days, 1e-12)
        shared = np.where(self.weeks > 0, 1.0, np.minimum(days, 3.5))
        found = season._SHARE * smallest * weight / days * shared
        found /= 1 / self.between + self.weeks / of_a_day
        # A comparison with no first turn is False.
        return np.where(at >= self.first + _DAY, found, 0.0)

    def add(self, at: Array, value: Array, inclusion: Array, variance: Array, on: Mask) -> None:
        self.first = np.where(on & np.isnan(self.first), at, self.first)
        self.begins = np.where(on & np.isnan(self.begins), at, self.begins)
        for row in np.flatnonzero(on & (at >= self.begins + _WEEK)).tolist():
            self._close(row, float(variance[row]))
            self.begins[row] += _WEEK * ((at[row] - self.begins[row]) // _WEEK)
        weight = 1 / inclusion
        self.weights += np.where(on, np.stack([weight, weight * weight]), 0.0)
        told = np.stack([weight, weight * value, weight * weight], axis=1)[on]
        for slot in _slots(at):
            self.now[self.rows[on], slot[on]] += told

    def _close(self, row: int, variance: float) -> None:
        now = self.now[row]
        mean = now[:7, 1].sum() / now[:7, 0].sum()
        self.past[row] += now
        self.past[row, :, 1] -= mean * now[:, 0]
        self.weeks[row] += 1
        self.now[row] = 0.0
        days, hours = self.past[row, :7].tolist(), self.past[row, 7:].tolist()
        self.between[row], of_days = season._shrunk([(w, x, ww) for w, x, ww in days], variance)
        self.course[row] = of_days + season._shrunk([(w, x, ww) for w, x, ww in hours], variance)[1]


def _slots(at: Array) -> tuple[Codes, Codes]:
    return (at // _DAY).astype(np.int64) % 7, 7 + (at % _DAY // 3600).astype(np.int64)


def alarm_places(streams: Streams, *, below: float, a_day: int, told: bool = True) -> Codes:
    """The place of the turn that sets off `Alarm(below=...)`, for each stream; -1 where none does."""
    rows, steps = streams.values.shape
    count = int(streams.sessions.max()) + 1
    bets, alike, weeks = _Bets(rows, count, below), _Alike(rows, count), _Weeks(rows)
    order, found = _Order(rows, steps), np.full(rows, -1)
    for step in range(steps):
        on = (streams.inclusion[:, step] > 0) & (found < 0)
        if not on.any():
            break
        value, session = streams.values[:, step], streams.sessions[:, step]
        inclusion, at = np.where(on, streams.inclusion[:, step], 1.0), streams.places[:, step] / a_day * _DAY
        bets.smallest = np.where(on, np.minimum(bets.smallest, inclusion), bets.smallest)
        usual = weeks.usual(at)
        alike.add(value, inclusion, session, on)
        if not told:
            order.add(value - usual, inclusion, on)
        variance = alike.variance * (alike.effect if told else order.effect)
        doubt = weeks.doubt(at, bets.smallest, variance)
        weeks.add(at, value, inclusion, variance, on)
        effect = np.ones(rows) if told else order.effect
        evidence = bets.add(value, inclusion, session, on, usual, doubt, effect)
        crossed = on & (evidence >= 1 / 0.05)
        found[crossed] = streams.places[crossed, step]
    return found


def fall_places(streams: Streams, *, target: float) -> Codes:
    """The place of the turn that sets off `FallAlarm`, for each stream; -1 where none does."""
    rows, steps = streams.values.shape
    bets, found = _Bets(rows, int(streams.sessions.max()) + 1, target), np.full(rows, -1)
    bets.smallest = np.where(streams.inclusion > 0, streams.inclusion, 1.0).min(axis=1)
    none, one = np.zeros(rows), np.ones(rows)
    for step in range(steps):
        on = (streams.inclusion[:, step] > 0) & (found < 0)
        if not on.any():
            break
        inclusion = np.where(on, streams.inclusion[:, step], 1.0)
        evidence = bets.add(
            streams.values[:, step], inclusion, streams.sessions[:, step], on, none, none, one
        )
        crossed = on & (evidence >= 1 / 0.05)
        found[crossed] = streams.places[crossed, step]
    return found


def first_told(alarm: Alarm, turns: Turns, places: Codes, *, a_day: int, told: bool = True) -> int:
    """The place of the turn that sets off an alarm as a Monitor has it; -1 if none does."""
    watch = Watch.start(alarm)
    parts = (places, turns.values, turns.inclusion, turns.sessions)
    for place, value, inclusion, session in zip(*(one.tolist() for one in parts), strict=True):
        score = Score(metric=alarm.metric, status="scored", value=value, inclusion_probability=inclusion)
        at = place / a_day * _DAY
        turn = Evaluation(
            record_id=str(place),
            scores=(score,),
            session=str(session) if told else "",
            happened_at=at,
            evaluated_at=at,
        )
        if watch.take(alarm, turn) is not None:
            return int(place)
    return -1
