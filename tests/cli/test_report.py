"""`steelyard report`: weighted means with intervals, an axis of time, and one HTML file."""

from __future__ import annotations

import asyncio
import re
import time
from dataclasses import replace
from pathlib import Path

import numpy as np

from cli.running import Steelyard
from report.parts import results
from steelyard.record import Record, Timings
from steelyard.scores import Evaluation, Provenance, Score, Usage, Verdict
from steelyard.sinks import SQLiteSink


def made(
    number: int, value: float, probability: float, *, tag: str = "", judge: str = "j", age: float = 0
) -> Evaluation:
    score = Score(
        id=f"s{number}",
        metric="faithfulness",
        status="scored",
        value=value,
        passed=value >= 0.5,
        threshold=0.5,
        inclusion_probability=probability,
        verdicts=(Verdict(about=f"claim {number}", kind="supported", value=value >= 0.5),),
        provenance=Provenance(judge=judge),
    )
    record = Record(id=f"r{number}", question=f"question {number}?", answer="a", tags=(tag,) if tag else ())
    return Evaluation(
        record_id=record.id, scores=(score,), record=record, evaluated_at=time.time() - age * 3600
    )


def row_of(out: str) -> list[str]:
    return next(line.split() for line in out.splitlines() if line.startswith("faithfulness"))


def test_means_are_weighted_by_inclusion(steelyard: Steelyard, tmp_path: Path) -> None:
    """Ten bad turns were all judged, ten good ones stand for a hundred: (10 x 0 + 100 x 1) / 110."""
    # In a mixed order: turns that are alike one after another count as one conversation, and for less.
    turns = [made(n, 1.0, 0.1) if n * 7 % 20 < 10 else made(n, 0.0, 1.0) for n in range(20)]
    outcome = steelyard("report", "--db", results(tmp_path / "s.db", turns))
    assert outcome.status == 0
    name, mean, interval, scored, passed, *_ = row_of(outcome.out)
    assert (name, mean, scored, passed) == ("faithfulness", "0.91", "20", "91%")
    low, high = map(float, interval.split("–"))
    assert 0.6 < low < 0.85 and 0.93 < high < 1
    assert "rests on 20 turns" in outcome.out


def test_turns_that_are_all_good_still_have_an_interval(steelyard: Steelyard, tmp_path: Path) -> None:
    outcome = steelyard("report", "--db", results(tmp_path / "s.db", (made(n, 1.0, 1) for n in range(32))))
    assert row_of(outcome.out)[2] == "0.89–1.00"


def test_a_fall_shows_on_the_axis_of_time(steelyard: Steelyard, tmp_path: Path) -> None:
    turns = [
        made(day * 20 + n, 0.2 if day == 5 else 0.9, 1, age=24 * (6 - day))
        for day in range(7)
        for n in range(20)
    ]
    trend = row_of(steelyard("report", "--db", results(tmp_path / "s.db", turns)).out)[-1]
    assert trend[5] == "▁" and set(trend[:5] + trend[6]) == {"█"}


def test_the_worst_turns_go_by_their_question(steelyard: Steelyard, tmp_path: Path) -> None:
    path = results(tmp_path / "s.db", [made(1, 0.9, 1), made(2, 0.1, 1), made(3, 0.4, 1)])
    out = steelyard("report", "--db", path).out
    assert out.index("question 2?") < out.index("question 3?")
    assert "question 1?" not in out
    assert '"claim 2"' in out


def test_filters(steelyard: Steelyard, tmp_path: Path) -> None:
    path = results(
        tmp_path / "s.db", [made(1, 1, 1, tag="new"), made(2, 1, 1, age=30), made(3, 1, 1, tag="old")]
    )
    assert steelyard("report", "--db", path).out.startswith("3 records")
    assert steelyard("report", "--db", path, "--tag", "new").out.startswith("1 record ")
    assert steelyard("report", "--db", path, "--since", "24h").out.startswith("2 records")
    assert steelyard("report", "--db", path, "--until", "24h").out.startswith("1 record ")
    assert "known: none 100 % of 3 turns" in steelyard("report", "--db", path).out
    assert steelyard("report", "--db", path, "--evidence", "none").out.startswith("3 records")
    assert steelyard("report", "--db", path, "--evidence", "guessed").out.startswith("0 records")
    assert "is one of known, told" in steelyard("report", "--db", path, "--evidence", "gussed").err
    nothing = steelyard("report", "--db", path, "--metric", "nonsense").out
    assert nothing.startswith("0 records") and "no evaluated turns" in nothing


def test_groups_are_set_side_by_side(steelyard: Steelyard, tmp_path: Path) -> None:
    turns = [made(n, 0.9, 1, tag="a") for n in range(40)] + [made(n, 0.4, 1, tag="b") for n in range(40, 80)]
    out = steelyard("report", "--db", results(tmp_path / "s.db", turns), "--by", "tag").out
    assert "-0.50" in out and "cannot be told" not in out
    assert "no turn has a model" in steelyard("report", "--db", tmp_path / "s.db", "--by", "model").out


def test_a_page_is_written(steelyard: Steelyard, tmp_path: Path) -> None:
    page = tmp_path / "out.html"
    outcome = steelyard("report", "--db", results(tmp_path / "s.db", [made(1, 1, 1)]), "--out", page)
    assert outcome.status == 0 and "wrote" in outcome.out
    assert page.read_text().startswith("<!doctype html>")
    assert steelyard("report", "--db", tmp_path / "s.db", "--out", tmp_path / "no" / "x.html").status == 2


def test_judges_that_are_mixed_are_pointed_out(steelyard: Steelyard, tmp_path: Path) -> None:
    out = steelyard(
        "report", "--db", results(tmp_path / "s.db", [made(1, 1, 1), made(2, 1, 1, judge="k")])
    ).out
    assert "judge j" in out and "judge k" in out
    assert "made in different ways" in out


def test_no_such_file(steelyard: Steelyard, tmp_path: Path) -> None:
    outcome = steelyard("report", "--db", tmp_path / "none.db")
    assert outcome.status == 2
    assert "there is no results file" in outcome.err


def test_a_time_that_is_none_is_refused(steelyard: Steelyard, tmp_path: Path) -> None:
    path = str(results(tmp_path / "s.db", [made(1, 0.5, 1.0)]))
    outcome = steelyard("report", "--db", path, "--since", "yesterday-ish")
    assert outcome.status == 2 and "is not a time" in outcome.err


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
