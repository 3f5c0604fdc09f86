"""What calibration by labels is worth, and how soon canaries notice that a judge changed.

    python benchmarks/calibration.py [--data FOLDER] [--picture FILE.svg]

With FOLDER, which holds `grounding_dev.jsonl` (answers with `label_unsupported`): the calibration error of
the local judge's faithfulness before and after maps made from 30, 50, 100 and 200 labels, on the other rows.
Always, by simulation: how often the corrected mean's interval covers the truth with 50 labels, how wide it is
beside that of the labels alone, and after how many canaries one flipped verdict in ten is found.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from steelyard.calibration import (
    Fit,
    Judged,
    Labelled,
    chances_by,
    corrected,
    drawn_to_label,
    fit,
    judged_scores,
    spread_error,
)
from steelyard.engine import aevaluate
from steelyard.judge import LocalJudge
from steelyard.metrics import Faithfulness
from steelyard.record import Context, Record
from steelyard.stats import ChangeAlarm, corrected_mean, flip_probability

_DRAWS = 100
_RUNS = 400
_CANARY_RUNS = 1000


def judged_rows(path: Path) -> list[Labelled]:
    """The local judge's faithfulness of each row, and what people say of it."""
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    records = [
        Record(
            question=row["question"] or "?",
            contexts=tuple(Context(text=text) for text in row["contexts"]),
            answer=row["answer"],
        )
        for row in rows
    ]
    results = asyncio.run(aevaluate(records, metrics=[Faithfulness()], judge=LocalJudge(), progress=False))
    return [
        Labelled(judged, not row["label_unsupported"])
        for row, evaluation in zip(rows, results, strict=True)
        for _, judged in judged_scores(evaluation)
    ]


def chances(made: Fit, pairs: Sequence[Labelled]) -> list[float]:
    """The calibrated values of some turns."""
    return [made.map(number) for pair in pairs if (number := pair.judged.signal(made.signal)) is not None]


def errors(pairs: Sequence[Labelled], count: int) -> list[float]:
    """Calibration errors on the rows that a map was not made from, over many draws of labels."""
    drawn, found = np.random.default_rng(1), []
    for _ in range(_DRAWS):
        order = drawn.permutation(len(pairs))
        made = fit([pairs[place] for place in order[:count]])
        rest = [pairs[place] for place in order[count:]]
        if isinstance(made, Fit):
            found.append(spread_error(chances(made, rest), [pair.good for pair in rest]))
    return found


def calibration(pairs: Sequence[Labelled]) -> None:
    """Before and after, by number of labels."""
    truth = [pair.good for pair in pairs]
    raw = spread_error([pair.judged.value for pair in pairs], truth)
    print(f"{len(pairs)} rows, {np.mean(truth):.2f} good; error of the score as it is: {raw:.3f}")
    print("labels   maps made   error: mean   95 % of draws below   share below .08")
    for count in (30, 50, 100, 200):
        found = errors(pairs, count)
        below = np.mean(np.array(found) < 0.08)
        print(
            f"{count:6}   {len(found):5} of {_DRAWS}   {np.mean(found):11.3f}   "
            f"{np.quantile(found, 0.95):19.3f}   {below:15.2f}"
        )


def turns(
    count: int, share: float, drawn: np.random.Generator, *, binary: bool
) -> tuple[list[Judged], list[bool]]:
    """Turns and a judge of AUROC .8: one that says yes or no, or one that grades."""
    good = drawn.random(count) < share
    if binary:
        values = np.where(drawn.random(count) < 0.8, good, ~good).astype(float)
    else:
        values = np.clip(0.4 + 0.15 * (drawn.normal(size=count) + 1.19 * good), 0, 1)
    judged = [
        Judged(record_id=f"{drawn.integers(2**62)}", value=float(value), worst=None, inclusion=1.0, claims=0)
        for value in values
    ]
    return judged, good.tolist()


def coverage(runs: int) -> None:
    """How often the interval holds the truth, and its width beside that of the labels alone."""
    print("\njudge    picked   share good   coverage   width / labels alone (50 labels, 2,000 turns)   bound")
    for binary in (True, False):
        for how in ("random", "next"):
            for share in (0.5, 0.7, 0.8, 0.9):
                covered, ratio = covers(binary=binary, how=how, share=share, runs=runs)
                kind = "yes/no" if binary else "graded"
                bound = least_width(share, binary=binary, how=how)
                print(f"{kind}   {how:6}   {share:10}   {covered:8.3f}   {ratio:.3f}   {bound:.3f}")


