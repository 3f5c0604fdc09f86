"""What a results file keeps of tags, versions, routes and judges is what a look at every turn would find."""

from __future__ import annotations

import random
import shutil
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from report.parts import NOON, results, turn
from steelyard.report import TurnFilter, open_results
from steelyard.results.queries import Scope
from steelyard.scores import Evaluation, Provenance, Score
from steelyard.sinks import prune

HOUR = 3600.0
START = NOON // HOUR * HOUR
MANY = 1_050


def connect(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(path, isolation_level=None)


def judged(number: int, value: float | None, *, at: float, inclusion: float = 1.0) -> Evaluation:
    made = turn(number, value, at=at, inclusion=inclusion)
    passed = None if number % 3 == 0 else (value or 0) >= 0.5
    return replace(made, scores=(replace(made.scores[0], id=f"s{number}", passed=passed),))


def made(
    number: int, *, tags: tuple[str, ...], judge: str = "local", value: float | None = None
) -> Evaluation:
    """A turn with two metrics, the second of which often has no value."""
    draw = random.Random(f"{number} {value}")
    one = judged(
        number,
        draw.choice([0.0, 0.3, 0.8, None]) if value is None else value,
        at=START + 30 * HOUR * draw.random(),
        inclusion=draw.choice([1.0, 0.1]),
    )
    assert one.record is not None
    provenance = Provenance(judge=judge, prompt_version="1")
    second = (
        Score.not_applicable("recall", cause="missing_reference", explanation="no reference")
        if number % 3
        else replace(one.scores[0], id=f"second{number}", metric="recall", provenance=provenance)
    )
    return replace(
        one,
        record=replace(
            one.record, tags=tags, metadata={"version": f"v{number % 2}", "route": f"/{number % 5}"}
        ),
        scores=(replace(one.scores[0], provenance=provenance), second),
    )


def tags_of(number: int) -> tuple[str, ...]:
    return ("web", "web") + (("vip",) if number % 50 else ()) + (("rare",) if number % 100 == 7 else ())


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    turns = [made(n, tags=tags_of(n), judge="other" if n % 400 == 1 else "local") for n in range(MANY)]
    return results(tmp_path_factory.mktemp("keys") / "s.db", turns)


@pytest.fixture
def file(written: Path, tmp_path: Path) -> Path:
    return Path(shutil.copyfile(written, tmp_path / "s.db"))


@pytest.mark.parametrize("tag", [None, "vip"])
@pytest.mark.parametrize("metric", [None, "recall"])
def test_a_part_of_the_scores_stands_for_all_of_them(file: Path, tag: str | None, metric: str | None) -> None:
    scope = Scope(tag=tag, metric=metric)
    with closing(open_results(file)) as reader:
        turns = reader.totals(scope, brief=True).turns
        whole = reader.scores(scope, turns=turns)
        part = reader.scores(scope, turns=turns, most=MANY // 8)
        assert reader.scores(scope, turns=turns, most=MANY).keys() == whole.keys() == part.keys()
    for name, one in part.items():
        assert one.every > 1 and set(one.times) < set(whole[name].times)
        assert one.times.tolist() == sorted(one.times)
        assert one.every * len(one.values) == pytest.approx(len(whole[name].values), rel=0.4)
        assert sum(1 / one.inclusion) == pytest.approx(sum(1 / whole[name].inclusion), rel=0.5)


def test_an_unknown_judge_tag_or_metric_is_answered_without_a_look_at_the_turns(file: Path) -> None:
    with closing(connect(file)) as connection:
        connection.execute("UPDATE bodies SET body = ''")
    with closing(open_results(file)) as reader:
        for wanted in (TurnFilter(judge="nobody"), TurnFilter(tag="none"), TurnFilter(metric="none")):
            steps = Steps()
            steps.watch(reader)
            assert reader.turns(wanted) == []
            assert steps.count < 20, wanted


@pytest.mark.parametrize("most", [None, 100])
def test_the_scores_of_a_tag_and_metric_take_no_look_at_the_others_for_each_turn(
    file: Path, most: int | None
) -> None:
    with closing(open_results(file)) as reader:
        steps = Steps()
        steps.watch(reader)
        assert reader.scores(Scope(tag="vip", metric="recall"), turns=MANY, most=most)
        assert steps.count < 5_000


class Steps:
    """How much SQLite did, in units of 100 of its instructions."""

    count = 0

    def watch(self, reader: object) -> None:
        connection: sqlite3.Connection = reader.store._connection  # type: ignore[attr-defined]
        connection.set_progress_handler(self.step, 100)

    def step(self) -> int:
        self.count += 1
        return 0


def test_a_tag_is_forgotten_with_its_last_turn(file: Path) -> None:
    prune(file, keep=1)
    assert keys(file) <= 6
    prune(file, keep="1h")
    assert keys(file) == 0


def keys(path: Path) -> int:
    with closing(connect(path)) as connection:
        return int(connection.execute("SELECT count(*) FROM turn_keys").fetchone()[0])
