"""Canaries: a judge that changed is told from an application that fell, and probes never count as turns."""

from __future__ import annotations

import json
import logging
import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from online.helpers import FAITHFUL, finish
from steelyard.errors import ConfigurationError, JudgeUnavailable
from steelyard.judge import LocalJudge
from steelyard.judge.middleware import Cache
from steelyard.online import Canaries, CanaryReading, Monitor, load_settings
from steelyard.online._canaries import ENOUGH, candidates
from steelyard.probing import load_probes
from steelyard.questions import Answer, Question, Request, Supported, YesNo
from steelyard.record import Context, Record
from steelyard.stats import ChangeAlarm, FallAlarm
from steelyard.testing import MemorySink, ScriptedJudge
from waiting import until

KNOWN = {(probe.contexts, probe.claim): probe.expected for probe in load_probes().probes}


@dataclass
class Knowing:
    """Answers probes rightly and turns with yes; some of its verdicts can be flipped."""

    flipped: float = 0.0
    seed: int = 0
    down: bool = False
    probes: int = 0
    drawn: random.Random = field(init=False)

    def __post_init__(self) -> None:
        self.drawn = random.Random(self.seed)

    def __call__(self, question: Question, request: Request) -> Answer | None:
        assert isinstance(question, Supported)
        if self.down:
            raise JudgeUnavailable("down", cause="server_error")
        texts = tuple(context.text for context in request.view.contexts or ())
        truth = KNOWN.get((texts, question.claim))
        self.probes += truth is not None
        value = (True if truth is None else truth) ^ (self.drawn.random() < self.flipped)
        return YesNo(value=value, probability=0.9 if value else 0.1)


def turn(number: int) -> Record:
    return Record(id=f"t{number}", question="q?", contexts=(Context(text="Passage."),), answer="Claim here.")


def monitor_of(judge: ScriptedJudge | Cache | LocalJudge, **options: object) -> Monitor:
    given: dict[str, object] = {
        "metrics": FAITHFUL,
        "sinks": [],
        "canaries": Canaries(share=0.0001, probes=40),
    }
    return Monitor(judge=judge, **{**given, **options})  # type: ignore[arg-type]


def reading(monitor: Monitor) -> CanaryReading:
    found = monitor.stats().canaries
    assert found is not None
    return found


def wait_for(monitor: Monitor, true: Callable[[CanaryReading], bool]) -> CanaryReading:
    until(lambda: true(reading(monitor)))
    return reading(monitor)


def learned(monitor: Monitor) -> CanaryReading:
    monitor.submit(turn(0))
    return wait_for(monitor, lambda found: found.state != "learning")


def test_a_judge_that_changes_is_noticed_and_said(caplog: pytest.LogCaptureFixture) -> None:
    script = Knowing()
    monitor = monitor_of(ScriptedJudge(script))
    assert learned(monitor).probes == 40
    monitor.ask_canaries(100)
    same = wait_for(monitor, lambda found: not found.waiting)
    assert (same.state, same.asked, same.right, same.cause_of_fall) == ("watching", 100, 100, "application")
    until(lambda: "it was not the judge" in caplog.text)
    assert same.low > 0.9 and same.high == 1.0
    script.flipped = 0.3
    with caplog.at_level(logging.WARNING, "steelyard.online"):
        monitor.ask_canaries(100)
        changed = wait_for(monitor, lambda found: not found.waiting)
    assert changed.state == "changed" and changed.cause_of_fall == "judge"
    assert changed.changed_at is not None and time.time() - changed.changed_at < 60
    until(lambda: "has changed" in caplog.text)
    monitor.ask_canaries(100)
    again = wait_for(monitor, lambda found: not found.waiting)
    assert again.changed_at == changed.changed_at and caplog.text.count("has changed") == 1
    monitor.ask_canaries(10**9)
    assert reading(monitor).waiting <= 10_000
    monitor.close()


