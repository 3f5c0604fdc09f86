"""Figures go by when a turn happened: whenever and in whatever order it was judged, they are the same."""

from __future__ import annotations

import asyncio
import json
import random
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import httpx
import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from report.parts import DAY, MONDAY, NOON, month, results, turn
from servers import PostgresServer
from steelyard.alarms import Alarm
from steelyard.alarms._watch import Watch
from steelyard.record import Record, Timings
from steelyard.report import TurnFilter, build_figures, open_results, report
from steelyard.report.figures import ChangeFigure, FindingFigure
from steelyard.report.lights import deploy_words, what_words
from steelyard.results.queries import Scope
from steelyard.scores import Evaluation, Score
from steelyard.sinks import PostgresSink, Retention, SQLiteSink, prune, read_evaluations
from steelyard.stats import Difference, unpaired_difference

Judged = Callable[[Sequence[Record], random.Random], list[Evaluation]]


def turns_of(draw: random.Random, count: int) -> list[Record]:
    """Turns of some weeks, most of them of two versions and three tenants, in order of time."""
    times = sorted(NOON + draw.uniform(0, 20 * DAY) for _ in range(count))
    return [
        Record(
            id=f"r{number}",
            question=f"What of {number % 7}?",
            answer="It is said.",
            tags=(f"tag{draw.randrange(3)}",),
            metadata={"version": f"v{draw.randrange(2)}"},
            session=f"s{number // 3}",
            tenant=f"t{draw.randrange(3)}",
            timings=Timings(started_at=at),
        )
        for number, at in enumerate(times)
    ]


def result(record: Record, at: float) -> Evaluation:
    """What a judge says of a turn, whenever it is asked."""
    draw = random.Random(record.id)
    score = Score(
        metric="faithfulness",
        status="scored",
        value=round(draw.random(), 2),
        passed=draw.random() < 0.8,
        threshold=1.0,
        inclusion_probability=draw.choice([1.0, 0.2]),
        id=f"score of {record.id}",
    )
    lacking = Score.not_applicable("recall", cause="missing_reference", explanation="no reference")
    scores = (score, replace(lacking, id=f"lack of {record.id}"))
    return Evaluation(record_id=record.id, scores=scores, record=record, evaluated_at=at, duration=1.0)


def started(record: Record) -> float:
    assert record.timings is not None and record.timings.started_at is not None
    return record.timings.started_at


def live(records: Sequence[Record], _: random.Random) -> list[Evaluation]:
    return [result(record, started(record) + 2) for record in records]


def late_in_any_order(records: Sequence[Record], draw: random.Random) -> list[Evaluation]:
    judged = [result(record, started(record) + draw.expovariate(1 / DAY)) for record in records]
    return draw.sample(judged, len(judged))


