"""Figures of turns that come in sessions: what intervals cover, when alarms are false, and how late.

    python benchmarks/sessions.py [-n 200] [--only coverage|alarms|unknown|weeks|delays|changes]
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
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import get_args

import numpy as np

# This folder's report.py would hide the tests of reports.
sys.path.pop(0)
sys.path.append(str(Path(__file__).resolve().parents[1] / "tests"))

from report.parts import month, results
from stats.session_parts import Array, Sampling, Traffic, Turns
from steelyard.alarms import Alarm
from steelyard.alarms._watch import Watch
from steelyard.scores import Evaluation, Score
from steelyard.stats import FallAlarm, Sample, find_changes, pass_rate

KINDS = ((1, 0.0), (3, 0.1), (3, 0.3), (10, 0.0), (10, 0.2), (20, 0.3))
COUNTS = (10, 20, 50, 100, 200, 500, 1_000, 2_000)
_SAMPLINGS: tuple[Sampling, ...] = get_args(Sampling)
_SMALLEST = {"all": 1.0, "fifth": 0.2, "suspicion": 0.1, "halving": 0.2}
_TURNS = 10_000
_ORACLE_LIMIT = 8.5
"""With which a CUSUM that knows .9 and .8 is false in .05 of 10,000 turns; `delays` prints that it is."""


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
        count = watched(Alarm(metric="m", below=0.9), kind, rounds, told=False)
        print(f"| {named(kind)} | {share(count, rounds)} |", flush=True)


def weeks(rounds: int) -> None:
    """Alarms over 10,000 healthy turns whose mean goes up and down in the course of a week."""
    print(f"\nfalse alarms in {_TURNS:,} turns, a weekly swing of .03, 200 a day, {rounds} streams a cell")
    below, falls_by = Alarm(metric="m", below=0.9), Alarm(metric="m", falls_by=0.03)
    ways: list[tuple[str, Alarm, bool, float, Sampling]] = [
        ("worse first", below, True, -0.03, "all"),
        ("a fifth judged", below, True, -0.03, "fifth"),
        ("better first", below, True, 0.03, "all"),
        ("without sessions", below, False, -0.03, "all"),
        (falls_by.label, falls_by, True, -0.03, "all"),
    ]
    print("| sessions | " + " | ".join(way[0] for way in ways) + " |\n|---|" + "---:|" * len(ways))
    for kind in kinds():
        cells = [
            share(watched(alarm, replace(kind, swing=swing, sample=sample), rounds, told=told), rounds)
            for _, alarm, told, swing, sample in ways
        ]
        print(f"| {named(kind)} | " + " | ".join(cells) + " |", flush=True)


def changes(rounds: int) -> None:
    """Periods of 14 days in which a change was told: none happened, or a fall of .1 on the tenth day."""
    print(f"\n14 days, 200 turns a day, a weekly swing of .03, {rounds} periods a cell")
    print("| sessions, judged | nothing changed | fall of .1 | on its day |\n|---|---:|---:|---:|")
    for kind, sample in product(kinds(), (_SAMPLINGS[0], _SAMPLINGS[2])):
        traffic = replace(kind, swing=0.03, sample=sample)
        false = sum(bool(told_changes(traffic, number, day=14)) for number in range(rounds))
        found = [told_changes(traffic, number, day=9) for number in range(rounds)]
        near = sum(any(abs(day - 9) <= 1 for day in days) for days in found)
        cells = [share(false, rounds), share(sum(map(bool, found)), rounds), share(near, rounds)]
        print(f"| {named(kind)}, {sample} | " + " | ".join(cells) + " |", flush=True)


def told_changes(traffic: Traffic, seed: int, *, day: int) -> list[float]:
    """The days of the clear changes of a period in which a ninth of good answers goes wrong from a day on."""
    draw = np.random.default_rng(seed)
    turns = traffic.stream(draw, 14 * traffic.a_day)
    days = np.arange(len(turns.values)) / traffic.a_day
    values = np.where((days >= day) & (draw.random(len(days)) < 1 / 9), 0.0, turns.values)
    kept = np.flatnonzero(draw.random(len(days)) < turns.inclusion)
    found = find_changes(
        values[kept],
        days[kept] * 86_400,
        inclusion=turns.inclusion[kept],
        sessions=turns.sessions[kept].tolist(),
    )
    return [change.since / 86_400 for change in found if change.difference.clear]


def picked(traffic: Traffic, draw: np.random.Generator) -> tuple[Turns, Array]:
    """The judged turns of 10,000, and the place of each among them."""
    turns = traffic.stream(draw, _TURNS)
    places = np.flatnonzero(draw.random(_TURNS) < turns.inclusion)
    found = Turns(turns.values[places], turns.inclusion[places], turns.sessions[places])
    return found, places.astype(float)


def false_alarms(traffic: Traffic, rounds: int) -> int:
    """Streams that set off an alarm."""
    draw, count = np.random.default_rng(1), 0
    for _ in range(rounds):
        turns, _ = picked(traffic, draw)
        alarm = FallAlarm(target=traffic.mean, smallest_inclusion=_SMALLEST[traffic.sample])
        rows = zip(*(part.tolist() for part in (turns.values, turns.inclusion, turns.sessions)), strict=True)
        count += any(alarm.add(value, chance, session=session) for value, chance, session in rows)
    return count


def watched(alarm: Alarm, traffic: Traffic, rounds: int, *, told: bool = True) -> int:
    """Streams that set off an alarm as a Monitor has it, which goes by the clock."""
    draw, count = np.random.default_rng(2), 0
    for _ in range(rounds):
        turns, places = picked(traffic, draw)
        count += first_told(alarm, turns, places / traffic.a_day * 86_400, told=told) is not None
    return count


def first_told(alarm: Alarm, turns: Turns, times: Array, *, told: bool = True) -> int | None:
    """The place of the turn that sets an alarm off; it is told the sessions, or is not."""
    watch = Watch.start(alarm)
    parts = (turns.values, turns.inclusion, turns.sessions, times)
    for place, (value, inclusion, session, at) in enumerate(
        zip(*(one.tolist() for one in parts), strict=True)
    ):
        score = Score(metric=alarm.metric, status="scored", value=value, inclusion_probability=inclusion)
        turn = Evaluation(
            record_id=str(place),
            scores=(score,),
            session=str(session) if told else "",
            happened_at=at,
            evaluated_at=at,
        )
        if watch.take(alarm, turn) is not None:
            return place
    return None


def delays(rounds: int) -> None:
    """Turns until a fall from .9 to .8 is told, beside a CUSUM that knows both."""
    draw = np.random.default_rng(3)
    false = sum(oracle(draw.random(_TURNS) < 0.9) is not None for _ in range(rounds))
    print(f"\nan oracle CUSUM at {_ORACLE_LIMIT}: false in {share(false, rounds)} of {_TURNS:,} turns")
    print(f"median turns until a fall from .9 to .8 is told, {rounds} streams a cell")
    print(
        "| healthy turns before | oracle | FallAlarm | Alarm(below=.9), 200 a day | without sessions |\n"
        "|---:|---:|---:|---:|---:|"
    )
    for before in (0, 500, 1_400, 3_000, 5_000, 8_000):
        found: dict[str, list[int]] = {"oracle": [], "alarm": [], "watch": [], "unknown": []}
        for _ in range(rounds):
            values = draw.random(before + 2_000) < np.where(np.arange(before + 2_000) < before, 0.9, 0.8)
            for name, run in (
                ("oracle", oracle),
                ("alarm", plain),
                ("watch", by_clock),
                ("unknown", by_order),
            ):
                # The oracle begins with the fall: what came before is noise to it as to the others.
                at = run(values[before:] if name == "oracle" else values)
                since = None if at is None else at + 1 - (0 if name == "oracle" else before)
                if since is None or since > 0:
                    found[name].append(since or 2_000)
        print(
            f"| {before:,} | " + " | ".join(f"{np.median(one):.0f}" for one in found.values()) + " |",
            flush=True,
        )


def oracle(values: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> int | None:
    """When Page's CUSUM of the likelihood ratio of .8 to .9 crosses."""
    drift = 0.0
    for place, good in enumerate(values.tolist()):
        drift = max(drift + float(np.log(0.8 / 0.9) if good else np.log(2)), 0.0)
        if drift >= _ORACLE_LIMIT:
            return place
    return None


def plain(values: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> int | None:
    """When `FallAlarm` goes off."""
    alarm = FallAlarm(target=0.9)
    return next((place for place, good in enumerate(values.tolist()) if alarm.add(float(good))), None)


def by_order(values: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> int | None:
    """When one goes off that has to find out that turns are independent."""
    return by_clock(values, told=False)


def by_clock(values: np.ndarray[tuple[int], np.dtype[np.bool_]], *, told: bool = True) -> int | None:
    """When an alarm goes off that knows days."""
    count = len(values)
    turns = Turns(values.astype(float), np.ones(count), np.arange(count))
    times = 432.0 * np.arange(count, dtype=float)
    return first_told(Alarm(metric="m", below=0.9), turns, times, told=told)


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("-n", type=int, default=200, help="simulated samples or streams for each cell")
    tables: dict[str, Callable[[int], None]] = {
        "coverage": coverage,
        "alarms": alarms,
        "unknown": unknown,
        "weeks": weeks,
        "delays": delays,
        "changes": changes,
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
