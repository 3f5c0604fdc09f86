"""An alarm goes off when scores have fallen, once, and not before."""

from __future__ import annotations

import logging
import math
import re
import sqlite3
import statistics
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from alarms.alarm_parts import START, scored
from online.helpers import FAITHFUL
from online.test_canaries import Knowing, turn
from stats.session_parts import Traffic
from steelyard.alarms import Alarm, AlarmEvent, AlarmSink, AlarmWatcher, Range, alarms_from
from steelyard.alarms._watch import Watch
from steelyard.errors import ConfigurationError
from steelyard.online import Canaries, CanaryReading, Monitor
from steelyard.stats import FallAlarm, Moments
from steelyard.testing import ScriptedJudge
from waiting import until


@pytest.fixture
def file(tmp_path: Path) -> str:
    return str(tmp_path / "alarms.db")


def feed(watcher: AlarmWatcher, values: list[float], start: int = 0, **more: object) -> list[AlarmEvent]:
    turns = [scored(number, value, **more) for number, value in enumerate(values, start)]  # type: ignore[arg-type]
    return list(watcher.take(turns))


def test_a_fall_is_told_within_the_turn_that_crosses_and_once(file: str) -> None:
    watcher = AlarmWatcher([Alarm(metric="faithfulness", below=0.8)], file=file)
    values = [0.95] * 50 + [0.2] * 60
    reference = FallAlarm(target=0.8)
    crossed = next(number for number, value in enumerate(values) if reference.add(value))
    assert crossed > 50
    assert feed(watcher, values[:crossed]) == []
    (event,) = feed(watcher, values[crossed:], crossed)
    assert event.kind == "fell"
    assert event.at == START + crossed
    assert event.since == START + 50
    assert event.before is not None
    assert event.before.value == pytest.approx(0.95)
    assert event.before.turns == 50
    assert event.now is not None
    assert event.now.value == pytest.approx(0.2)
    assert event.now.turns == crossed - 49
    assert [turn.record_id for turn in event.worst] == [f"r{50 + n}" for n in range(len(event.worst))]
    (status,) = watcher.status()
    assert status.now is not None
    assert status.now.value == pytest.approx(0.2)
    assert status.before is None


def test_it_is_told_when_the_scores_have_recovered_and_a_second_fall_after_that(file: str) -> None:
    watcher = AlarmWatcher([Alarm(metric="faithfulness", below=0.8)], file=file)
    events = feed(watcher, [0.1] * 40 + [1.0] * 80 + [0.1] * 80)
    assert [event.kind for event in events] == ["fell", "recovered", "fell"]
    assert [event.lines[0].startswith("worse than") for event in events] == [True, False, True]


def test_a_turn_that_is_delivered_again_counts_once(file: str) -> None:
    watcher = AlarmWatcher([Alarm(metric="faithfulness", below=0.8)], file=file)
    for _ in range(50):
        watcher.take([scored(1, 0.0)])
    assert watcher.status()[0].turns == 1


def test_what_it_knows_survives_a_restart_and_is_shared_by_processes(file: str) -> None:
    alarm = Alarm(metric="faithfulness", below=0.8)
    alone = AlarmWatcher([alarm], file=f"{file}-alone")
    values = [0.9] * 20 + [0.3] * 30
    whole = [event.at for event in feed(alone, values)]
    split: list[float] = []
    for number, value in enumerate(values):
        other = AlarmWatcher([alarm], file=file)
        split += [event.at for event in other.take([scored(number, value)])]
    assert split == whole != []


def test_turns_that_were_picked_because_they_looked_bad_do_not_count_for_all(file: str) -> None:
    """One turn in ten is bad; all of them are judged, and a tenth of the others."""
    watcher = AlarmWatcher([Alarm(metric="faithfulness", below=0.8)], file=file)
    turns = [
        scored(number, 0.0, inclusion=1.0) if number % 2 else scored(number, 1.0, inclusion=0.1)
        for number in range(2_000)
    ]
    assert [
        event for start in range(0, 2_000, 100) for event in watcher.take(turns[start : start + 100])
    ] == []
    (status,) = watcher.status()
    assert status.before is not None
    assert status.before.value == pytest.approx(10 / 11, abs=0.01)


