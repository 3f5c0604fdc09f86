"""The sums that a results file keeps for each hour are those of its scores, whatever happened to them."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from report.parts import NOON, results, turn
from steelyard.report import ResultsReader, Scope, open_results
from steelyard.report.queries import Sums
from steelyard.scores import Evaluation
from steelyard.sinks import prune
from steelyard.sinks.sqlite.sums import drop_sums, refresh_sums

HOUR = 3600.0
START = NOON // HOUR * HOUR


def judged(number: int, value: float | None, *, at: float, inclusion: float = 1.0) -> Evaluation:
    made = turn(number, value, at=at, inclusion=inclusion)
    passed = None if number % 3 == 0 else (value or 0) >= 0.5
    return replace(made, scores=(replace(made.scores[0], id=f"s{number}", passed=passed),))


def drawn(count: int) -> list[Evaluation]:
    draw = random.Random(count)
    return [
        judged(
            number,
            draw.choice([0.0, 0.31, 0.77, 1.0, None]),
            at=START + 5 * HOUR * draw.random(),
            inclusion=draw.choice([1.0, 0.1, 0.01]),
        )
        for number in range(count)
    ]


def told(parts: object) -> dict[tuple[str, int], tuple[float, ...]]:
    assert isinstance(parts, list)
    return {(part.metric, part.bucket): numbers(part) for part in parts}


def numbers(part: Sums) -> tuple[float, ...]:
    sums = (part.values, part.passes)
    return (
        *(getattr(moments, name) for moments in sums for name in type(moments).__slots__),
        *part.bars,
        part.threshold or 0.0,
        part.direction == "lower",
    )


def same(path: Path, scope: Scope) -> None:
    """Hours give what a look at every score gives (which grouping by judge does)."""
    with closing(open_results(path)) as reader:
        kept = reader.sums(scope, start=START - HOUR, width=HOUR)
        every = reader.sums(scope, start=START - HOUR, width=HOUR, by="judge")
        found, wanted = told(kept.over_time), told(every.over_time)
    assert found.keys() == wanted.keys()
    for key, values in wanted.items():
        assert found[key] == pytest.approx(values), key


def connect(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(path, isolation_level=None)


def stale(path: Path) -> int:
    with closing(connect(path)) as connection:
        return int(connection.execute("SELECT count(*) FROM stale_hours").fetchone()[0])


def refresh(path: Path) -> None:
    with closing(connect(path)) as connection:
        while refresh_sums(connection):
            pass


def nothing(path: Path) -> None:
    pass


def judge_again(path: Path) -> None:
    changed = [judged(n, 0.9, at=START + 2 * HOUR + n) for n in range(0, 60, 7)]
    results(path, changed)
    assert stale(path) > 0


def delete(path: Path) -> None:
    assert prune(path, keep=30).turns == 30


def forget_sums(path: Path) -> None:
    """What an earlier version left."""
    with closing(connect(path)) as connection:
        drop_sums(connection)


def forget_powers(path: Path) -> None:
    """What a version left that kept fewer sums."""
    with closing(connect(path)) as connection:
        for name in ("scores_are_added", "scores_are_added_by_tag"):
            connection.execute(f"DROP TRIGGER {name}")
        for column in ("value_value", "value_value_value"):
            connection.execute(f"ALTER TABLE hour_sums DROP COLUMN {column}")


def widen(path: Path) -> None:
    forget_powers(path)
    results(path, [judged(99, 0.4, at=START + 10)])


def upgrade(path: Path) -> None:
    forget_sums(path)
    results(path, [judged(99, 0.4, at=START + 10)])


@pytest.mark.parametrize("change", [nothing, judge_again, delete, forget_sums, upgrade, forget_powers, widen])
@pytest.mark.parametrize("refreshed", [False, True])
def test_sums_of_hours_are_those_of_scores_after(
    tmp_path: Path, change: Callable[[Path], None], refreshed: bool
) -> None:
    path = results(tmp_path / "s.db", drawn(60))
    change(path)
    if refreshed and change not in (forget_sums, forget_powers):
        refresh(path)
        assert stale(path) == 0
    same(path, Scope())


@settings(max_examples=40, deadline=None)
@given(st.floats(-1.2, 6.2), st.floats(-1.2, 6.2))
def test_a_period_may_begin_and_end_within_an_hour(reader_file: Path, since: float, until: float) -> None:
    same(reader_file, Scope(since=START + since * HOUR, until=START + until * HOUR))
    same(reader_file, Scope(since=START + since * HOUR))
    same(reader_file, Scope(until=START + until * HOUR, metric="faithfulness"))


@pytest.fixture(scope="module")
def reader_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = results(tmp_path_factory.mktemp("hours") / "s.db", drawn(80))
    judge_again(path)
    return path


def test_writing_the_same_results_again_makes_no_hour_stale(tmp_path: Path) -> None:
    turns = drawn(30)
    path = results(tmp_path / "s.db", turns)
    results(path, turns)
    assert stale(path) == 0
    same(path, Scope())


def test_only_what_is_stale_is_read_score_by_score(tmp_path: Path) -> None:
    path = results(tmp_path / "s.db", drawn(60))
    with closing(connect(path)) as connection:
        connection.execute("UPDATE hour_sums SET value = 0, square_value = 0, square_value_value = 0")

    def mean(reader: ResultsReader) -> float | None:
        (part,) = reader.sums(Scope(), start=START // 36000 * 36000, width=36000.0 * 10).over_time
        return part.values.mean

    with closing(open_results(path)) as reader:
        assert mean(reader) == 0
    judge_again(path)
    with closing(open_results(path)) as reader:
        assert (mean(reader) or 0) > 0
    refresh(path)
    with closing(open_results(path)) as reader:
        assert (mean(reader) or 0) > 0
