"""`steelyard report`: weighted means with intervals, an axis of time, and one HTML file."""

from __future__ import annotations

import time
from pathlib import Path

from cli.running import Steelyard
from report.parts import results
from steelyard.record import Record
from steelyard.scores import Evaluation, Provenance, Score, Verdict


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