def test_a_judge_that_slips_more_often_is_noticed_when_it_is_asked(caplog: pytest.LogCaptureFixture) -> None:
    calls, every = 0, 20

    def slipping(question: Question, request: Request) -> Answer | None:
        nonlocal calls
        calls += 1
        given = Knowing()(question, request)
        assert isinstance(given, YesNo)
        return replace(given, value=given.value ^ (calls % every == 0))

    monitor = monitor_of(ScriptedJudge(slipping))
    assert learned(monitor).state == "watching"
    for _ in range(4):  # each check by itself: what earlier ones found wrong is what this judge always does
        monitor.ask_canaries(100)
        assert wait_for(monitor, lambda one: not one.waiting).state == "watching"
    before = reading(monitor).right
    every = 9  # of nine calls one slips, and two ask that one again: one answer in seven
    monitor.ask_canaries(100)
    found = wait_for(monitor, lambda one: not one.waiting)
    assert found.asked == 500 and 84 <= found.right - before <= 88
    assert found.cause_of_fall == "judge", "too few for the alarm that looks at every answer"
    until(lambda: "of its last 100 answers" in caplog.text)
    monitor.close()


def test_canaries_of_before_say_nothing_of_a_fall_of_now() -> None:
    monitor = monitor_of(ScriptedJudge(Knowing()), canaries=Canaries(share=1.0, probes=20))
    finish(monitor, (turn(number) for number in range(150)))
    found = wait_for(monitor, lambda one: one.state == "watching" and not one.waiting)
    monitor.close()
    assert found.asked >= 100 and found.cause_of_fall == "unknown"
    assert (asked := replace(found, waiting=0, checked=ENOUGH)).cause_of_fall == "application"
    assert {replace(asked, waiting=1).cause_of_fall, replace(asked, checked=99).cause_of_fall} == {"unknown"}


def test_probes_never_count_as_turns() -> None:
    sink = MemorySink()
    script = Knowing()
    heard: list[str] = []
    monitor = monitor_of(
        ScriptedJudge(script),
        sinks=[sink],
        canaries=Canaries(share=1.0, probes=20),
    )
    monitor.on_evaluation(lambda evaluation: heard.append(evaluation.record_id))
    finish(monitor, (turn(number) for number in range(20)))
    found = wait_for(monitor, lambda one: one.state == "watching" and not one.waiting)
    stats = monitor.stats()
    assert script.probes == found.usage.requests > 80
    assert stats.usage.requests == 20, "the account of turns knows nothing of probes"
    assert (stats.seen, stats.evaluated, stats.skipped) == (20, 20, {})
    assert len(sink.evaluations) == 20 and len(set(heard)) == 20
    assert all(one.record_id.startswith("t") for one in sink.evaluations)
    monitor.close()


def test_a_share_of_turns_is_followed_by_canaries() -> None:
    monitor = monitor_of(ScriptedJudge(Knowing()), canaries=Canaries(share=0.25, probes=20))
    learned(monitor)
    before = reading(monitor).asked
    finish(monitor, (turn(number) for number in range(1, 401)))
    found = wait_for(monitor, lambda one: not one.waiting)
    assert 60 <= found.asked - before <= 145, "a quarter of 400, give or take five standard deviations"
    monitor.close()


def test_canaries_are_not_answered_by_a_cache() -> None:
    script = Knowing()
    judge = Cache(ScriptedJudge(script))
    monitor = monitor_of(judge, canaries=Canaries(share=0.0001, probes=20))
    learned(monitor)
    script.flipped = 1.0
    monitor.ask_canaries(20)
    assert wait_for(monitor, lambda found: not found.waiting).state == "changed"
    monitor.submit(turn(0))
    monitor.close()


def test_a_change_is_noticed_across_a_restart(tmp_path: Path) -> None:
    file = tmp_path / "canaries.json"
    options = Canaries(share=0.0001, probes=20, file=file)
    first = monitor_of(ScriptedJudge(Knowing()), canaries=options)
    learned(first)
    first.close()
    script = Knowing(flipped=1.0)
    second = monitor_of(ScriptedJudge(script), canaries=options)
    assert learned(second).state == "watching"
    assert script.probes == 0, "nothing is learned twice"
    second.ask_canaries(20)
    assert wait_for(second, lambda found: not found.waiting).state == "changed"
    second.close()


def test_no_canary_speaks_to_the_judge() -> None:
    probes = load_probes().probes
    assert any(probe.address for probe in probes)
    assert not any(probe.address for probe in candidates(probes, len(probes)))