def covers(*, binary: bool, how: str, share: float, runs: int = _RUNS) -> tuple[float, float]:
    """Coverage and mean ratio of widths over many runs."""
    drawn = np.random.default_rng(0)
    held, wide, alone = 0, 0.0, 0.0
    for _ in range(runs):
        judged, good = turns(2000, share, drawn, binary=binary)
        truth = dict(zip((one.record_id for one in judged), good, strict=True))
        found = corrected(judged, chosen(judged, truth, how))
        bare = corrected_mean([0.5] * 2000, [0.5] * 50, (drawn.random(50) < share).astype(float).tolist())
        assert found is not None
        held += found.low <= share <= found.high
        wide, alone = wide + found.margin, alone + bare.margin
    return held / runs, wide / alone


def chosen(judged: Sequence[Judged], truth: Mapping[str, bool], how: str) -> list[Labelled]:
    """50 labelled turns: any, or in sittings of 20 as `steelyard label` chooses them."""
    if how == "random":
        return [Labelled(one, truth[one.record_id]) for one in judged[:50]]
    pairs: list[Labelled] = []
    while (left := 50 - len(pairs)) > 0:
        known = [pair.judged.record_id for pair in pairs]
        more = drawn_to_label(judged, known, chance=chances_by(pairs), limit=min(left, 20))
        pairs += [Labelled(one, truth[one.record_id]) for one, _ in more]
    return pairs


def least_width(share: float, *, binary: bool, how: str) -> float:
    """What no method can fall below for these judges, with as many judged turns as you like."""
    if binary:
        yes = 0.8 * share + 0.2 * (1 - share)
        weights, chance = np.array([yes, 1 - yes]), np.array([0.8 * share / yes, 0.2 * share / (1 - yes)])
    else:
        grid = np.linspace(-8, 10, 20_001)
        good, bad = (np.exp(-0.5 * (grid - middle) ** 2) for middle in (1.19, 0.0))
        both = share * good + (1 - share) * bad
        weights, chance = both / both.sum(), share * good / both
    left = chance * (1 - chance)
    spread = weights @ left if how == "random" else (weights @ np.sqrt(left)) ** 2
    return float(np.sqrt(spread / (share * (1 - share))))


def canaries() -> None:
    """How often a change is found within 100 canaries, and how often an unchanged judge raises the alarm."""
    print("\nwrong by chance   false alarms within 1,000   found within 100 (median)")
    print("                                              1 probe in 10 changed   1 answer in 10 flipped")
    print("                  (then by one look at 100 that were asked for at once: unchanged, flipped)")
    for noise in (0.0, 0.005, 0.01, 0.02, 0.05):
        false = np.mean([alarmed(noise, seed, most=1000) > 0 for seed in range(_CANARY_RUNS)])
        cells = []
        for persistent in (True, False):
            places = [
                alarmed(noise, seed, healthy=200, changed=0.1, persistent=persistent)
                for seed in range(_CANARY_RUNS)
            ]
            within = np.mean([place > 0 for place in places])
            cells.append(f"{within:.3f} ({np.median([place or 101 for place in places]):.0f})")
        looks = [
            np.mean([looked(noise, seed, chance=chance) for seed in range(_CANARY_RUNS)])
            for chance in (0, 0.1)
        ]
        print(
            f"{noise:15}   {false:25.3f}   {cells[0]:>21}   {cells[1]:>22}   {looks[0]:.3f}   {looks[1]:.3f}"
        )


def looked(noise: float, seed: int, *, chance: float, healthy: int = 200) -> bool:
    """Whether 100 canaries that are asked for at once tell of a change, beside those of before."""
    drawn = random.Random(seed)
    kept = sum(drawn.random() >= noise for _ in range(80))
    repeated = wavered = 0
    for _ in range(3):
        again = sum(drawn.random() >= noise for _ in range(kept))
        repeated, wavered, kept = repeated + kept, wavered + kept - again, again
    alarm = ChangeAlarm(repeated=repeated, wavered=wavered)
    for _ in range(healthy):
        alarm.add(drawn.random() >= noise)
    share = noise * (1 - chance) + (1 - noise) * chance
    wrong = sum(drawn.random() < share for _ in range(100))
    wrong_before, before = alarm.settled
    return flip_probability(wrong=wrong, answers=100, wrong_before=wrong_before, before=before) <= 0.05


