"""What a results file keeps of tags, versions, routes and judges is what a look at every turn would find."""

from __future__ import annotations

import random
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from report.parts import results
from report.test_hours import HOUR, START, connect, forget_powers, forget_sums, judged, refresh, same
from steelyard.report import Scope, TurnFilter, open_results, refresh_results
from steelyard.scores import Evaluation, Provenance, Score
from steelyard.sinks import prune

MANY = 1_050
TAGS = ("web", "vip", "rare", "")


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
    path = results(tmp_path_factory.mktemp("keys") / "s.db", turns)
    refresh(path)
    return path


@pytest.fixture
def file(written: Path, tmp_path: Path) -> Path:
    return Path(shutil.copyfile(written, tmp_path / "s.db"))


def add_more(path: Path) -> None:
    results(path, [made(n, tags=("web", "new")) for n in range(MANY, MANY + 40)])


def judge_again(path: Path) -> None:
    results(path, [made(n, tags=tags_of(n), judge="third", value=0.9) for n in range(0, 70, 7)])


def change_tags(path: Path) -> None:
    results(path, [made(n, tags=("vip", "rare")) for n in range(0, 60, 3)])


def lose_content(path: Path) -> None:
    results(path, [replace(made(n, tags=("web",)), record=None) for n in range(0, 60, 4)])


def delete_some(path: Path) -> None:
    assert prune(path, keep=600).turns == MANY - 600


def delete_most(path: Path) -> None:
    prune(path, keep=20)


def upgrade(path: Path) -> None:
    forget_sums(path)
    add_more(path)


def widen(path: Path) -> None:
    forget_powers(path)
    add_more(path)


CHANGES = (add_more, judge_again, change_tags, lose_content, delete_some, delete_most)
OF_FILES = (*CHANGES, forget_sums, upgrade, forget_powers, widen)


def tables(path: Path) -> dict[str, int]:
    with closing(connect(path)) as connection:
        return {
            name: connection.execute(f"SELECT count(*) FROM {name}").fetchone()[0]
            for name in ("turn_keys", "hour_sums", "hour_bars", "hour_missing")
        }


@pytest.mark.parametrize("change", OF_FILES, ids=lambda change: change.__name__)
@pytest.mark.parametrize("refreshed", [False, True])
def test_the_sums_of_a_tag_are_those_of_its_scores_after(
    file: Path, change: Callable[[Path], None], refreshed: bool
) -> None:
    change(file)
    if refreshed:
        refresh_results(str(file))
        assert tables(file)["hour_sums"] > 0
    for tag in TAGS:
        same(file, Scope(tag=tag))
        counted(file, Scope(tag=tag))
        counted(file, Scope(tag=tag, metric="recall"))
        counted(file, Scope(tag=tag, metric="recall", since=START + 3.5 * HOUR, until=START + 20.2 * HOUR))


def counted(path: Path, scope: Scope) -> None:
    """Counts are what a plain look at every row finds."""
    since = -1e300 if scope.since is None else scope.since
    until = 1e300 if scope.until is None else scope.until
    tagged = "EXISTS (SELECT 1 FROM json_each(coalesce(e.tags, '[]')) WHERE value = :tag)"
    asked = "(:metric IS NULL OR s.metric = :metric)"
    of_score = f"FROM scores s JOIN evaluations e USING (record_id) WHERE {asked} AND "
    values = {"metric": scope.metric, "tag": scope.tag, "since": since, "until": until}
    with closing(connect(path)) as connection:
        turns = connection.execute(
            f"""SELECT count(DISTINCT e.record_id), min(e.evaluated_at), max(e.evaluated_at) {of_score}
                {tagged} AND s.evaluated_at >= :since AND s.evaluated_at < :until""",
            values,
        ).fetchone()
        missing = connection.execute(
            f"""SELECT s.metric, s.status, s.cause, count(*) {of_score} {tagged}
                AND s.evaluated_at >= :since AND s.evaluated_at < :until AND s.status != 'scored'
                GROUP BY 1, 2, 3""",
            values,
        ).fetchall()
    with closing(open_results(path)) as reader:
        totals = reader.totals(scope, brief=True)
        assert (totals.turns, totals.first, totals.last) == turns
        found = reader.missing(scope)
        assert sorted((one.metric, one.status, one.cause, one.count) for one in found) == sorted(missing)
        assert all(one.explanation for one in found)


@settings(max_examples=25, deadline=None)
@given(st.floats(-1.2, 31.2), st.floats(-1.2, 31.2), st.sampled_from(TAGS))
def test_the_period_of_a_tag_may_begin_and_end_within_an_hour(
    written: Path, since: float, until: float, tag: str
) -> None:
    same(written, Scope(tag=tag, since=START + since * HOUR, until=START + until * HOUR))
    same(written, Scope(tag=tag, since=START + since * HOUR))
    same(written, Scope(tag=tag, until=START + until * HOUR, metric="recall"))