def test_a_budget_that_thins_the_sample_on_the_way_sets_nothing_off() -> None:
    """Bad turns are all picked, the others with .1, then, as the budget binds, with .02."""
    alarm = Alarm(metric="faithfulness", below=0.88)
    draw = np.random.default_rng(2)
    false = 0
    for _ in range(10):
        watch = Watch.start(alarm)
        told = False
        for number in range(12_000):
            value = float(draw.random() < 0.9)
            share = 1.0 if number < 4_000 else 0.2
            inclusion = share * (0.1 if value else 1.0)
            if draw.random() < inclusion:
                told |= watch.take(alarm, scored(number, value, inclusion=inclusion)) is not None
        assert watch.smallest == pytest.approx(0.02)
        false += told
    assert false <= 2


def test_it_watches_only_the_turns_it_names(file: str) -> None:
    alarm = Alarm(metric="faithfulness", below=0.8, where={"tag": "vip", "route": "/a"})
    watcher = AlarmWatcher([alarm], file=file)
    assert feed(watcher, [0.0] * 50, tags=("vip",), metadata={"route": "/b"}) == []
    assert feed(watcher, [0.0] * 50, 50, metadata={"route": "/a"}) == []
    (event,) = feed(watcher, [0.0] * 50, 100, tags=("vip", "x"), metadata={"route": "/a"})
    assert event.slice == "route=/a, tag=vip"


def test_other_metrics_failures_and_values_out_of_range_are_left_out(file: str) -> None:
    watcher = AlarmWatcher([Alarm(metric="faithfulness", below=0.8)], file=file)
    feed(watcher, [0.0] * 10, metric="relevancy")
    watcher.take([scored(1, None), scored(2, 7.0)])
    assert watcher.status()[0].turns == 0


def test_metrics_of_which_less_is_better_have_an_upper_bar(file: str) -> None:
    alarm = Alarm(metric="faithfulness", above=2.0, range=(1.0, 5.0))
    watcher = AlarmWatcher([alarm], file=file)
    (event,) = feed(watcher, [1.1] * 30 + [4.5] * 30, direction="lower")
    assert event.target == pytest.approx(2.0)
    assert event.now is not None
    assert event.now.value == pytest.approx(4.5)
    assert event.worst[0].value == 4.5
    assert "worse than 2.000 on average since" in event.text


@pytest.mark.parametrize(
    ("more", "less"),
    [
        ({"below": 1.5}, {"above": 0.5}),
        ({"falls_by": 0.3, "baseline": 40}, {"falls_by": 0.3, "baseline": 40}),
    ],
    ids=["bar", "learnt"],
)
def test_where_less_is_better_all_is_the_mirror_of_where_more_is(
    more: dict[str, float], less: dict[str, float], tmp_path: Path
) -> None:
    rng = np.random.default_rng(6)
    means = np.repeat([1.8, 0.7, 1.8], [80, 60, 150])
    values = [float(value) for value in np.clip(rng.normal(means, 0.1), 0, 2)]
    up, down = (
        AlarmWatcher(
            [Alarm(metric="faithfulness", range=(0.0, 2.0), **options)],  # type: ignore[arg-type]
            file=str(tmp_path / name),
        )
        for name, options in (("up", more), ("down", less))
    )
    events = feed(up, values)
    mirrored = feed(down, [2 - value for value in values], direction="lower")
    assert [one.kind for one in events] == ["fell", "recovered"]
    for one, other in zip(events, mirrored, strict=True):
        assert (one.kind, one.at, one.since) == (other.kind, other.at, other.since)
        assert one.target == pytest.approx(2 - (other.target or 0))
        check_mirrored(one.now, other.now)
        check_mirrored(one.before, other.before)
        assert [turn.record_id for turn in one.worst] == [turn.record_id for turn in other.worst]
        assert [turn.value for turn in one.worst] == pytest.approx([2 - turn.value for turn in other.worst])
        assert [turn.quality for turn in one.worst] == pytest.approx([turn.quality for turn in other.worst])
    (one_status,), (other_status,) = up.status(), down.status()
    assert one_status.target == pytest.approx(2 - (other_status.target or 0))
    check_mirrored(one_status.now, other_status.now)


def check_mirrored(one: Range | None, other: Range | None) -> None:
    assert (one is None) == (other is None)
    if one is not None and other is not None:
        assert one.turns == other.turns
        bounds = (2 - other.value, 2 - other.high, 2 - other.low)
        assert (one.value, one.low, one.high) == pytest.approx(bounds)