def in_one_night(records: Sequence[Record], draw: random.Random) -> list[Evaluation]:
    """As `backfill` does, and once more, with the same results again."""
    shuffled = draw.sample(list(records), len(records))
    judged = [result(record, NOON + 40 * DAY + number / 10) for number, record in enumerate(shuffled)]
    return judged + judged[: len(judged) // 2]


WAYS: tuple[Judged, ...] = (live, late_in_any_order, in_one_night)


def write(address: str, evaluations: Sequence[Evaluation]) -> None:
    sink = PostgresSink(address) if "://" in address else SQLiteSink(address)

    async def run() -> None:
        for start in range(0, len(evaluations), 40):
            await sink.write(evaluations[start : start + 40])
        await sink.aclose()

    asyncio.run(run())


def seen(address: str) -> dict[str, Any]:
    """All that is shown of results: figures, slices, what slices are made of, and the list of turns."""
    with closing(open_results(address)) as reader:
        figures = {
            (scope, by): replace(build_figures(reader, scope, by=by), made_at=0.0, source="")
            for scope in (
                Scope(),
                Scope(since=NOON + 5 * DAY, until=NOON + 15.3 * DAY),
                Scope(tag="tag1"),
                Scope(metric="faithfulness", since=NOON + 3.1 * DAY, tag="tag0"),
            )
            for by in (None, "version")
        }
        # Worst turns are whole evaluations, which say when they were judged.
        return {
            "figures": [replace(one, worst=()) for one in figures.values()],
            "worst": [
                [turn.record_id for turn in worst.turns] for one in figures.values() for worst in one.worst
            ],
            "sample": reader.sample(Scope(), "faithfulness", limit=50),
            "turns": [reader.turns(wanted) for wanted in (TurnFilter(), TurnFilter(tag="tag2"))],
        }


@settings(max_examples=4, deadline=None, phases=[Phase.generate])
@given(seed=st.integers(0, 2**32), count=st.integers(50, 160))
def test_whenever_turns_are_judged_a_file_shows_the_same(
    tmp_path_factory: pytest.TempPathFactory, seed: int, count: int
) -> None:
    draw = random.Random(seed)
    records = turns_of(draw, count)
    paths = []
    for way in WAYS:
        paths.append(tmp_path_factory.mktemp("time") / "s.db")
        write(str(paths[-1]), way(records, draw))
    first, *others = [approximate(seen(str(path))) for path in paths]
    assert all(other == first for other in others)
    left = []
    for path in paths:
        prune(path, keep=Retention(turns=count // 2))
        left.append([one.record_id for one in read_evaluations(path)])
    assert left == [[record.id for record in records[-(count // 2) :]]] * 3


def approximate(shown: Any) -> Any:
    """Sums depend in their last digit on the order in which they were added up."""
    return pytest.approx(shown) if isinstance(shown, float) else _inside(shown)


def _inside(shown: Any) -> Any:
    if isinstance(shown, dict):
        return {name: approximate(item) for name, item in shown.items()}
    if isinstance(shown, list | tuple):
        return [approximate(item) for item in shown]
    if hasattr(shown, "__dataclass_fields__"):
        return {name: approximate(getattr(shown, name)) for name in shown.__dataclass_fields__}
    return shown


def test_whenever_turns_are_judged_postgres_shows_the_same(postgres: PostgresServer, tmp_path: Path) -> None:
    draw = random.Random(7)
    records = turns_of(draw, 150)
    write(str(tmp_path / "s.db"), live(records, draw))
    found = [approximate(seen(str(tmp_path / "s.db")))]
    for way in WAYS:
        url = postgres.new_database()
        write(url, way(records, draw))
        found.append(approximate(seen(url)))
    assert all(one == found[0] for one in found[1:])


def events(evaluations: Sequence[Evaluation], alarm: Alarm) -> list[tuple[str, float, float | None, int]]:
    watch = Watch.start(alarm)
    told = [event for one in evaluations if (event := watch.take(alarm, one))]
    return [(event.kind, event.at, event.since, event.late) for event in told]


ALARM = Alarm(metric="faithfulness", below=0.7)


def fallen(number: int, value: float, *, judged: float | None = None) -> Evaluation:
    at = NOON + number * 60
    score = Score(metric="faithfulness", status="scored", value=value, id=f"s{number}")
    return Evaluation(
        record_id=f"r{number}", scores=(score,), happened_at=at, evaluated_at=at if judged is None else judged
    )


def test_a_fall_that_is_judged_at_night_is_told_for_the_day_of_the_fall() -> None:
    values = [0.9] * 500 + [0.1] * 400
    at_once = [fallen(number, value) for number, value in enumerate(values)]
    at_night = [fallen(number, value, judged=NOON + DAY) for number, value in enumerate(values)]
    (told,) = events(at_once, ALARM)
    assert [told] == events(at_night, ALARM)
    assert told[0] == "fell" and NOON + 495 * 60 < (told[2] or 0) <= told[1] < NOON + 900 * 60


def test_turns_of_the_past_do_not_set_off_an_alarm_of_today_and_are_told() -> None:
    today = [fallen(number, 0.9) for number in range(5_000, 5_100)]
    past = [fallen(number, 0.0, judged=NOON + 5_100 * 60.0) for number in range(300)]
    falling = [fallen(number, 0.0) for number in range(5_100, 6_000)]
    assert events([*today, *past], ALARM) == []
    (told,) = events([*today, *past, *falling], ALARM)
    assert told[0] == "fell" and (told[2] or 0) >= NOON + 5_099 * 60 and told[3] == 300


@pytest.mark.parametrize("seed", [1, 4])
def test_nothing_is_told_that_is_not_there(tmp_path: Path, seed: int) -> None:
    path = results(tmp_path / "m.db", month(np.random.default_rng(seed), falls=False))
    figures = report(path).figures
    (metric,) = figures.metrics
    assert metric.alike == "sessions"
    assert metric.design_effect > 1.1
    assert metric.estimate.units is not None
    assert metric.estimate.low <= 0.92 <= metric.estimate.high + 0.005
    assert [change for change in metric.changes if change.difference.clear] == []
    assert (figures.slices, figures.findings) == ((), ())
    worth = f"Tells as much as {metric.estimate.effective_n:,.0f} independent turns of equal weight"
    page = printed(path)
    assert "No clear change" in page and "customer: tenant" not in page
    assert worth in page and metric.estimate.effective_n < 0.9 * metric.estimate.n


@pytest.mark.parametrize("seed", [1, 3])
def test_the_fall_of_one_tenant_is_told_and_whose_it_is(tmp_path: Path, seed: int) -> None:
    path = results(tmp_path / "m.db", month(np.random.default_rng(seed), falls=True))
    figures = report(path).figures
    (metric,) = figures.metrics
    (change,) = (change for change in metric.changes if change.difference.clear)
    assert change.worse and change.until is None
    assert (change.since - MONDAY) / DAY == pytest.approx(20, abs=3)
    (finding,) = figures.findings
    assert finding.names == (("customer", "tenant 2"),)
    assert finding.worse and finding.earliest <= finding.since <= finding.latest
    assert (finding.since - MONDAY) / DAY == pytest.approx(20, abs=1)
    page = printed(path)
    assert "faithfulness fell" in page and "customer: tenant 2" in page and "tenant 1" not in page


def printed(path: Path) -> str:
    """What the live view shows of all of it, and of what stands out."""

    pytest.importorskip("starlette", reason="starlette is not installed")
    from steelyard.view import app

    async def pages() -> str:
        transport = httpx.ASGITransport(app=app(str(path)))
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as http:
            return "".join([(await http.get(page)).text for page in ("/", "/api/closer")])

    return anyio.run(pages)


def test_a_slow_fall_is_told_with_its_ends_and_no_deploy(tmp_path: Path) -> None:
    draw = np.random.default_rng(1)
    days = np.sort(draw.uniform(0, 28, 3_000)).tolist()
    values = [float(draw.random() < 0.95 - 0.2 * day / 28) for day in days]
    turns = [
        replace(turn(number, value, version="v1" if day < 14 else "v2"), happened_at=MONDAY + DAY * day)
        for number, (day, value) in enumerate(zip(days, values, strict=True))
    ]
    path = results(tmp_path / "m.db", turns)
    (finding,) = report(path).figures.findings
    assert (finding.since, finding.until, finding.deploys) == (MONDAY, MONDAY + 28 * DAY, ())
    said = what_words(finding)
    assert " fell slowly from 0.9" in said and said.endswith(" between 2025-10-06 and 2025-11-03.")
    assert said in printed(path) and not deploy_words(finding)


def test_two_falls_are_told_as_two_if_nobody_knows_sessions(tmp_path: Path) -> None:
    draw = np.random.default_rng(1)
    days = np.sort(draw.uniform(0, 28, 4_000)).tolist()
    values = [float(draw.random() < 0.95 - 0.12 * (day >= 9) - 0.15 * (day >= 18)) for day in days]
    turns = [
        replace(turn(number, value, content=False), happened_at=MONDAY + DAY * day)
        for number, (day, value) in enumerate(zip(days, values, strict=True))
    ]
    figures = report(results(tmp_path / "m.db", turns)).figures
    for told in (figures.metrics[0].changes, figures.findings):
        assert [one.until for one in told] == [None, None]
        since = sorted((one.since - MONDAY) / DAY for one in told)
        assert since == pytest.approx([9, 18], abs=1)


def test_the_counts_of_every_run_that_touches_a_period_are_in_it(tmp_path: Path) -> None:
    path = results(tmp_path / "s.db", [turn(1, 0.5)])
    runs = {"before": (10, 20, 0.5), "into": (15, 35, 0.2), "over": (5, 90, 0.4), "after": (70, 80, 0.3)}
    with closing(sqlite3.connect(path)) as connection:
        for seen, (name, (begins, ends, floor)) in zip((1, 10, 100, 1000), runs.items(), strict=True):
            counts = json.dumps({"seen": seen, "floor": floor})
            connection.execute("INSERT INTO ledger VALUES (?, 'h', 1, ?, ?, ?)", (name, begins, ends, counts))
        connection.commit()
    with closing(open_results(path)) as reader:
        found = [reader.funnel(Scope(since=since, until=until)) for since, until in ((30, 60), (None, 12))]
        every = reader.funnel(Scope())
    assert [one and (one.seen, one.first, one.last) for one in found] == [(110, 5, 90), (101, 5, 90)]
    # The least share of any run: of less nobody can be sure that it was judged.
    assert [one and one.floor for one in (*found, every)] == [0.2, 0.4, 0.2]


def difference(value: float) -> Difference:
    return Difference(first=0.5, second=0.5 + value, value=value, low=value - 0.01, high=value + 0.01, n=99)


@pytest.mark.parametrize(
    ("moved", "within", "by_mix"),
    [(-0.2, -0.09, True), (-0.2, -0.11, False), (0.2, 0.09, True), (0.2, -0.11, False), (-0.2, None, False)],
)
def test_a_change_is_by_the_mix_of_questions_if_the_mix_explains_most_of_it(
    moved: float, within: float | None, by_mix: bool
) -> None:
    found = FindingFigure(
        metric="faithfulness",
        direction="higher",
        names=(),
        since=0.0,
        earliest=0.0,
        latest=0.0,
        share=1.0,
        turns=1.0,
        harm=1.0,
        difference=difference(moved),
        within=None if within is None else difference(within),
    )
    assert found.by_mix == by_mix


@pytest.mark.parametrize("moves", [(0.1, -0.3), (-0.3, 0.1), (0.3, -0.1), (-0.1, 0.3)])
def test_the_largest_change_is_the_one_that_is_told_whichever_way_it_went(
    moves: tuple[float, float], tmp_path: Path
) -> None:
    (metric,) = report(results(tmp_path / "s.db", [turn(1, 0.5)])).figures.metrics
    changes = tuple(ChangeFigure(since=1.0, difference=difference(one), worse=one < 0) for one in moves)
    told = replace(metric, changes=changes).change
    assert told is not None and abs(told.difference.value) == 0.3


@pytest.mark.parametrize(("first", "second", "few"), [(30, 300, False), (29, 300, True), (300, 29, True)])
def test_a_difference_is_of_few_turns_if_one_of_its_groups_is(first: int, second: int, few: bool) -> None:
    found = unpaired_difference([0.0, 1.0] * (first // 2) + [0.5] * (first % 2), [0.5] * second)
    assert found is not None and (found.few, found.n) == (few, min(first, second))
