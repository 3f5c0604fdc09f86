"""What a wished interval costs, by what is in the results."""

from __future__ import annotations

import asyncio
import re
from dataclasses import replace
from pathlib import Path

import numpy as np

from cli.running import Steelyard
from steelyard.record import Record, Timings
from steelyard.scores import Evaluation, Provenance, Score, Usage
from steelyard.sinks import SQLiteSink

TURNS, DAYS, JUDGED = 3000, 10, 0.2


def evaluations(*, screen: bool) -> list[Evaluation]:
    draw = np.random.default_rng(2)
    found = []
    for number in range(TURNS):
        good = draw.beta(2, 0.6)
        score = Score(
            metric="faithfulness",
            status="scored",
            value=float(draw.random() < good),
            inclusion_probability=JUDGED,
            provenance=Provenance(judge="chat:dear"),
            id=f"s{number}",
        )
        cheap = replace(
            score, value=float(good), inclusion_probability=1.0, provenance=Provenance(judge="local")
        )
        judged = draw.random() < JUDGED
        at = 1.7e9 + number * DAYS * 86400 / TURNS
        found.append(
            Evaluation(
                record_id=f"r{number}",
                scores=(score,) if judged else (),
                screen=(cheap,) if screen else (),
                usage=Usage(requests=2 * judged, cost=0.01 if judged else None),
                record=Record(id=f"r{number}", timings=Timings(started_at=at)),
                evaluated_at=at,
            )
        )
    return found


def planned(steelyard: Steelyard, path: Path, *options: str) -> tuple[str, list[float]]:
    outcome = steelyard("plan", "--db", str(path), *options)
    assert outcome.status == 0
    return outcome.out, [
        float(one.replace(",", "")) for one in re.findall(r"([\d,]+) turns a day judged", outcome.out)
    ]


def test_a_screen_saves_a_part_of_the_judging(steelyard: Steelyard, tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    asyncio.run(SQLiteSink(path).write(evaluations(screen=True)))
    said, (alone, screened) = planned(steelyard, path, "--width", "0.03", "--days", "7")
    assert "of 300 turns a day" in said
    # A share of .77 is known to .03 by 1.96^2 * .77 * .23 / .03^2 turns.
    assert abs(alone - 1.96**2 * 0.77 * 0.23 / 0.03**2 / 7) < 0.12 * alone
    assert 0.6 * alone < screened < 0.9 * alone
    money = [float(one) for one in re.findall(r"\$([\d.]+)", said)]
    assert abs(money[0] - 0.01 * alone) < 0.02 and abs(money[1] - 0.01 * screened) < 0.02
    requests = [int(one) for one in re.findall(r"(\d+) requests", said)]
    assert abs(requests[0] - 2 * alone) <= 1 and abs(requests[1] - 2 * screened) <= 1
    _, (half, _) = planned(steelyard, path, "--width", "0.06", "--days", "7")
    assert abs(half - alone / 4) < 1


def test_without_a_screen_it_says_so_and_what_is_out_of_reach(steelyard: Steelyard, tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    asyncio.run(SQLiteSink(path).write(evaluations(screen=False)))
    said, _ = planned(steelyard, path, "--width", "0.002", "--days", "1")
    assert "more than there are" in said and "No screen has explained anything here" in said


def test_without_scores_there_is_nothing_to_go_by(steelyard: Steelyard, tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    asyncio.run(SQLiteSink(path).write([one.replace(scores=()) for one in evaluations(screen=True)[:5]]))
    assert "judge some turns first" in planned(steelyard, path)[0]
