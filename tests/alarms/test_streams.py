"""What `benchmarks/sessions.py` measures over many streams at once is what alarms do."""

from __future__ import annotations

import json
import logging
from dataclasses import asdict, replace
from math import sin
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from opentelemetry._logs import SeverityNumber
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import InMemoryLogRecordExporter, SimpleLogRecordProcessor

from alarms.alarm_parts import START, listening, scored
from kept import check, rounded
from stats.session_parts import Sampling, Traffic, Turns
from stats.streams import Codes, alarm_places, fall_places, first_told, in_rows
from steelyard.alarms import Alarm, AlarmEvent, AlarmWatcher
from steelyard.alarms._event import Kind
from steelyard.alarms._targets import tell
from steelyard.alarms._watch import Watch
from steelyard.cli.commands._serve import people_of_alarm
from steelyard.errors import ConfigurationError
from steelyard.results import open_labels
from steelyard.results.labels import Label
from steelyard.stats import FallAlarm
from writing import write


def falling(size: int, sample: Sampling) -> list[tuple[Turns, Codes]]:
    """A fifth of good answers goes wrong after 2,000 turns."""
    draw, found = np.random.default_rng(21), []
    traffic = Traffic(size=size, alike=0.2, sample=sample, interleaved=True, swing=-0.03)
    for _ in range(2):
        turns = traffic.stream(draw, 3_600)
        good = (np.arange(3_600) < 1_500) | (draw.random(3_600) < 0.8)
        places = np.flatnonzero(draw.random(3_600) < turns.inclusion)
        kept = Turns((turns.values * good)[places], turns.inclusion[places], turns.sessions[places])
        found.append((kept, places))
    return found


@pytest.mark.parametrize(
    ("size", "told", "sample"), [(1, True, "halving"), (10, True, "suspicion"), (10, False, "all")]
)
def test_alarms_in_rows_go_off_with_the_turn_that_sets_off_the_class(
    size: int, told: bool, sample: Sampling
) -> None:
    streams, alarm = falling(size, sample), Alarm(metric="faithfulness", below=0.9)
    found = alarm_places(in_rows(streams, told=told), below=0.9, a_day=200, told=told)
    assert found.tolist() == [first_told(alarm, *stream, a_day=200, told=told) for stream in streams]
    assert max(found) > 1_500


def test_bets_in_rows_go_off_with_the_turn_that_sets_off_the_class() -> None:
    streams = falling(10, "suspicion")
    for (turns, places), found in zip(streams, fall_places(in_rows(streams), target=0.9), strict=True):
        bet = FallAlarm(target=0.9, smallest_inclusion=0.1)
        parts = (turns.values, turns.inclusion, turns.sessions)
        told = [bet.add(x, chance, session=one) for x, chance, one in zip(*parts, strict=True)]
        assert found == places[told.index(True)]


def test_a_long_course_is_thinned_and_keeps_its_ends() -> None:
    watch = Watch.start(alarm := Alarm(metric="faithfulness", below=0.5))
    for number in range(1_000):
        watch.take(alarm, scored(number, 1.0))
        assert (watch.course[0][0], watch.course[-1][0]) == (START, START + number)
        assert min(number + 1, 120) <= len(watch.course) <= 240


