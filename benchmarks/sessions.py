"""Figures of turns that come in sessions: what intervals cover, when alarms are false, and how late.

    python benchmarks/sessions.py [-n 200] [--only TABLE]
    python benchmarks/sessions.py --month month.db [--falls]

The second form writes a results file with a made-up month: conversations of four tenants, a budget that
halves the sample, a weekly cycle; with --falls, a third of one tenant's answers goes wrong from day 20 on.

Binary scores at .9, sessions whose sizes are geometric and whose rates are beta, one after another or
interleaved, sampled as a Monitor samples them: all, a fifth, suspicious turns ten times as often, or with a
probability that halves in mid-run. Each share stands with the upper end of its own 95 % interval.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import get_args
from unittest.mock import patch

import numpy as np

# This folder's report.py would hide the tests of reports.
sys.path.pop(0)
sys.path.extend(str(Path(__file__).resolve().parents[1] / folder) for folder in ("tests", "tests/parts"))

from report.parts import month, results
from stats.session_parts import Array, Sampling, Traffic, Turns
from stats.streams import Codes, Mask, Streams, alarm_places, fall_places, first_told, in_rows
from steelyard.alarms import Alarm
from steelyard.stats import Sample, _estimate, alike_by, find_changes, pass_rate

KINDS = ((1, 0.0), (3, 0.1), (3, 0.3), (10, 0.0), (10, 0.2), (20, 0.3))
COUNTS = (10, 20, 50, 100, 200, 500, 1_000, 2_000)
_SAMPLINGS: tuple[Sampling, ...] = ("all", "fifth", "suspicion", "halving")
_SMALLEST = {"all": 1.0, "fifth": 0.2, "suspicion": 0.1, "halving": 0.2, "two processes": 0.02}
_TURNS = 10_000


def kinds() -> Iterator[Traffic]:
    """All kinds of traffic."""
    for size, alike in KINDS:
        for interleaved in (False, True) if size > 1 else (False,):
            yield Traffic(size=size, alike=alike, interleaved=interleaved)


def named(traffic: Traffic) -> str:
    """Its cell in the first column."""
    order = ", interleaved" if traffic.interleaved else ""
    return f"{traffic.size} turns, {traffic.alike:g}{order}"


def share(count: int, of: int) -> str:
    """A share with the upper end of its interval."""
    found = pass_rate([place < count for place in range(of)])
    assert found is not None
    return f"{found.value:.3f} (to {found.high:.3f})"


def coverage(rounds: int) -> None:
    """How often a 95 % interval holds the truth: over all kinds of traffic, by how turns are picked."""
    error = np.sqrt(0.95 * 0.05 / rounds)
    print(f"\ncoverage of 95 % intervals, {rounds} samples a cell, so each share is known to {error:.3f}:")
    print("the mean of all kinds of traffic (the lowest to the highest of a kind)")
    print("| turns | " + " | ".join(_SAMPLINGS) + " |\n|---:|" + "---:|" * len(_SAMPLINGS))
    for count in COUNTS:
        cells, worst = [], []
        for sample in _SAMPLINGS:
            shares = {named(kind): covered(replace(kind, sample=sample), count, rounds) for kind in kinds()}
            least = min(shares, key=lambda name: shares[name])
            cells.append(
                f"{np.mean(list(shares.values())):.3f} ({shares[least]:.3f} to {max(shares.values()):.3f})"
            )
            worst.append(f"{sample}: {least}")
        print(f"| {count:,} | " + " | ".join(cells) + " |", flush=True)
        print("lowest, " + "; ".join(worst), file=sys.stderr, flush=True)


def covered(traffic: Traffic, count: int, rounds: int) -> float:
    """The share of samples whose interval holds the truth."""
    draw, held = np.random.default_rng(count), 0
    for _ in range(rounds):
        turns = traffic.judged(draw, count)
        sample = Sample(values=turns.values, weights=1 / turns.inclusion, units=turns.sessions)
        found = sample.estimate(floor=_SMALLEST[traffic.sample])
        assert found is not None
        held += found.low <= traffic.mean <= found.high
    return held / rounds


def parts(rounds: int) -> None:
    """Coverage of 50 to 200 turns with parts of the interval taken out: what each holds up."""
    cells = [(replace(kind, sample=one), n) for kind, one, n in product(kinds(), _SAMPLINGS, (50, 100, 200))]
    print(f"\ncoverage of 50, 100 and 200 turns, {len(cells)} cells of {rounds} samples")
    print("| interval | cells above .98 | highest | below .93 | lowest |\n|---|---:|---:|---:|---:|")
    slope = _estimate.Weighed._slope
    ways: dict[str, dict[str, object]] = {
        "no continuity correction": {"_STEP": 0.0},
        "two prior degrees of freedom": {"_PRIOR_FREEDOM": 2.0},
        "no prior turn": {"Weighed._unseen": lambda _: 0.0},
        "no lean of zeros and ones": {
            "Weighed._slope": lambda of, ratio, *rest: (
                (1 - 2 * of.mean) * ratio if of.ends == 1 else slope(of, ratio, *rest)
            )
        },
    }
    taken = [
        ("as it is", {}),
        *ways.items(),
        ("without all four", {k: v for way in ways.values() for k, v in way.items()}),
    ]
    for name, changed in taken:
        with ExitStack() as changes:
            for part, value in changed.items():
                changes.enter_context(patch(f"{_estimate.__name__}.{part}", value))
            shares = [covered(traffic, count, rounds) for traffic, count in cells]
        above, below = sum(share > 0.98 for share in shares), sum(share < 0.93 for share in shares)
        print(f"| {name} | {above} | {max(shares):.3f} | {below} | {min(shares):.3f} |", flush=True)


def alarms(rounds: int) -> None:
    """Alarms over 10,000 healthy turns with the mean on target."""
    print(f"\nfalse alarms in {_TURNS:,} turns with the mean on target, {rounds} streams a cell")
    print("| sessions | " + " | ".join(_SAMPLINGS) + " |\n|---|" + "---:|" * len(_SAMPLINGS))
    for kind in kinds():
        cells = [share(false_alarms(replace(kind, sample=sample), rounds), rounds) for sample in _SAMPLINGS]
        print(f"| {named(kind)} | " + " | ".join(cells) + " |", flush=True)


def unknown(rounds: int) -> None:
    """Alarms over 10,000 healthy turns, 200 a day, if no turn has a session."""
    print(f"\nfalse alarms in {_TURNS:,} turns without sessions, {rounds} streams a cell")
    print("| sessions | Alarm(below=.9) |\n|---|---:|")
    for kind in kinds():
        count = watched(kind, rounds, told=False)
        print(f"| {named(kind)} | {share(count, rounds)} |", flush=True)


def weeks(rounds: int) -> None:
    """Alarms over 10,000 healthy turns whose mean goes up and down in the course of a week."""
    print(f"\nfalse alarms in {_TURNS:,} turns, a weekly swing of .03, 200 a day, {rounds} streams a cell")
    ways: dict[str, tuple[bool, float, Sampling]] = {
        "worse first": (True, -0.03, "all"),
        "a fifth judged": (True, -0.03, "fifth"),
        "better first": (True, 0.03, "all"),
        "without sessions": (False, -0.03, "all"),
    }
    print(f"| sessions | {' | '.join(ways)} |\n|---|{'---:|' * len(ways)}")
    for kind in kinds():
        cells = [
            share(watched(replace(kind, swing=swing, sample=sample), rounds, told=told), rounds)
            for told, swing, sample in ways.values()
        ]
        print(f"| {named(kind)} | " + " | ".join(cells) + " |", flush=True)


def learnt(rounds: int) -> None:
    """Alarms that learn what is normal: quiet weeks, and a fall while they learn or behind that."""
    rounds = (rounds + 1) // 2  # a stream takes a second here, with the classes and not in rows
    print(f"\nAlarm(falls_by=.03), 200 turns a day, a weekly swing of .03, {rounds} streams a cell")
    falls = {"nothing falls, 10,000 turns": _TURNS, "a fall of .1 after 50": 50, "150": 150, "1,600": 1_600}
    print(f"| sessions | {' | '.join(falls)} |\n|---|{'---:|' * len(falls)}")
    alarm = Alarm(metric="m", falls_by=0.03)
    for kind in kinds():
        traffic, cells = replace(kind, swing=-0.03), []
        for fall in falls.values():
            draw = np.random.default_rng(2)
            told = [first_told(alarm, *picked(traffic, draw, fall), a_day=200) >= 0 for _ in range(rounds)]
            cells.append(share(sum(told), rounds))
        print(f"| {named(kind)} | " + " | ".join(cells) + " |", flush=True)


def changes(rounds: int) -> None:
    """Periods of 14 days in which a change was told: none happened, or a fall of .1 on the tenth day."""
    print(f"\n14 days, 200 turns a day, a weekly swing of .03, {rounds} periods a cell")
    print("| sessions, judged | nothing changed | no turn says its session | fall of .1 | on its day |")
    print("|---|---:|---:|---:|---:|")
    for kind, sample in product(kinds(), (_SAMPLINGS[0], _SAMPLINGS[2])):
        traffic = replace(kind, swing=0.03, sample=sample)
        false, unknown = (
            sum(bool(told_changes(traffic, number, day=14, told=told)) for number in range(rounds))
            for told in (True, False)
        )
        found = [told_changes(traffic, number, day=9) for number in range(rounds)]
        near = sum(any(abs(day - 9) <= 1 for day in days) for days in found)
        cells = [share(count, rounds) for count in (false, unknown, sum(map(bool, found)), near)]
        print(f"| {named(kind)}, {sample} | " + " | ".join(cells) + " |", flush=True)


def days(rounds: int) -> None:
    """Periods of days whose means differ, in which nothing else changed."""
    print(
        f"\na change told though only days differ, sessions of 3 turns alike by .1, {rounds} periods a cell"
    )
    print("| standard deviation of days | 14 days, 200 turns a day | 28, 200 | 14, 1,000 | 28, 1,000 |")
    print("|---|" + "---:|" * 4)
    for apart in (0.0, 0.01, 0.02, 0.03):
        cells = []
        for a_day, long in product((200, 1_000), (14, 28)):
            traffic = Traffic(size=3, alike=0.1, swing=0.03, days=apart, a_day=a_day)
            told = sum(bool(told_changes(traffic, number, day=long, long=long)) for number in range(rounds))
            cells.append(share(told, rounds))
        print(f"| {apart:g} | " + " | ".join(cells) + " |", flush=True)
    print(f"\nalarms in {_TURNS:,} of these turns, 200 a day, {rounds} streams a cell")
    print("| standard deviation of days | below=.9 | below=.88 |\n|---|---:|---:|")
    for apart in (0.0, 0.01, 0.02, 0.03):
        traffic = Traffic(size=3, alike=0.1, days=apart)
        cells = [share(watched(traffic, rounds, below=below), rounds) for below in (0.9, 0.88)]
        print(f"| {apart:g} | " + " | ".join(cells) + " |", flush=True)


def told_changes(traffic: Traffic, seed: int, *, day: int, told: bool = True, long: int = 14) -> list[float]:
    """The days of the clear changes of a period in which a ninth of good answers goes wrong from a day on."""
    draw = np.random.default_rng(seed)
    turns = traffic.stream(draw, long * traffic.a_day)
    days = np.arange(len(turns.values)) / traffic.a_day
    values = np.where((days >= day) & (draw.random(len(days)) < 1 / 9), 0.0, turns.values)
    kept = np.flatnonzero(draw.random(len(days)) < turns.inclusion)
    values, inclusion, times = values[kept], turns.inclusion[kept], days[kept] * 86_400
    sessions: Sequence[Hashable] | None = turns.sessions[kept].tolist()
    if not told:
        sessions = alike_by([None] * len(kept), values, inclusion, times=times)[1]
    found = find_changes(values, times, inclusion=inclusion, sessions=sessions, sessions_known=told)
    return [change.since / 86_400 for change in found if change.difference.clear]


def picked(traffic: Traffic, draw: np.random.Generator, fall: int = _TURNS) -> tuple[Turns, Codes]:
    """The judged turns of 10,000 with their places; a ninth of good answers goes wrong from a turn on."""
    turns = traffic.stream(draw, _TURNS)
    wrong = draw.random(_TURNS) < 1 / 9 if fall < _TURNS else np.zeros(_TURNS, bool)
    places = np.flatnonzero(draw.random(_TURNS) < turns.inclusion)
    values = np.where(wrong & (np.arange(_TURNS) >= fall), 0.0, turns.values)[places]
    return Turns(values, turns.inclusion[places], turns.sessions[places]), places


def some(traffic: Traffic, rounds: int, *, told: bool = True) -> Iterator[Streams]:
    """Streams by the hundred, which is as many as fit into memory."""
    draw = np.random.default_rng(1)
    for left in range(rounds, 0, -100):
        yield in_rows((picked(traffic, draw) for _ in range(min(left, 100))), told=told)


def false_alarms(traffic: Traffic, rounds: int) -> int:
    """Streams that set off a `FallAlarm`."""
    return sum(
        int((fall_places(streams, target=traffic.mean) >= 0).sum()) for streams in some(traffic, rounds)
    )


def watched(traffic: Traffic, rounds: int, *, told: bool = True, below: float | None = None) -> int:
    """Streams that set off an alarm as a Monitor has it, which goes by the clock."""
    bar = traffic.mean if below is None else below
    return sum(
        int((alarm_places(streams, below=bar, a_day=traffic.a_day, told=told) >= 0).sum())
        for streams in some(traffic, rounds, told=told)
    )


def delays(rounds: int) -> None:
    """Turns until a fall from .9 to .8 is told, beside CUSUMs that know both."""
    draw, week = np.random.default_rng(3), 0.03 * np.sin(2 * np.pi * np.arange(_TURNS) / 1_400)
    # Without a week, and with one whose first half is the worse one.
    highest = [oracle(draw.random((2_000, _TURNS)) < 0.9 - swing).max(axis=1) for swing in (0.0, week)]
    limits = [float(np.quantile(one, 0.95)) for one in highest]
    fooled = float((highest[1] >= limits[0]).mean())
    drifts = oracle(draw.random((2_000, 1_000)) < 0.8)
    known = [np.median((drifts >= limit).argmax(axis=1)) + 1 for limit in limits]
    print(f"\na CUSUM that knows .9 and .8, false in .05 of {_TURNS:,} turns, tells it after {known[0]:.0f};")
    print(f"it is false in {fooled:.2f} if a week swings by .03. One that allows for that: {known[1]:.0f}")
    print(f"median turns until a fall from .9 to .8 is told, {rounds} streams a cell (its standard error)")
    print("| healthy turns before | FallAlarm | Alarm(below=.9), 200 a day | without sessions |")
    print("|---:|---:|---:|---:|")
    for before in (0, 500, 1_400, 3_000, 5_000, 8_000):
        streams = in_rows(picked(Traffic(), draw, before) for _ in range(rounds))
        found = (
            fall_places(streams, target=0.9),
            alarm_places(streams, below=0.9, a_day=200),
            alarm_places(streams, below=0.9, a_day=200, told=False),
        )
        print(f"| {before:,} | " + " | ".join(delay(one, before) for one in found) + " |", flush=True)
    thinned(rounds)


def thinned(rounds: int) -> None:
    """The same after 3,000 healthy turns, by how turns are picked; one that is not told counts as 7,000."""
    print("| picked | turns | judged of these |\n|---|---:|---:|")
    draw, before = np.random.default_rng(4), 3_000
    for sample in get_args(Sampling):
        streams = in_rows(picked(Traffic(sample=sample), draw, before) for _ in range(rounds))
        told = fall_places(streams, target=0.9)
        last = np.where(told < 0, _TURNS, told)[:, None]
        since = (streams.places >= before) & (streams.places <= last) & (streams.inclusion > 0)
        judged = np.median(since.sum(axis=1)[last[:, 0] >= before])
        print(f"| {sample} | {delay(told, before)} | {judged:.0f} |", flush=True)


def delay(places: Codes, before: int) -> str:
    """The median delay of the streams that were quiet before, with its standard error."""
    since = np.where(places < 0, _TURNS, places) + 1 - before
    since = since[since > 0]
    low, high = np.quantile(since, [0.5 - 0.5 / np.sqrt(len(since)), 0.5 + 0.5 / np.sqrt(len(since))])
    return f"{np.median(since):.0f} ({(high - low) / 2:.0f})"


def oracle(values: Mask) -> Array:
    """Page's CUSUM of the likelihood ratio of .8 to .9 after each turn of each stream."""
    found = np.zeros(values.shape)
    found += np.where(values, np.log(0.8 / 0.9), np.log(2))
    drift = np.zeros(len(values))
    for step in range(values.shape[1]):
        drift = np.maximum(drift + found[:, step], 0.0)
        found[:, step] = drift
    return found


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("-n", type=int, default=200, help="simulated samples or streams for each cell")
    tables: dict[str, Callable[[int], None]] = {
        "coverage": coverage,
        "parts": parts,
        "alarms": alarms,
        "unknown": unknown,
        "weeks": weeks,
        "learnt": learnt,
        "delays": delays,
        "changes": changes,
        "days": days,
    }
    parser.add_argument("--only", choices=tables)
    parser.add_argument("--month", type=Path, metavar="FILE", help="write a made-up month and end")
    parser.add_argument("--falls", action="store_true", help="with --month: one tenant's sessions fall")
    given = parser.parse_args()
    if given.month:
        results(given.month, month(np.random.default_rng(1), falls=given.falls))
        print(f"steelyard report --db {given.month}\nsteelyard serve --db {given.month}")
        return
    for name, table in tables.items():
        if given.only in (None, name):
            table(given.n)


if __name__ == "__main__":
    main()