@pytest.mark.parametrize(
    ("changed", "told"),
    [({"prompt": "4"}, "prompt 4"), ({"version": "4"}, "metric 4"), ({"judge": "other"}, "other, prompt 3")],
)
def test_it_says_whether_the_judge_changed_meanwhile(file: str, changed: dict[str, str], told: str) -> None:
    watcher = AlarmWatcher([Alarm(metric="faithfulness", below=0.8)], file=file)
    feed(watcher, [1.0] * 30)
    (event,) = feed(watcher, [0.2] * 30, 30, **changed)
    assert event.judge_changed
    assert "local-lexical, prompt 3, metric 1" in event.text
    assert told in event.text
    assert "the judge changed meanwhile" in event.text


def test_silence_is_told_once_and_only_if_asked_for(file: str, caplog: pytest.LogCaptureFixture) -> None:
    now = START
    quiet = Alarm(metric="faithfulness", below=0.5, name="quiet")
    asked = Alarm(metric="faithfulness", below=0.5, silent_after=60, name="asked", to=["log"])
    watcher = AlarmWatcher([quiet, asked], file=file, clock=lambda: now)
    now += 1_000
    assert watcher.look() == []  # nothing was ever scored
    watcher.take([scored(0, 1.0)])
    now = START + 59
    assert watcher.look() == []
    now = START + 61
    assert [(event.alarm, event.kind) for event in watcher.look()] == [("asked", "silent")]
    assert watcher.look() == []
    watcher.take([scored(100, 1.0)])
    now = START + 161
    assert [event.kind for event in watcher.look()] == ["silent"]
    with caplog.at_level(logging.WARNING):
        watcher.tell()
    assert "no turn was scored for faithfulness" in caplog.text


def run(alarm: Alarm, values: np.ndarray) -> int | None:
    watch = Watch.start(alarm)
    for number, value in enumerate(values.tolist()):
        if watch.take(alarm, scored(number, value, session=f"s{number}")) is not None:
            return number
    return None


def test_a_fall_from_what_is_normal_is_found_and_seldom_a_false_one() -> None:
    alarm = Alarm(metric="faithfulness", falls_by=0.03)
    rng = np.random.default_rng(5)
    false = found = 0
    turns = []
    for _ in range(20):
        healthy = (rng.random(1_600) < 0.9).astype(float)
        fallen = (rng.random(800) < 0.8).astype(float)
        at = run(alarm, np.concatenate([healthy, fallen]))
        false += at is not None and at < 1_600
        if at is not None and at >= 1_600:
            found += 1
            turns.append(at - 1_600)
    assert false <= 4  # 5 % of 20 is 1; more than 4 come once in 400 runs
    assert found >= 16
    assert statistics.median(turns) <= 500


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_healthy_streams_seldom_set_it_off() -> None:
    rng = np.random.default_rng(6)
    for alarm in (Alarm(metric="faithfulness", below=0.9), Alarm(metric="faithfulness", falls_by=0.03)):
        false = sum(run(alarm, (rng.random(2_000) < 0.9).astype(float)) is not None for _ in range(400))
        assert false <= 400 * 0.05 + 13  # three standard errors


def test_a_fall_before_weeks_are_known_is_told_as_soon_as_few_turns_a_day_allow() -> None:
    """A CUSUM that knows both means needs 160 turns; if all of .03 were allowed for, it would take 390."""
    alarm, delays = Alarm(metric="faithfulness", below=0.9), []
    draw = np.random.default_rng(4)
    for _ in range(24):
        watch = Watch.start(alarm)
        for number in range(2_600):
            mean = 0.9 if number < 1_400 else 0.8
            turn = scored(number, float(draw.random() < mean))
            if watch.take(alarm, turn.replace(happened_at=START + number / 200 * 86_400)) is not None:
                delays.append(number - 1_400)
                break
    assert 160 <= statistics.median(delays) <= 300


def test_a_week_that_goes_up_and_down_is_not_a_fall() -> None:
    """200 turns a day; then the mean falls on every day, and that is told."""
    alarm, false, told = Alarm(metric="faithfulness", below=0.9), 0, []
    draw = np.random.default_rng(9)
    for swing in (0.03, -0.03, -0.03):
        watch, first = Watch.start(alarm), None
        for number in range(6_500):
            at = number / 200
            mean = 0.9 + swing * np.sin(2 * np.pi * at / 7) - (0.1 if number >= 5_000 else 0)
            turn = scored(number, float(draw.random() < mean)).replace(happened_at=START + at * 86_400)
            if watch.take(alarm, turn) is not None:
                first = number
                break
        false += first is not None and first < 5_000
        told.append(first)
    assert false <= 1
    assert None not in told
    assert statistics.median(number for number in told if number is not None) <= 5_400


