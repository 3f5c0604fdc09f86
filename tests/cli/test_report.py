"""`steelyard report`: weighted means and the worst turns of a results file."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

from cli.running import Steelyard
from steelyard.record import Record
from steelyard.scores import Evaluation, Provenance, Score, Verdict
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


def write(path: Path, *evaluations: Evaluation) -> Path:
    async def run() -> None:
        sink = SQLiteSink(path)
        await sink.write(evaluations)
        await sink.aclose()

    asyncio.run(run())
    return path


def test_means_are_weighted_by_inclusion(steelyard: Steelyard, tmp_path: Path) -> None:
    """Ten bad turns were all judged, ten good ones stand for a hundred: (10 x 0 + 100 x 1) / 110."""
    turns = [made(n, 0.0, 1.0) for n in range(10)] + [made(n, 1.0, 0.1) for n in range(10, 20)]
    outcome = steelyard("report", "--db", write(tmp_path / "s.db", *turns))
    assert outcome.status == 0
    row = next(line.split() for line in outcome.out.splitlines() if line.startswith("faithfulness"))
    assert row[1] == "0.91"
    # By hand: the sum of w^2 (x - m)^2 is 16.53, times 20/19; 1.96 times its root over 110 is 0.074.
    assert row[2] == "0.07"
    assert row[3:5] == ["10", "10"]


def test_the_worst_turns_go_by_their_question(steelyard: Steelyard, tmp_path: Path) -> None:
    path = write(tmp_path / "s.db", made(1, 0.9, 1), made(2, 0.1, 1), made(3, 0.4, 1))
    out = steelyard("report", "--db", path).out
    assert out.index("question 2?") < out.index("question 3?")
    assert "question 1?" not in out
    assert '"claim 2"' in out


def test_filters(steelyard: Steelyard, tmp_path: Path) -> None:
    path = write(tmp_path / "s.db", made(1, 1, 1, tag="new"), made(2, 1, 1, age=30), made(3, 1, 1, tag="old"))
    assert steelyard("report", "--db", path).out.startswith("3 records")
    assert steelyard("report", "--db", path, "--tag", "new").out.startswith("1 record ")
    assert steelyard("report", "--db", path, "--last", "24").out.startswith("2 records")
    assert steelyard("report", "--db", path, "--metric", "nonsense").out.startswith("0 records")


def test_judges_that_are_mixed_are_pointed_out(steelyard: Steelyard, tmp_path: Path) -> None:
    out = steelyard("report", "--db", write(tmp_path / "s.db", made(1, 1, 1), made(2, 1, 1, judge="k"))).out
    assert "judge j" in out and "judge k" in out
    assert "made in different ways" in out


def test_no_such_file(steelyard: Steelyard, tmp_path: Path) -> None:
    outcome = steelyard("report", "--db", tmp_path / "none.db")
    assert outcome.status == 2
    assert "there is no results file" in outcome.err


def test_hours_to_come_are_refused(steelyard: Steelyard, tmp_path: Path) -> None:
    path = str(write(tmp_path / "s.db", made(1, 0.5, 1.0)))
    assert steelyard("report", "--db", path, "--last", "-1").status == 2
