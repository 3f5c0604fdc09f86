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
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from steelyard.calibration import (
    Fit,
    Judged,
    Labelled,
    corrected,
    fit,
    judged_scores,
    next_to_label,
    spread_error,
)
from steelyard.engine import aevaluate
from steelyard.judge import LocalJudge
from steelyard.metrics import Faithfulness
from steelyard.record import Context, Record
from steelyard.stats import FlipAlarm, corrected_mean

_DRAWS = 100
_RUNS = 400


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


def coverage() -> None:
    """How often the interval holds the truth, and its width beside that of the labels alone."""
    print("\njudge    picked   share good   coverage   width / labels alone (50 labels, 2,000 turns)")
    for binary in (True, False):
        for how in ("random", "next"):
            for share in (0.5, 0.7, 0.8, 0.9):
                covered, ratio = covers(binary=binary, how=how, share=share)
                kind = "yes/no" if binary else "graded"
                print(f"{kind}   {how:6}   {share:10}   {covered:8.3f}   {ratio:.3f}")


def covers(*, binary: bool, how: str, share: float) -> tuple[float, float]:
    """Coverage and mean ratio of widths over many runs."""
    drawn = np.random.default_rng(0)
    held, wide, alone = 0, 0.0, 0.0
    for _ in range(_RUNS):
        judged, good = turns(2000, share, drawn, binary=binary)
        truth = dict(zip((one.record_id for one in judged), good, strict=True))
        picked = judged[:50] if how == "random" else next_to_label(judged, limit=50)
        pairs = [Labelled(one, truth[one.record_id]) for one in picked]
        found = corrected(judged, pairs)
        labels = [float(truth[one.record_id]) for one in judged[50:100]]
        bare = corrected_mean([0.5] * 2000, [0.5] * 50, labels)
        assert found is not None
        held += found.low <= share <= found.high
        wide, alone = wide + found.margin, alone + bare.margin
    return held / _RUNS, wide / alone


def canaries() -> None:
    """After how many canaries a change is found, and how often an unchanged judge raises the alarm."""
    print("\nflipped   found within 100   median   false alarms within 1,000")
    for flipped in (0.05, 0.1, 0.2, 0.5):
        places = [found_after(flipped, seed) for seed in range(2000)]
        within = np.mean([0 < place <= 100 for place in places])
        print(f"{flipped:7}   {within:16.3f}   {np.median([place or 1000 for place in places]):6.0f}")
    for wrong in (0.0, 0.005, 0.01):
        false = np.mean([found_after(wrong, seed, healthy=0) > 0 for seed in range(1000)])
        print(f"{wrong:7} wrong all along {'':18} {false:.3f}")


def found_after(flipped: float, seed: int, *, healthy: int = 200) -> int:
    """After how many flipped canaries the alarm goes off, behind some that were right; 0 within 1,000."""
    drawn, alarm = random.Random(seed), FlipAlarm()
    for _ in range(healthy):
        alarm.add(True)
    for place in range(1, 1001):
        if alarm.add(drawn.random() >= flipped):
            return place
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
    given = parser.parse_args()
    if given.data:
        pairs = judged_rows(given.data / "grounding_dev.jsonl")
        calibration(pairs)
        if given.picture:
            picture(pairs, given.picture)
    coverage()
    canaries()


if __name__ == "__main__":
    main()
