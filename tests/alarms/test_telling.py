"""What an alarm has to tell arrives, or it is said that it did not; nothing else is harmed."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import threading
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from typer.testing import CliRunner

from alarms.alarm_parts import SHOWS_SOON, START, Ear, listening, scored
from online.helpers import FAITHFUL, turn
from steelyard.alarms import Alarm, AlarmWatcher, Follower
from steelyard.alarms._watch import Watch
from steelyard.cli._app import build
from steelyard.cli.commands._serve import people_of_alarm
from steelyard.errors import ConfigurationError
from steelyard.online import Monitor
from steelyard.questions import Answer, Question, Request, YesNo
from steelyard.results import open_labels
from steelyard.results.labels import Label
from steelyard.scores import Evaluation, Score
from steelyard.sinks import SQLiteSink
from steelyard.testing import MemorySink, ScriptedJudge
from waiting import until

FALL = [scored(number, 1.0) for number in range(20)] + [scored(number, 0.0) for number in range(20, 60)]


@pytest.fixture
def ear() -> Iterator[Ear]:
    with listening() as found:
        yield found


class Clock:
    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> float:
        return self.now


def watcher_of(tmp_path: Path, *to: str, clock: Clock | None = None, **more: object) -> AlarmWatcher:
    alarm = Alarm(metric="faithfulness", below=0.8, to=to, **more)  # type: ignore[arg-type]
    file = str(tmp_path / "alarms.db")
    return AlarmWatcher([alarm], file=file, clock=clock or Clock())


def test_a_webhook_gets_all_there_is_to_know(tmp_path: Path, ear: Ear) -> None:
    link = "http://127.0.0.1:8321/trace/{trace_id}"
    watcher = watcher_of(tmp_path, f"webhook:{ear.url}/hook", link=link)
    (event,) = watcher.take(FALL)
    watcher.tell()
    ((path, body),) = ear.heard
    assert path == "/hook"
    assert body["source"] == "steelyard"
    assert (body["kind"], body["metric"], body["id"]) == ("fell", "faithfulness", event.id)
    assert body["before"]["turns"] == 20
    assert body["before"]["low"] <= body["before"]["value"] <= body["before"]["high"]
    assert body["now"]["value"] == 0.0
    assert body["judge_changed"] is False
    assert body["worst"][0]["link"] == f"http://127.0.0.1:8321/trace/{20:032x}"
    watcher.tell()
    assert len(ear.heard) == 1


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_tells_by_itself(tmp_path: Path, ear: Ear) -> None:
    watcher = watcher_of(tmp_path, f"webhook:{ear.url}")
    watcher.start()
    closed, told = os.pipe()
    child = os.fork()
    if child == 0:
        os.read(closed, 1)
        watcher.start()
        watcher.take(FALL)
        signal.pause()
    try:
        watcher.close()
        os.write(told, b".")
        assert ear.came.acquire(timeout=60)
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        os.close(closed)
        os.close(told)


def test_slack_gets_its_own_form_in_which_nothing_is_a_command(tmp_path: Path, ear: Ear) -> None:
    watcher = watcher_of(tmp_path, f"slack:{ear.url}/services/T/B/x", name="<!channel> & \x1b[31m")
    watcher.take(FALL)
    watcher.tell()
    ((_, body),) = ear.heard
    (block,) = body["blocks"]
    text = block["text"]["text"]
    assert "faithfulness has fallen" in text
    assert "&lt;!channel&gt; &amp;" in text
    assert "<!channel>" not in text
    assert "\x1b" not in text


@pytest.mark.parametrize("pauses", [(0, 1, 1.1, 9, 1.1), (0, -86_400, -86_400)], ids=["", "set back"])
def test_a_server_that_fails_is_asked_again_after_a_while(
    pauses: Sequence[float], tmp_path: Path, ear: Ear
) -> None:
    clock = Clock()
    watcher = watcher_of(tmp_path, f"webhook:{ear.url}", clock=clock)
    ear.replies = [500, 500]
    watcher.take(FALL)
    for pause in pauses:
        clock.now += pause
        watcher.tell()
    assert len(ear.heard) == 3
    (message,) = watcher.status()[0].messages
    assert message.told == clock.now
    assert len({body["id"] for _, body in ear.heard}) == 1


def test_whoever_closes_waits_for_what_is_being_told(tmp_path: Path, ear: Ear) -> None:
    watcher = watcher_of(tmp_path, f"webhook:{ear.url}")
    ear.release.clear()
    watcher.take(FALL)
    watcher.start()
    assert ear.came.acquire(timeout=SHOWS_SOON)
    threading.Timer(0.3, ear.release.set).start()
    watcher.close()
    assert watcher.status()[0].messages[0].told is not None


def test_what_nobody_takes_is_given_up_and_said(
    tmp_path: Path, ear: Ear, caplog: pytest.LogCaptureFixture
) -> None:
    clock = Clock()
    watcher = watcher_of(tmp_path, f"webhook:{ear.url}/secret-path", clock=clock)
    ear.replies = [503] * 50
    watcher.take(FALL)
    with caplog.at_level(logging.WARNING):
        for _ in range(20):
            watcher.tell()
            clock.now += 10_000
    assert len(ear.heard) == 6
    assert "it is given up" in caplog.text
    assert "secret-path" not in caplog.text
    assert watcher.status()[0].messages[0].problem == "HTTP 503"


@pytest.mark.parametrize("late", [False, True], ids=["told at once", "told late"])
def test_only_the_last_messages_that_were_told_are_kept(
    tmp_path: Path, ear: Ear, monkeypatch: pytest.MonkeyPatch, late: bool
) -> None:
    monkeypatch.setattr("steelyard.alarms._store._KEPT", 2)
    watcher = watcher_of(tmp_path, f"webhook:{ear.url}/", clock=(clock := Clock()))
    for round_, value in enumerate((0.0, 1.0) * 3):
        clock.now += 1_000
        watcher.take([scored(1_000 * round_ + number, value) for number in range(200)])
        if not late:
            watcher.tell()
    watcher.tell()
    kinds = [body["kind"] for _, body in ear.heard]
    if late:  # what is still to be told stays, however much it is
        assert sorted(kinds) == ["fell"] * 3 + ["recovered"] * 3
        return
    assert kinds == ["fell", "recovered"] * 3
    kept = [message.event for message in watcher.status()[0].messages]
    assert kept == [body["id"] for _, body in ear.heard][:-3:-1]


def test_a_redirect_is_not_followed(tmp_path: Path, ear: Ear) -> None:
    ear.replies = [302]
    watcher = watcher_of(tmp_path, f"webhook:{ear.url}/first")
    watcher.take(FALL)
    watcher.tell()
    assert [path for path, _ in ear.heard] == ["/first"]
    assert "redirects are not followed" in watcher.status()[0].messages[0].problem


def test_a_target_that_hangs_holds_up_no_other(tmp_path: Path, ear: Ear) -> None:
    ear.release.clear()
    with listening() as other:
        watcher = watcher_of(tmp_path, f"webhook:{ear.url}/hangs", f"webhook:{other.url}/works")
        watcher.take(FALL)
        watcher.tell(timeout=0.1)
        assert other.came.acquire(timeout=SHOWS_SOON)
        ear.release.set()


def test_two_hooks_of_one_server_are_both_told(tmp_path: Path, ear: Ear) -> None:
    watcher = watcher_of(tmp_path, f"webhook:{ear.url}/one", f"webhook:{ear.url}/two")
    watcher.take(FALL)
    watcher.tell()
    assert sorted(path for path, _ in ear.heard) == ["/one", "/two"]


def test_what_was_not_told_is_told_after_a_restart(tmp_path: Path, ear: Ear) -> None:
    watcher_of(tmp_path, f"webhook:{ear.url}").take(FALL)
    assert ear.heard == []
    watcher_of(tmp_path, f"webhook:{ear.url}").tell()
    assert len(ear.heard) == 1


def test_a_watcher_that_sleeps_tells_what_comes(
    tmp_path: Path, ear: Ear, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    asleep = threading.Semaphore(0)

    class Bed(threading.Event):
        def wait(self, timeout: float | None = None) -> bool:
            asleep.release()
            return super().wait(timeout)

    monkeypatch.setattr("steelyard.alarms._watcher._LONGEST_SLEEP", 3600.0)
    monkeypatch.setattr("steelyard.alarms._watcher.threading", SimpleNamespace(Event=Bed))
    watcher = watcher_of(tmp_path, f"webhook:{ear.url}")
    watcher.start()
    for turns in (FALL, [scored(number, 1.0) for number in range(60, 160)]):
        assert asleep.acquire(timeout=SHOWS_SOON)
        watcher.take(turns)
        assert ear.came.acquire(timeout=SHOWS_SOON)
    watcher.close()
    assert caplog.messages == []


def test_no_address_is_in_the_file_or_in_what_is_shown(
    tmp_path: Path, ear: Ear, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOOK", f"{ear.url}/planted-in-variable")
    watcher = watcher_of(tmp_path, f"webhook:{ear.url}/planted-in-option", "slack:env:HOOK")
    watcher.take(FALL)
    watcher.tell()
    assert len(ear.heard) == 2
    watcher.close()
    stored = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert b"planted" not in stored
    assert "planted" not in str(watcher.test()) + str(watcher.status()[0].messages)


def test_a_variable_that_is_not_set_or_holds_no_address_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOOK", "ftp://planted")
    (said,) = watcher_of(tmp_path, "slack:env:HOOK").test().values()
    assert said is not None and "HOOK" in said and "planted" not in said
    assert watcher_of(tmp_path, "slack:env:NOT_SET_HERE").test() == {
        "slack:env:NOT_SET_HERE": "slack: the variable NOT_SET_HERE is not set; set it to the address"
    }


def test_an_event_is_emitted_through_opentelemetry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from opentelemetry import _logs
    from opentelemetry.sdk._logs import LoggerProvider
    from opentelemetry.sdk._logs.export import InMemoryLogRecordExporter, SimpleLogRecordProcessor
    from opentelemetry.trace import NonRecordingSpan, SpanContext, TraceFlags, use_span

    exporter = InMemoryLogRecordExporter()  # type: ignore[no-untyped-call]
    provider = LoggerProvider()
    provider.add_log_record_processor(SimpleLogRecordProcessor(exporter))
    monkeypatch.setattr(_logs._internal, "_LOGGER_PROVIDER", provider)
    watcher = watcher_of(tmp_path, "opentelemetry")
    [event] = watcher.take(FALL)
    current = SpanContext(trace_id=1, span_id=1, is_remote=False, trace_flags=TraceFlags(1))
    with use_span(NonRecordingSpan(current)):
        watcher.tell()
    (emitted,) = exporter.get_finished_logs()
    # The span that is current where it is told has nothing to do with the turns that fell.
    assert not emitted.log_record.trace_id
    assert emitted.log_record.event_name == "steelyard.alarm"
    assert event.now is not None and event.before is not None
    about = {"name": event.alarm, "kind": "fell", "id": event.id, "slice": "", "judge_changed": False}
    for name, found in (("now", event.now), ("before", event.before)):
        figures = {"mean": found.value, "low": found.low, "high": found.high, "turns": found.turns}
        about |= {f"{name}.{figure}": value for figure, value in figures.items()}
    assert emitted.log_record.attributes == {
        "gen_ai.evaluation.name": "faithfulness",
        **{f"steelyard.alarm.{name}": value for name, value in about.items()},
        "steelyard.alarm.target": 0.8,
    }
    assert watcher.test() == {"opentelemetry": None}  # has no figures


def test_a_monitor_with_alarms_in_its_settings_tells_of_a_fall(
    tmp_path: Path, ear: Ear, monkeypatch: pytest.MonkeyPatch
) -> None:

    monkeypatch.chdir(tmp_path)
    (tmp_path / "steelyard.toml").write_text(
        f'[[alarm]]\nmetric = "faithfulness"\nbelow = 0.8\nto = ["webhook:{ear.url}/fell"]\n'
    )

    def answer(question: Question, request: Request) -> Answer:
        return YesNo(value="radium" not in str(asdict(request)))

    judge = ScriptedJudge(answer)
    monitor = Monitor(metrics=FAITHFUL, judge=judge, sinks=[MemorySink()], concurrency=1)
    for number in range(60):
        good = number < 20
        answered = "She found polonium." if good else "She found radium."
        monitor.submit(replace(turn(f"t{number}", answer=answered), session=f"s{number}"))
    assert monitor.flush(SHOWS_SOON) == 0
    assert ear.came.acquire(timeout=SHOWS_SOON)
    assert monitor.close() == 0
    (body,) = [body for _, body in ear.heard]
    assert body["now"]["value"] == 0.0
    assert monitor.stats().sinks["alarms"].lost == 0
    shown = CliRunner().invoke(build(), ["alarms"])
    assert shown.exit_code == 1
    assert "faithfulness below 0.8: FALLEN, 60 turns" in shown.output
    tested = CliRunner().invoke(build(), ["alarms", "--test"])
    assert tested.exit_code == 0
    assert ear.heard[-1][1]["kind"] == "test"


def test_alarms_follow_a_database_that_others_write_to(tmp_path: Path, ear: Ear) -> None:
    path = str(tmp_path / "steelyard.db")
    sink = SQLiteSink(path)
    asyncio.run(sink.write([scored(1_000 + number, 1.0) for number in range(5)]))
    watcher = watcher_of(tmp_path, f"webhook:{ear.url}")
    follower = Follower(watcher, path, pause=0.01)
    follower.start()
    until(lambda: watcher.position(path) is not None)
    asyncio.run(sink.write(FALL))
    assert ear.came.acquire(timeout=SHOWS_SOON)
    until(lambda: watcher.status()[0].turns == len(FALL))  # what was there before is not told of
    follower.close()
    asyncio.run(sink.write([scored(2_000 + number, 0.0) for number in range(5)]))
    again = Follower(watcher := watcher_of(tmp_path, f"webhook:{ear.url}"), path, pause=0.01)
    again.start()
    until(lambda: watcher.status()[0].turns == len(FALL) + 5)
    again.close()
    asyncio.run(sink.aclose())
    assert len(ear.heard) == 1


def test_serving_alarms_without_any_says_how_to_write_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    asyncio.run(SQLiteSink("steelyard.db").write([scored(1, 1.0)]))
    with pytest.raises(ConfigurationError, match="`steelyard alarms` shows one"):
        CliRunner().invoke(build(), ["serve", "--alarms"], catch_exceptions=False)


def test_what_people_say_of_the_metric_is_told_and_never_in_the_way(tmp_path: Path, ear: Ear) -> None:
    said = iter(["people would call 0.41 (0.30 to 0.52) good"])
    watcher = watcher_of(tmp_path, f"webhook:{ear.url}")
    watcher.people = lambda alarm: f"{alarm.metric}: {next(said)}"
    watcher.take(FALL)
    watcher.tell()
    ((_, told),) = ear.heard
    assert told["people"] == "faithfulness: people would call 0.41 (0.30 to 0.52) good"
    assert "by people's labels: faithfulness: people would call 0.41" in told["text"]
    # The iterator is at its end: to ask it raises, and the recovery is told all the same.
    recovery = watcher.take([scored(number, 1.0) for number in range(100, 400)])
    assert [(event.kind, event.people) for event in recovery] == [("recovered", "")]


def test_serve_corrects_the_mean_by_the_labels_beside_the_results(tmp_path: Path) -> None:
    db = str(tmp_path / "steelyard.db")
    asyncio.run(SQLiteSink(db).write([scored(number, 0.9 if number % 3 else 0.2) for number in range(90)]))
    alarm = Alarm(metric="faithfulness", below=0.8)
    assert people_of_alarm(db, alarm) == ""
    open_labels(db).put(
        [
            Label(
                record_id=f"r{n}", value="good" if n % 3 else "bad", who="Ann", labelled_at=START, drawn=0.3
            )
            for n in range(30)
        ]
    )
    assert people_of_alarm(db, alarm).startswith("people would call 0.6")


@pytest.mark.parametrize("session", ["", "own {}"])
def test_an_alarm_without_sessions_says_what_its_rate_depends_on(session: str) -> None:
    draw, alarm = np.random.default_rng(4), Alarm(metric="faithfulness", below=0.9)
    watch, told = Watch.start(alarm), []
    for number, value in enumerate((draw.random(400) < 0.5).astype(float).tolist()):
        score = Score(metric="faithfulness", status="scored", value=value)
        turn = Evaluation(
            record_id=str(number),
            scores=(score,),
            session=session.format(number),
            happened_at=60.0 * number,
            evaluated_at=60.0 * number,
        )
        told.append(watch.take(alarm, turn))
    event = next(one for one in told if one is not None)
    said = ("no turn says which session it is of", "with at most 5%, if long conversations do not come mixed")
    assert [one in event.text for one in said] == [not session] * 2