def test_turns_whose_sessions_nobody_knows_are_alike_by_their_order(file: str) -> None:
    """Conversations of twenty turns on average, one after another; by itself, each turn sets it off."""
    traffic, draw = Traffic(size=20, alike=0.3), np.random.default_rng(3)
    alarm, false, effects = Alarm(metric="faithfulness", below=0.9), 0, []
    for _ in range(8):
        watch = Watch.start(alarm)
        turns = [scored(n, v, session="") for n, v in enumerate(traffic.stream(draw, 3_000).values.tolist())]
        false += sum(watch.take(alarm, turn) is not None for turn in turns) > 0
        effects.append(watch.design_effect)
    assert false <= 1
    assert min(effects) > 2
    # A fall of turns that are independent is told no later than half as late again as by sessions.
    places = []
    for session in ("own {}", ""):
        watch, draw = Watch.start(alarm), np.random.default_rng(4)
        values = (draw.random(2_000) < np.where(np.arange(2_000) < 500, 0.9, 0.6)) + 0.0
        told = [watch.take(alarm, scored(n, v, session=session.format(n))) for n, v in enumerate(values)]
        place, event = next((place, event) for place, event in enumerate(told) if event is not None)
        places.append(place)
    assert 500 < places[0] <= places[1] < 800
    assert event is not None
    assert "no turn says which session it is of" in event.text


