"""Fifty labels of mined cases beside fifty of random choice, on seeded streams.

    python benchmarks/golden_mining.py [--streams 20]

A stream is 2,000 turns, of which one in ten fails, in eight clusters of questions; the judge's scores are
drawn from Beta(9, 2) for good and Beta(2, 6) for bad answers, and turns that pass are judged at a rate of one
half. `random` are 50 judged turns chosen at random, weighed by their rates; `mined` the cases of
`steelyard.golden.mining`, with what the judge found of all turns, corrected by the labels; `alike` random
choice with that same correction.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
from pathlib import Path

import numpy as np

from steelyard.golden import Case, GoldenSet
from steelyard.golden.mining import Population, production_mean
from steelyard.record import Record
from steelyard.scores import Evaluation, Score
from steelyard.sinks import SQLiteSink
from steelyard.stats import corrected_mean, weighted_mean

FAILURES = (
    *("kettle refund", "parking permit", "puppy vaccine", "wine tax", "violin string", "glacier hike"),
    *("printer driver", "sourdough smell"),
)
GRADES = {"failing": 0.0, "uncertain": 0.5, "rest": 1.0}
GOOD = ("opening hours", "delivery address", "invoice number", "gift card balance", "password reset")


def stream(path: Path, seed: int, turns: int = 2_000) -> tuple[dict[str, float], dict[str, str]]:
    """A results file, the truth of each stored turn, and the subject of each that failed."""
    rng = np.random.default_rng(seed)
    truth, subjects, evaluations = {}, {}, []
    for number in range(turns):
        good = bool(rng.random() >= 0.1)
        subject = str(rng.choice(GOOD if good else FAILURES))
        value = float(rng.beta(9, 2) if good else rng.beta(2, 6))
        inclusion = 1.0 if value < 0.5 else 0.5
        if rng.random() >= inclusion:
            continue
        name = f"r{number}"
        truth[name] = float(good)
        if not good:
            subjects[name] = subject
        score = Score(
            metric="faithfulness",
            status="scored",
            value=value,
            threshold=0.5,
            passed=value >= 0.5,
            inclusion_probability=inclusion,
        )
        record = Record(id=name, question=f"What about the {subject}, customer {number}?")
        evaluations.append(
            Evaluation(record_id=name, scores=(score,), record=record, evaluated_at=1.0 + number)
        )

    async def write() -> None:
        sink = SQLiteSink(path)
        await sink.write(evaluations)
        await sink.aclose()

    asyncio.run(write())
    return truth, subjects


def main() -> None:
    """Print the means over all streams."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--streams", type=int, default=20)
    streams = parser.parse_args().streams
    widths: dict[str, list[float]] = {"random": [], "alike": [], "mined": []}
    covered, represented = [], []
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(streams):
            path = Path(folder) / f"{seed}.db"
            truth, subjects = stream(path, seed)
            population = Population.read(path)
            known = {turn.record_id: turn for turn in population.stored.turns}
            drawn = population.draw(50, seed=seed)
            cases = [
                Case(
                    id=one.turn.record_id,
                    question=one.turn.question,
                    inclusion_probability=one.probability,
                    metadata={"scores": one.turn.scores},
                )
                for one in drawn
            ]
            labels = {case.id: truth[case.id] for case in cases}
            found = production_mean(GoldenSet(cases=tuple(cases)), labels, db=path, metric="faithfulness")
            names = list(known)
            rates = [known[name].inclusion for name in names]
            true = weighted_mean([truth[name] for name in names], rates)
            picked = np.random.default_rng(seed).choice(names, 50, replace=False).tolist()
            own = [known[name].inclusion for name in picked]
            plain = weighted_mean([truth[name] for name in picked], own)
            alike = corrected_mean(
                [GRADES[known[name].stratum] for name in names],
                [GRADES[known[name].stratum] for name in picked],
                [truth[name] for name in picked],
                judged_inclusion=rates,
                labelled_inclusion=own,
            )
            assert true is not None and plain is not None
            for name, one in (("random", plain), ("alike", alike), ("mined", found)):
                widths[name].append(one.high - one.low)
            covered.append(found.low <= true.value <= found.high)
            represented.append(
                len({subjects[case.id] for case in cases if case.id in subjects}) / len(FAILURES)
            )
    for name, found_widths in widths.items():
        ratio = np.mean(found_widths) / np.mean(widths["random"])
        print(f"{name:<8} interval {np.mean(found_widths):.3f}  beside random {ratio:.2f}")
    print(f"covered {np.mean(covered):.2f}  failure clusters represented {np.mean(represented):.2f}")


if __name__ == "__main__":
    main()