FILTERS = (
    TurnFilter(tag="web"),
    TurnFilter(tag="rare"),
    TurnFilter(tag="no such tag"),
    TurnFilter(version="v1"),
    TurnFilter(version="v1", route="/3", tag="vip"),
    TurnFilter(judge="other"),
    TurnFilter(judge="third", metric="recall"),
    TurnFilter(judge="local", version="v0", status="passed"),
    TurnFilter(judge="nobody"),
    TurnFilter(metric="no such metric"),
    TurnFilter(status="failed"),
    TurnFilter(status="failed", metric="recall"),
    TurnFilter(status="not_passed", tag="rare"),
    TurnFilter(status="not_applicable", metric="recall", version="v0"),
    TurnFilter(status="passed", metric="recall", judge="local"),
    TurnFilter(text="France", tag="rare", route="/2"),
    TurnFilter(text="France", version="v1"),
    TurnFilter(text="France", metric="recall"),
    TurnFilter(text="no such text"),
)


@pytest.mark.parametrize("change", [add_more, *OF_FILES[1:]], ids=lambda change: change.__name__)
def test_the_list_of_turns_is_what_a_look_at_every_turn_finds(
    file: Path, change: Callable[[Path], None]
) -> None:
    change(file)
    for wanted in FILTERS:
        assert listed(file, wanted) == looked_for(file, wanted), wanted


def listed(path: Path, wanted: TurnFilter) -> list[str]:
    """All of it, page by page, then once more from the oldest on."""
    found: list[str] = []
    key = None
    with closing(open_results(path)) as reader:
        while rows := reader.turns(wanted, before=key, limit=170):
            found += [row.record_id for row in rows]
            key = rows[-1].key
        back: list[str] = []
        after = (-1e300, "")
        while newer := reader.turns(wanted, after=after, limit=400):
            back = [row.record_id for row in newer] + back
            after = newer[0].key
    assert back == found
    return found


def looked_for(path: Path, wanted: TurnFilter) -> list[str]:
    outcome = {
        "": "1",
        "passed": "s.passed = 1",
        "not_passed": "s.passed = 0",
        "failed": "s.status = 'failed'",
        "not_applicable": "s.status = 'not_applicable'",
    }[str(wanted.status)]
    with closing(connect(path)) as connection:
        return [
            row[0]
            for row in connection.execute(
                f"""SELECT e.record_id FROM evaluations e WHERE
                    (:tag = '' OR EXISTS (SELECT 1 FROM json_each(e.tags) WHERE value = :tag))
                    AND (:version = '' OR json_extract(e.metadata, '$.version') = :version)
                    AND (:route = '' OR json_extract(e.metadata, '$.route') = :route)
                    AND (:text = '' OR instr(e.question, :text) OR instr(e.answer, :text))
                    AND EXISTS (SELECT 1 FROM scores s WHERE s.record_id = e.record_id AND {outcome}
                        AND (:metric = '' OR s.metric = :metric) AND (:judge = '' OR s.judge = :judge))
                    ORDER BY e.evaluated_at DESC, e.record_id DESC""",
                {
                    "tag": wanted.tag,
                    "version": wanted.version,
                    "route": wanted.route,
                    "text": wanted.text,
                    "metric": wanted.metric,
                    "judge": wanted.judge,
                },
            )
        ]


def test_an_unknown_judge_tag_or_metric_is_answered_without_a_look_at_the_turns(file: Path) -> None:
    with closing(connect(file)) as connection:
        connection.execute("UPDATE bodies SET body = ''")
    with closing(open_results(file)) as reader:
        for wanted in (TurnFilter(judge="nobody"), TurnFilter(tag="none"), TurnFilter(metric="none")):
            steps = Steps()
            steps.watch(reader)
            assert reader.turns(wanted) == []
            assert steps.count < 20, wanted


class Steps:
    """How much SQLite did, in units of 100 of its instructions."""

    count = 0

    def watch(self, reader: object) -> None:
        connection: sqlite3.Connection = reader._connection  # type: ignore[attr-defined]
        connection.set_progress_handler(self.step, 100)

    def step(self) -> int:
        self.count += 1
        return 0


def test_a_tag_is_forgotten_with_its_last_turn(file: Path) -> None:
    prune(file, keep=1)
    refresh(file)
    left = tables(file)
    assert left["turn_keys"] <= 6
    prune(file, keep="1h")
    refresh(file)
    assert tables(file) == dict.fromkeys(left, 0)