MORE_WRONG_THAN_ALL = {
    **{"steelyard_canaries": 2, "judge": "j", "prompt_version": "1", "probe_set": "p", "probes": []},
    **{"repeated": 1, "wavered": 2},
}


@pytest.mark.parametrize("damage", ["{", '{"steelyard_canaries": 9}', "[]", json.dumps(MORE_WRONG_THAN_ALL)])
def test_a_damaged_file_is_said_and_learned_anew(
    damage: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "canaries.json"
    file.write_text(damage)
    monitor = monitor_of(ScriptedJudge(Knowing()), canaries=Canaries(share=0.0001, probes=20, file=file))
    assert learned(monitor).state == "watching"
    until(lambda: "holds no canaries" in caplog.text)
    assert json.loads(file.read_text())["judge"] == "scripted"
    monitor.close()


def test_another_judge_or_wording_is_learned_anew(tmp_path: Path) -> None:
    file = tmp_path / "canaries.json"
    options = Canaries(share=0.0001, probes=20, file=file)
    for name, version in (("one", "1"), ("two", "1"), ("two", "2")):
        script = Knowing()
        judge = ScriptedJudge(script, name=name, prompt_version=version)
        monitor = monitor_of(judge, canaries=options)
        assert learned(monitor).state == "watching"
        assert script.probes == 80, "20 probes, four times each"
        monitor.close()


def test_a_judge_that_knows_nothing_has_no_canaries_and_that_is_said(
    caplog: pytest.LogCaptureFixture,
) -> None:
    monitor = monitor_of(ScriptedJudge(Knowing(flipped=0.5)))
    found = learned(monitor)
    assert found.state == "unusable" and found.cause_of_fall == "unknown"
    until(lambda: "canaries say nothing about it" in caplog.text)
    monitor.ask_canaries(10)
    assert not wait_for(monitor, lambda one: not one.waiting).asked
    monitor.close()


class EveryTwentieth(random.Random):
    """Small numbers at regular distances: slips whose number no test leaves to chance."""

    drawn = 0

    def random(self) -> float:
        self.drawn += 1
        return 0.0 if self.drawn % 20 == 0 else 0.9


class TwoOfSix(EveryTwentieth):
    """A slip, and one more when it is asked again the first time of two."""

    def random(self) -> float:
        self.drawn += 1
        return 0.0 if self.drawn % 6 in (4, 5) else 0.9


def test_a_judge_known_to_waver_has_not_changed_while_it_is_not_wrong_each_time(tmp_path: Path) -> None:
    options = Canaries(share=0.0001, probes=40, file=tmp_path / "canaries.json")
    first = monitor_of(ScriptedJudge(Knowing()), canaries=options)
    learned(first)
    first.close()
    kept = json.loads((tmp_path / "canaries.json").read_text())
    (tmp_path / "canaries.json").write_text(json.dumps({**kept, "wavered": kept["repeated"] // 3}))
    script = Knowing(flipped=0.03)
    script.drawn = TwoOfSix()
    monitor = monitor_of(ScriptedJudge(script), canaries=options)
    monitor.ask_canaries(ENOUGH - 1)  # so few that their number is not compared
    assert learned(monitor).state == "watching"
    found = wait_for(monitor, lambda one: not one.waiting)
    assert found.state == "watching" and found.right < 0.8 * found.asked
    monitor.close()


def test_a_slip_is_asked_again_and_a_judge_that_wavers_has_not_changed() -> None:
    script = Knowing(seed=3)
    monitor = monitor_of(ScriptedJudge(script))
    learned(monitor)
    asked = script.probes
    script.flipped, script.drawn = 0.03, EveryTwentieth()
    monitor.ask_canaries(60)
    found = wait_for(monitor, lambda one: not one.waiting)
    slips = found.asked - found.right
    assert found.state == "watching" and slips > 0
    assert script.probes - asked == 60 + 2 * slips == found.usage.requests - 160
    monitor.close()


def test_a_judge_that_is_down_is_neither_right_nor_wrong(caplog: pytest.LogCaptureFixture) -> None:
    script = Knowing()
    monitor = monitor_of(ScriptedJudge(script), canaries=Canaries(share=0.0001, probes=20))
    learned(monitor)
    script.down = True
    monitor.ask_canaries(10)
    found = wait_for(monitor, lambda one: not one.waiting)
    assert (found.state, found.asked, found.unanswered) == ("watching", 0, 10)
    assert found.cause_of_fall == "unknown"
    monitor.close()


def test_a_judge_that_exits_ends_no_more_than_the_canary() -> None:
    script = Knowing()
    judge = ScriptedJudge(script)
    monitor = monitor_of(judge, canaries=Canaries(share=0.0001, probes=20))
    learned(monitor)

    def leave(question: Question, request: Request) -> Answer | None:
        raise SystemExit

    judge.script = leave
    monitor.ask_canaries(3)
    assert wait_for(monitor, lambda one: not one.waiting).unanswered == 3
    judge.script = script
    monitor.ask_canaries(5)
    assert wait_for(monitor, lambda one: not one.waiting).asked == 5
    monitor.submit(turn(9))
    assert monitor.flush(60) == 0 and monitor.stats().evaluated == 2
    monitor.close()


def test_the_local_judge_has_canaries_and_stays_the_same() -> None:
    monitor = monitor_of(LocalJudge(), canaries=Canaries(share=0.0001, probes=80))
    found = learned(monitor)
    assert found.state == "watching" and found.probes >= 30
    monitor.ask_canaries(100)
    # One of its own may fall due meanwhile.
    found = wait_for(monitor, lambda one: not one.waiting)
    assert found.right == found.asked >= 100
    monitor.close()


@pytest.mark.parametrize("entries", [{"share": "x"}, {"probes": 3}, {"file": 7}, {"nonsense": 1}])
def test_wrong_entries_are_named(entries: dict[str, object], monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises((ConfigurationError, TypeError), match=next(iter(entries))):
        Monitor(metrics=FAITHFUL, sinks=[], judge="local", canaries=Canaries(**entries))  # type: ignore[arg-type]
    for name, value in entries.items():
        monkeypatch.setenv(f"STEELYARD_CANARIES__{name.upper()}", str(value))
    if "file" not in entries:
        with pytest.raises(ConfigurationError, match="canaries"):
            Monitor(metrics=FAITHFUL, sinks=[])


def test_settings_turn_canaries_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monitor = Monitor(metrics=FAITHFUL, sinks=[], judge=ScriptedJudge(Knowing()))
    assert monitor.stats().canaries is None
    with pytest.raises(ConfigurationError, match="canaries"):
        monitor.ask_canaries()
    monkeypatch.setenv("STEELYARD_CANARIES__SHARE", "0.1")
    assert load_settings().settings.canaries == {"share": 0.1}
    assert Monitor(sinks=[]).options.canaries == Canaries(share=0.1)
    assert Monitor(sinks=[], canaries=0.5).options.canaries == Canaries(share=0.5)


def test_canaries_need_a_judge_of_the_monitor() -> None:
    with pytest.raises(ConfigurationError, match="canaries watch"):
        Monitor(metrics=[], sinks=[], canaries=0.1)


def cause(judge_changed: bool, seed: int) -> str:
    """A fall, and what the canaries asked at that moment say of it."""
    drawn = random.Random(seed)
    fall, flips = FallAlarm(target=0.85), ChangeAlarm(repeated=240, wavered=0)
    flipped = 0.1 if judge_changed else 0.0
    other = set(drawn.sample(range(80), round(80 * flipped)))

    def ask() -> bool:
        wrong = drawn.randrange(80) in other
        return flips.add(not wrong, confirmed=wrong)

    for _ in range(drawn.randrange(200)):
        flips.add(True)
    share = 0.9 * (1 - flipped) + 0.1 * flipped if judge_changed else 0.75
    for _ in range(20_000):
        if fall.add(float(drawn.random() < share)):
            break
        if drawn.random() < 0.02:
            ask()
    assert fall.raised_at
    changed = [ask() for _ in range(100)][-1]
    return "judge" if changed else "application"


@pytest.mark.timeout(600)
def test_a_fallen_application_and_a_changed_judge_are_told_apart() -> None:
    right = sum(
        cause(judge_changed, seed) == ("judge" if judge_changed else "application")
        for seed in range(60)
        for judge_changed in (True, False)
    )
    assert right / 120 >= 0.95