def alarmed(
    noise: float,
    seed: int,
    *,
    healthy: int = 0,
    changed: float = 0.0,
    persistent: bool = True,
    most: int = 100,
) -> int:
    """After how many canaries the alarm goes off, once the judge has changed; 0 for never, or before."""
    drawn = random.Random(seed)
    kept = [probe for probe in range(80) if drawn.random() >= noise]
    repeated = wavered = 0
    for _ in range(3):
        again = [probe for probe in kept if drawn.random() >= noise]
        repeated, wavered, kept = repeated + len(kept), wavered + len(kept) - len(again), again
    alarm = ChangeAlarm(repeated=repeated, wavered=wavered)
    other = set(drawn.sample(kept, round(changed * len(kept)))) if persistent else set[int]()
    chance = changed if not persistent else 0.0

    def is_right(probe: int, *, now: bool) -> bool:
        flipped = now and (probe in other or drawn.random() < chance)
        return (drawn.random() >= noise) ^ flipped

    for place in range(healthy + most):
        probe, now = drawn.choice(kept), place >= healthy
        right = is_right(probe, now=now)
        confirmed = not right and not is_right(probe, now=now) and not is_right(probe, now=now)
        if alarm.add(right, confirmed=confirmed):
            return place + 1 - healthy if now else 0
    return 0


def picture(pairs: Sequence[Labelled], path: Path) -> None:
    """Share of good turns by tenths of the score, before and after calibration by 200 labels."""
    order = np.random.default_rng(0).permutation(len(pairs))
    made = fit([pairs[place] for place in order[:200]])
    assert isinstance(made, Fit)
    rest = [pairs[place] for place in order[200:]]
    truth = np.array([pair.good for pair in rest])
    panels = [
        ("the score as it is", np.array([pair.judged.value for pair in rest])),
        ("calibrated by 200 labels", np.array(chances(made, rest))),
    ]
    parts = [panel(title, values, truth, 40 + 330 * place) for place, (title, values) in enumerate(panels)]
    path.write_text(
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 700 350" font-family="sans-serif" '
        'font-size="13">'
        '<rect width="700" height="350" fill="#fff"/>' + "".join(parts) + "</svg>\n"
    )


def panel(title: str, values: np.ndarray, truth: np.ndarray, left: int) -> str:
    """One curve with the diagonal on which a probability is a share."""
    size, top = 260, 40
    error = spread_error(values, truth)
    dots = []
    tenths = np.minimum((values * 10).astype(int), 9)
    for tenth in range(10):
        inside = tenths == tenth
        if inside.sum() >= 10:
            x = left + size * float(values[inside].mean())
            y = top + size * (1 - float(truth[inside].mean()))
            radius = 2 + 14 * float(inside.mean()) ** 0.5
            dots.append(
                f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius:.1f}" fill="#2563eb" fill-opacity=".65"/>'
            )
    return (
        f'<text x="{left}" y="24" font-weight="bold">{title}: error {error:.3f}</text>'
        f'<rect x="{left}" y="{top}" width="{size}" height="{size}" fill="none" stroke="#999"/>'
        f'<line x1="{left}" y1="{top + size}" x2="{left + size}" y2="{top}" stroke="#999" '
        'stroke-dasharray="4"/>' + "".join(dots) + f'<text x="{left}" y="{top + size + 18}">0</text>'
        f'<text x="{left + size - 8}" y="{top + size + 18}">1</text>'
        f'<text x="{left + 70}" y="{top + size + 18}">what the judge says</text>'
        f'<text x="{left - 8}" y="{top + size - 60}" transform="rotate(-90 {left - 8} {top + size - 60})">'
        "share that people call good</text>"
    )


def main() -> None:
    """Read the arguments and run all of it."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=Path)
    parser.add_argument("--picture", type=Path)
    parser.add_argument("--runs", type=int, default=_RUNS)
    given = parser.parse_args()
    if given.data:
        pairs = judged_rows(given.data / "grounding_dev.jsonl")
        calibration(pairs)
        if given.picture:
            picture(pairs, given.picture)
    coverage(given.runs)
    canaries()


if __name__ == "__main__":
    main()