def watched(draw: Random, file: Path) -> str:
    """What an alarm makes of eight weeks: hours and days that differ, sessions or none, a fall or none."""
    kind = draw.choice(["falls_by", "falls_by", "below", "above"])
    bar: Any = {kind: {"falls_by": 0.2, "below": 0.7, "above": 0.3}[kind]}
    baseline, silent = draw.choice([30, 200]), draw.choice([None, 7_200.0])
    alarm = Alarm(metric="faithfulness", baseline=baseline, silent_after=silent, **bar)
    told, now = list[object](), [1_760_000_000.0]
    watcher = AlarmWatcher([alarm], file=str(file), clock=lambda: now[0] + 4_000)
    swing, falls, sessions = draw.choice([0, 0.1, 0.25]), draw.random() < 0.6, draw.choice([None, 1, 4])
    picked, judges = draw.choice([(1.0,), (1.0, 0.25)]), draw.choice([("a",), ("a", "b")])
    for week in range(8):
        turns = []
        for number in range(draw.choice([60, 200])):
            now[0] = at = now[0] + draw.expovariate(1 / 3_600)
            good = (
                0.85
                + swing * sin(at / 13_751) * (-1) ** (int(at // 86_400) % 7)
                - 0.5 * (falls and week in (3, 4))
            )
            value = float((draw.random() < good) != (kind == "above"))
            session = None if sessions is None else f"s{week} {number // sessions}"
            one = scored(
                1_000 * week + number,
                value,
                inclusion=draw.choice(picked),
                direction="lower" if kind == "above" else "higher",
                judge=judges[week // 3 % len(judges)],
                session=session,
            )
            turns.append(replace(one, happened_at=at, evaluated_at=at + draw.choice([0, 0, 0, 3 * 86_400])))
        told += [event.to_dict() for event in watcher.take(turns)]
        told += [event.to_dict() for event in watcher.look()]
        ((status, course),) = [(replace(one, course=()), one.course[-3:]) for one in watcher.status()]
        told += [asdict(status), course]
    return "\n".join(json.dumps(rounded(one), default=str, sort_keys=True) for one in told)


def test_alarms_tell_what_they_told(tmp_path: Path) -> None:
    check("any_watched", "\n".join(watched(Random(seed), tmp_path / f"{seed}.db") for seed in range(10)))


def test_what_is_said_of_a_fall_is_said_of_nothing_else(tmp_path: Path) -> None:
    alarm, now = Alarm(metric="faithfulness", below=0.8, silent_after=60.0), START + 400
    watcher = AlarmWatcher([alarm], file=str(tmp_path / "alarms.db"), clock=lambda: now)
    watcher.canaries = lambda: "the judge answers as before"
    # Bad from the first turn on: no judge was there before, so that none has changed.
    (fell,) = watcher.take([scored(number, 0.0) for number in range(100)])
    (recovered,) = watcher.take([scored(number, 1.0) for number in range(100, 400)])
    now = START + 1_000
    (silent,) = watcher.look()
    told = [(one.kind, one.canaries, bool(one.worst), one.judge_changed) for one in (fell, recovered, silent)]
    assert told == [
        ("fell", "the judge answers as before", True, False),
        ("recovered", "", False, False),
        ("silent", "", False, False),
    ]
    assert "changed meanwhile" not in fell.text


@pytest.mark.parametrize(
    ("changed", "kept"),
    [
        ({"to": ["opentelemetry"]}, True),
        ({"link": "http://127.0.0.1/{record_id}"}, True),
        *(
            ({name: value}, False)
            for name, value in {
                **{"below": 0.7, "alpha": 0.1, "where": {"route": "/a"}, "range": (0.0, 2.0)},
                **{"silent_after": 9.0, "baseline": 300, "metric": "answer_relevancy"},
            }.items()
        ),
    ],
)
def test_what_an_alarm_has_learnt_lasts_as_long_as_what_it_watches(
    changed: dict[str, Any], kept: bool, tmp_path: Path
) -> None:
    given: dict[str, Any] = {"metric": "faithfulness", "below": 0.8, "name": "mine"}
    file = str(tmp_path / "alarms.db")
    AlarmWatcher([Alarm(**given)], file=file).take([scored(number, 1.0) for number in range(9)])
    (status,) = AlarmWatcher([Alarm(**(given | changed))], file=file).status()
    assert status.turns == (9 if kept else 0)


@pytest.mark.parametrize(
    "bar",
    [
        *({name: end} for name in ("below", "above") for end in (0.0, 1.0, -0.1, 1.1)),
        *({"below": end, "range": (1.0, 5.0)} for end in (1.0, 5.0)),
        *({"falls_by": fall} for fall in (0.0, 1.0)),
        *({"below": 0.5, "alpha": alpha} for alpha in (0, 1)),
    ],
)
def test_a_bar_that_could_never_or_always_go_off_is_refused(bar: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError, match="must be between"):
        Alarm(metric="faithfulness", **bar)


@pytest.mark.parametrize(
    ("kind", "loud"), [("fell", True), ("silent", True), ("recovered", False), ("test", False)]
)
def test_falls_and_silence_are_told_as_warnings_and_all_else_is_not(
    kind: Kind, loud: bool, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    exporter = InMemoryLogRecordExporter()  # type: ignore[no-untyped-call]
    provider = LoggerProvider()
    provider.add_log_record_processor(SimpleLogRecordProcessor(exporter))
    monkeypatch.setattr("opentelemetry._logs._internal._LOGGER_PROVIDER", provider)
    event = AlarmEvent(alarm="mine", kind=kind, metric="faithfulness", at=START)
    with caplog.at_level(logging.INFO, "steelyard.alarms"):
        tell("log", event)
    tell("opentelemetry", event)
    (emitted,) = exporter.get_finished_logs()
    assert [one.levelno for one in caplog.records] == [logging.WARNING if loud else logging.INFO]
    assert emitted.log_record.severity_number == (SeverityNumber.WARN if loud else SeverityNumber.INFO)


def test_an_address_in_a_variable_may_have_blanks_around_it(monkeypatch: pytest.MonkeyPatch) -> None:
    with listening() as ear:
        monkeypatch.setenv("HOOK", f" {ear.url}/hook\n")
        tell("webhook:env:HOOK", AlarmEvent(alarm="mine", kind="test", metric="faithfulness", at=START))
        assert [path for path, _ in ear.heard] == ["/hook"]


def test_people_are_asked_about_the_turns_that_an_alarm_watches(tmp_path: Path) -> None:
    db = str(tmp_path / "steelyard.db")
    tags = (("new",), ("old",))
    write(db, *(scored(n, 0.9 if n % 3 else 0.2, tags=tags[n < 60]) for n in range(120)))
    good = {n: n >= 60 or n % 3 == 0 for n in range(0, 120, 2)}
    open_labels(db).put(
        [
            Label(record_id=f"r{n}", value="good" if one else "bad", who="Ann", labelled_at=START, drawn=0.5)
            for n, one in good.items()
        ]
    )
    said = [
        people_of_alarm(db, Alarm(metric="faithfulness", below=0.8, where={"tag": tag}))
        for tag in ("new", "old")
    ]
    shares = [float(one.split()[3]) for one in said]
    assert shares[0] > 0.9 and shares[1] < 0.5