def test_a_mean_of_turns_that_are_alike_is_known_less_well(tmp_path: Path) -> None:
    wide = []
    for size in (1, 10):
        watcher = AlarmWatcher([Alarm(metric="faithfulness", below=0.2)], file=str(tmp_path / f"{size}.db"))
        values = [float(number // 10 % 4 > 0) for number in range(400)]
        watcher.take([scored(n, value, session=f"s{n // size}") for n, value in enumerate(values)])
        (now,) = (status.now for status in watcher.status())
        assert now is not None
        wide.append(now.high - now.low)
    assert wide[1] > 2 * wide[0]


def test_a_bad_session_is_not_a_fall_and_what_is_known_of_it_is_kept(file: str) -> None:
    alarm = Alarm(metric="faithfulness", below=0.8)
    values, sessions = [0.95] * 100 + [0.0] * 25, [f"s{n}" for n in range(100)] + ["bad"] * 25
    watcher = AlarmWatcher([alarm], file=file)
    told = []
    for number, (value, session) in enumerate(zip(values, sessions, strict=True)):
        # Anew each time, as after a restart.
        watcher = AlarmWatcher([alarm], file=file)
        told += watcher.take([scored(number, value, session=session)])
    assert told == []
    # The same turns of as many sessions are one.
    told = [
        event
        for number in range(25)
        for event in watcher.take([scored(200 + number, 0.0, session=f"t{number}")])
    ]
    assert [event.kind for event in told] == ["fell"]


def test_a_session_that_spans_months_is_one_piece_of_evidence(file: str) -> None:
    """One user's conversation goes wrong all summer, twice a day, beside others that are fine."""
    watcher = AlarmWatcher([Alarm(metric="faithfulness", below=0.8)], file=file)
    turns = []
    for number in range(1_800):
        odd = number % 10 == 0
        turn = scored(number, 0.0 if odd else 0.95, session="old" if odd else f"s{number}")
        turns.append(turn.replace(happened_at=START + number * 4_320))
    told = [event for at in range(0, 1_800, 20) for event in watcher.take(turns[at : at + 20])]
    assert told == []


def test_a_late_turn_has_its_full_weight_in_the_mean_before(file: str) -> None:
    watcher = AlarmWatcher([Alarm(metric="faithfulness", below=0.7)], file=file)
    first = [scored(number, 0.9, inclusion=0.5).replace(happened_at=START) for number in range(20)]
    late = [
        scored(20 + number, 0.4, inclusion=0.1).replace(
            happened_at=START - 86_400, evaluated_at=START + 86_400
        )
        for number in range(4)
    ]
    falls = [scored(30 + number, 0.1, inclusion=0.5).replace(happened_at=START) for number in range(80)]
    (event,) = [event for turn in [*first, *late, *falls] for event in watcher.take([turn])]
    assert event.late == 4
    assert event.before is not None
    # 20 turns at .9 stand for 40, four at .4 for 40 as well.
    assert event.before.value == pytest.approx(0.65)


@pytest.mark.parametrize(("sessions", "learnt"), [(200, True), (10, False)])
def test_what_is_normal_is_learnt_from_many_sessions(sessions: int, learnt: bool) -> None:
    alarm = Alarm(metric="faithfulness", falls_by=0.1, baseline=100)
    watch = Watch.start(alarm)
    for number in range(400):
        session = number % sessions
        watch.take(alarm, scored(number, float(session % 10 > 0), session=f"s{session}"))
    assert (watch.state == "quiet") == learnt


def test_each_time_it_learns_it_takes_half_of_what_is_left_of_alpha() -> None:
    # Below the mean by next to nothing, so that the mean's own interval says where the target is.
    alarm = Alarm(metric="faithfulness", falls_by=1e-6, baseline=100, alpha=0.1)
    watch, seen, targets = Watch.start(alarm), Moments(), list[float]()
    for number in range(400):
        value = 0.5 + 0.5 * (number % 2)
        seen.add(value)
        watch.take(alarm, scored(number, value))
        if number + 1 in (100, 200, 400):
            spent = alarm.alpha / 4 / 2 ** len(targets)
            expected = seen.estimate(level=1 - 2 * spent, floor=1.0, design_effect=watch.design_effect)
            assert expected is not None
            targets.append(expected.low)
            assert watch.target == pytest.approx(expected.low)
    assert targets == sorted(set(targets)) and watch.learned == 3


def test_a_fall_among_the_first_turns_is_told_and_does_not_keep_it_learning() -> None:
    alarm = Alarm(metric="faithfulness", falls_by=0.1, baseline=100)
    watch = Watch.start(alarm)
    for number in range(100):
        watch.take(alarm, scored(number, float(number < 60), session=None))
    assert watch.state == "quiet"
    assert "they fell meanwhile" in watch.learnt
    told = [watch.take(alarm, scored(number, 0.0, session=None)) for number in range(100, 200)]
    (event,) = filter(None, told)
    assert event.before is not None and (event.kind, event.before.turns) == ("fell", 50)


@pytest.mark.parametrize(
    "wrong",
    [
        {},
        {"below": 0.5, "above": 0.5},
        {"below": 2.0},
        {"below": True},
        {"below": math.nan},
        {"below": "0.5"},
        {"falls_by": 0.0},
        {"below": 0.5, "alpha": 1.0},
        {"below": 0.5, "to": "log"},
        {"below": 0.5, "to": ["pager"]},
        {"below": 0.5, "to": ["webhook:ftp://x"]},
        {"below": 0.5, "to": ["webhook:http://x:port"]},
        {"below": 0.5, "to": ["slack:env:not a name"]},
        {"below": 0.5, "range": [1.0, 0.0]},
        {"below": 0.5, "baseline": 5},
        {"below": 0.5, "silent_after": -1},
        {"below": 0.5, "link": "http://x/"},
        {"below": 0.5, "where": ["vip"]},
        {"below": 0.5, "belwo": 0.5},
    ],
)
def test_an_alarm_that_means_nothing_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError, match="alarm"):
        alarms_from([{"metric": "faithfulness", **wrong}])


def test_an_alarm_with_other_settings_starts_anew(file: str) -> None:
    first = AlarmWatcher([Alarm(metric="faithfulness", below=0.8, name="one")], file=file)
    first.take([scored(number, 1.0) for number in range(10)])
    assert first.status()[0].turns == 10
    first.close()
    for below, turns in ((0.8, 10), (0.5, 0)):
        later = AlarmWatcher([Alarm(metric="faithfulness", below=below, name="one")], file=file)
        assert later.status()[0].turns == turns
        later.close()


def test_a_slow_fall_lowers_no_target(file: str) -> None:
    watcher = AlarmWatcher([Alarm(metric="faithfulness", falls_by=0.2, baseline=40)], file=file)
    targets = []
    for number in range(200):
        watcher.take([scored(number, 0.95 if number < 40 else 0.9)])
        targets.append(watcher.status()[0].target or 0.0)
    assert targets[-1] == pytest.approx(0.75) and targets == sorted(targets)
    watcher.close()


def test_two_alarms_of_one_name_are_refused(file: str) -> None:
    one = Alarm(metric="faithfulness", below=0.5)
    with pytest.raises(ConfigurationError, match="two alarms"):
        AlarmWatcher([one, one], file=file)


def test_watchers_that_start_together_make_one_file(file: str) -> None:
    Path(file).touch()
    with closing(sqlite3.connect(file, isolation_level=None)) as other, ThreadPoolExecutor(2) as threads:
        other.execute("BEGIN IMMEDIATE")
        opened = [threads.submit(AlarmWatcher, [Alarm(metric="quality", below=0.8)], file=file) for _ in "12"]
        wait(opened, timeout=0.5)
        other.execute("ROLLBACK")
        for watcher in opened:
            assert watcher.result().status()[0].turns == 0
            watcher.result().close()


def test_a_file_of_something_else_is_left_alone(tmp_path: Path) -> None:
    other = tmp_path / "notes.txt"
    other.write_text("my notes, which must stay as they are, line by line")
    with pytest.raises(ConfigurationError, match="alarms cannot be kept"):
        AlarmWatcher([], file=str(other))
    assert other.read_text().startswith("my notes")


@pytest.mark.parametrize("identity", [0, 7])
def test_a_database_of_another_program_is_left_alone(identity: int, tmp_path: Path) -> None:
    other = tmp_path / "other.db"
    with closing(sqlite3.connect(other)) as connection:
        connection.execute("CREATE TABLE theirs (it)")
        connection.execute(f"PRAGMA application_id = {identity}")
        connection.commit()
    before = other.read_bytes()
    with pytest.raises(ConfigurationError, match="left alone"):
        AlarmWatcher([], file=str(other))
    assert other.read_bytes() == before


def test_a_link_is_no_file_of_alarms(tmp_path: Path) -> None:
    link, elsewhere = tmp_path / "alarms.db", tmp_path / "elsewhere"
    link.symlink_to(elsewhere)
    with pytest.raises(ConfigurationError, match="alarms cannot be kept"):
        AlarmWatcher([], file=str(link))
    assert not elsewhere.exists()


def test_state_that_cannot_be_read_starts_anew(file: str, caplog: pytest.LogCaptureFixture) -> None:
    watcher = AlarmWatcher([Alarm(metric="faithfulness", below=0.8)], file=file)
    watcher.take([scored(1, 0.5)])
    with closing(sqlite3.connect(file, isolation_level=None)) as connection:
        connection.execute("UPDATE watches SET state = json_set(state, '$.before', 7)")
    connection.close()
    with caplog.at_level(logging.WARNING):
        watcher.take([scored(2, 0.5)])
    assert "starts anew" in caplog.text
    assert watcher.status()[0].turns == 1


def wait_for(monitor: Monitor, true: Callable[[CanaryReading], bool]) -> None:
    until(lambda: (found := monitor.stats().canaries) is not None and true(found))


@pytest.mark.parametrize("judge_changes", [True, False])
def test_an_alarm_says_whether_it_was_the_judge(
    judge_changes: bool, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    script = Knowing()
    sink = AlarmSink([Alarm(metric="faithfulness", below=0.8)], file=str(tmp_path / "alarms.db"))
    canaries = Canaries(share=0.0001, probes=20)
    monitor = Monitor(metrics=FAITHFUL, judge=ScriptedJudge(script), sinks=[sink], canaries=canaries)
    monitor.submit(turn(0))
    wait_for(monitor, lambda found: found.state == "watching")
    if judge_changes:
        script.flipped = 1.0
        monitor.ask_canaries(20)
        wait_for(monitor, lambda found: found.state == "changed")
    events = sink.watcher.take([scored(number, 0.0) for number in range(100)])
    (event,) = [event for event in events if event.kind == "fell"]
    if judge_changes:
        said = re.match(r"the judge has changed: (\d+) of (\d+) probes", event.canaries)
        assert said is not None and int(said[1]) == int(said[2]) > 0
    else:
        assert "are being asked whether it was the judge" in event.canaries
        wait_for(monitor, lambda found: found.checked == 100 and not found.waiting)
        until(lambda: "it was not the judge" in caplog.text)
    assert event.canaries in event.text and event.to_dict()["canaries"] == event.canaries
    monitor.close()
