"""Two judges: a screen that sees every turn, and a judge that sees a known share of them."""

from __future__ import annotations

import asyncio
import json
import re
import threading
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from calibration.pairs import labelled
from online.helpers import FAITHFUL, check_law, finish, kind_judge, turn
from steelyard.calibration import Calibration, Fit, FittedScreen, Key, fit
from steelyard.errors import ConfigurationError, JudgeUnavailable
from steelyard.judge.middleware import CircuitBreaker
from steelyard.metrics import ContextRelevancy, Faithfulness, Metric
from steelyard.online import Budget, Monitor, Rule, Selection, SpoolSettings, Suspicion
from steelyard.online._selection import sampling_position
from steelyard.questions import Answer, Question, Reply, Request, YesNo
from steelyard.record import Context, Record
from steelyard.report import render_html, report
from steelyard.scores import Evaluation, Evidence, evaluation_from_json, evaluation_to_json
from steelyard.sinks import JSONLSink, Sink, SQLiteSink, read_evaluations, read_jsonl
from steelyard.testing import MemorySink, ScriptedJudge
from waiting import until

_NUMBER = re.compile(r"number (\d+)")


def number_of(request: Request) -> int:
    (first, *_) = request.questions.values()
    found = _NUMBER.search(getattr(first, "claim", "")) or _NUMBER.search(str(request.view.question))
    return int(found[1]) if found else 1


def judge_of(rate_of_no: int = 10, name: str = "dear") -> ScriptedJudge:
    """Says no of every tenth turn."""

    def script(question: Question, request: Request) -> Answer:
        return YesNo(value=number_of(request) % rate_of_no != 0)

    return ScriptedJudge(script, name=name)


def unsure_screen() -> ScriptedJudge:
    """Is sure of seven turns in ten, and right; of the others it says a probability that tells nothing."""

    def script(question: Question, request: Request) -> Answer:
        sure = number_of(request) % 10 >= 3
        return YesNo(value=True, probability=0.95 if sure else 0.55)

    return ScriptedJudge(script, name="cheap")


def numbered(number: int, **changes: Any) -> Any:
    return turn(f"t{number}", answer=f"Marie Curie found number {number}.", **changes)


def run(monitor: Monitor, count: int, **changes: Any) -> None:
    finish(monitor, (numbered(number, **changes) for number in range(count)))


def test_the_screen_sees_every_turn_and_the_judge_a_share(tmp_path: Path) -> None:
    sink, judge, screen = MemorySink(), judge_of(), unsure_screen()
    path = tmp_path / "steelyard.db"
    monitor = Monitor(
        metrics=FAITHFUL, judge=judge, screen=screen, sample_rate=0.3, sinks=[sink, SQLiteSink(path)]
    )
    run(monitor, 600)
    monitor.close()
    stats = monitor.stats()
    judged = [one for one in sink.evaluations if one.scores]
    assert stats.evaluated == len(sink.evaluations) == len(screen.requests) == 600
    assert stats.screen is not None and stats.screen.seen == 600
    assert stats.screen.judged == len(judged) == len(judge.requests)
    assert 120 < len(judged) < 260
    for one in sink.evaluations:
        ((seen,), provenance) = one.screen, one.screen[0].provenance
        assert provenance is not None and provenance.judge == "cheap" and seen.inclusion_probability == 1
        assert one.usage.requests == 1 + len(one.scores)
        # Nobody says what a turn suffers from by a screen alone.
        assert (one.diagnosis is None) == (not one.scores)
    for one in judged:
        (score,) = one.scores
        assert score.provenance is not None and score.provenance.judge == "dear"
        assert 0.3 * 0.3 <= score.inclusion_probability <= 1
    stored = {one.record_id: one for one in read_evaluations(path)}
    assert stored == {one.record_id: one for one in sink.evaluations}
    page = render_html(report(path).figures)
    for words, count in (("Judged", len(judged)), ("seen by the screen alone", 600 - len(judged))):
        assert re.search(rf"<td>{words}</td><td[^>]*>{count}</td>", page)


def test_the_judge_looks_most_where_the_screen_tells_least() -> None:
    sink = MemorySink()
    monitor = Monitor(
        metrics=FAITHFUL, judge=judge_of(3), screen=two_kinds(), sample_rate=0.3, sinks=[sink], concurrency=1
    )
    run(monitor, 900)
    monitor.close()
    late = [one for one in sink.evaluations[400:] if one.scores]
    rates = {
        sure: [one.scores[0].inclusion_probability for one in late if (said_of(one) > 0.8) == sure]
        for sure in (True, False)
    }
    assert min(rates[False]) > 1.5 * max(rates[True])
    # The mean rate is the one that was asked for: weights add up to the turns there are.
    weight = sum(1 / one.scores[0].inclusion_probability for one in sink.evaluations if one.scores)
    assert weight == pytest.approx(900, rel=0.15)


def said_of(one: Evaluation) -> float:
    value = one.screen[0].value
    assert value is not None
    return value


def two_kinds() -> ScriptedJudge:
    """Knows the half of the turns that the judge calls good; of the rest it knows nothing."""

    def script(question: Question, request: Request) -> Answer:
        number = number_of(request)
        return YesNo(value=True, probability=0.95 if number % 6 in (1, 2, 4) else 0.5)

    return ScriptedJudge(script, name="cheap")


@pytest.mark.parametrize("floor", [0.0, 0.3, 1.0])
def test_no_turn_becomes_impossible(floor: float, caplog: pytest.LogCaptureFixture) -> None:
    sink = MemorySink()
    monitor = Monitor(
        metrics=FAITHFUL,
        judge=judge_of(3),
        screen=two_kinds(),
        sample_rate=0.3,
        screen_floor=floor,
        sinks=[sink],
    )
    run(monitor, 400)
    monitor.close()
    judged = [one.scores[0].inclusion_probability for one in sink.evaluations if one.scores]
    assert min(judged) >= 0.3 * max(floor, 0.1) - 1e-9
    assert monitor.options.floor == pytest.approx(0.3 * max(floor, 0.1))
    assert ("screen_floor is 0" in caplog.text) == (floor == 0)
    if floor == 1:
        assert set(judged) == {0.3}


def test_rules_and_suspicion_hold_and_the_screen_moves_the_rest() -> None:
    sink = MemorySink()
    selection = Selection(
        rate=0.2,
        rules=[Rule(tags=["vip"], rate=1.0), Rule(tags=["none"], never=True)],
        suspicion=Suspicion(rate=0.6),
    )
    monitor = Monitor(
        metrics=FAITHFUL,
        judge=judge_of(),
        screen=unsure_screen(),
        selection=selection,
        screen_rate=0.5,
        sinks=[sink],
    )
    for number in range(300):
        monitor.submit(numbered(number, tags=(("vip",), ("none",), ("bad",), ())[number % 4]))
    assert monitor.flush(60) == 0
    monitor.close()
    by_tag: dict[str, list[Evaluation]] = {"vip": [], "none": [], "bad": [], "": []}
    for one in sink.evaluations:
        assert one.record is not None
        by_tag[one.record.tags[0] if one.record.tags else ""].append(one)
    assert not by_tag["none"]
    assert len(by_tag["vip"]) == 75 and all(one.scores for one in by_tag["vip"])
    assert {one.scores[0].inclusion_probability for one in by_tag["vip"]} == {1.0}
    assert {one.screen[0].inclusion_probability for one in by_tag[""]} == {0.5}
    assert 20 < len(by_tag[""]) < 56


def test_where_the_screen_fails_the_judge_goes_on_as_if_there_were_none(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def broken(question: Question, request: Request) -> Answer:
        raise RuntimeError("no")

    sink = MemorySink()
    screen = ScriptedJudge(broken, name="cheap")
    monitor = Monitor(metrics=FAITHFUL, judge=judge_of(), screen=screen, sample_rate=0.3, sinks=[sink])
    run(monitor, 100)
    monitor.close()
    assert {one.scores[0].inclusion_probability for one in sink.evaluations if one.scores} == {0.3}
    assert {one.screen[0].status for one in sink.evaluations} == {"failed"}
    assert caplog.text.count("has scored none of 20 turns") == 1
    reading = monitor.stats().screen
    assert reading is not None and reading.failed == reading.seen == 100


def test_a_screen_that_does_not_come_to_an_end_is_left_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("steelyard.online._worker._GRACE", 0.1)
    release = threading.Event()

    @dataclass
    class Clings(ScriptedJudge):
        async def answer(self, request: Request) -> Reply:
            while not release.is_set():
                try:
                    await asyncio.sleep(0.05)
                except asyncio.CancelledError:
                    continue
            return await super().answer(request)

    sink = MemorySink()
    screen = Clings(lambda question, request: None, name="cheap")
    monitor = Monitor(metrics=FAITHFUL, judge=judge_of(), screen=screen, sinks=[sink], deadline=0.2)
    finish(monitor, [numbered(1)])
    release.set()
    monitor.close()
    (one,) = sink.evaluations
    assert one.scores[0].status == "scored" and one.screen[0].status == "failed"


def test_while_the_judge_is_down_turns_wait_with_what_the_screen_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("steelyard.online._worker._FIRST_WAIT", 0.2)
    refused = set[int]()

    def script(question: Question, request: Request) -> Answer:
        number = number_of(request)
        if number not in refused:
            refused.add(number)
            raise JudgeUnavailable("away", cause="unreachable")
        return YesNo(value=True)

    sink, screen = MemorySink(), unsure_screen()
    judge = CircuitBreaker(ScriptedJudge(script, name="dear"), failures=1000)
    spool = SpoolSettings(path=tmp_path / "spool.db")
    monitor = Monitor(
        metrics=FAITHFUL, judge=judge, screen=screen, sample_rate=0.5, sinks=[sink], spool=spool
    )
    run(monitor, 40)
    monitor.close()
    judged = {one.record_id for one in sink.evaluations if one.scores}
    assert len(sink.evaluations) == len(screen.requests) == 40
    # Who was drawn before the outage is judged after it, and nobody else.
    assert judged == {f"t{number}" for number in refused} and 8 < len(judged) < 32
    assert all(one.scores[0].status == "scored" for one in sink.evaluations if one.scores)


def test_a_judge_that_stays_down_fails_by_name_beside_the_screen() -> None:
    def script(question: Question, request: Request) -> Answer:
        raise JudgeUnavailable("away", cause="unreachable")

    sink, judge = MemorySink(), ScriptedJudge(script, name="dear")
    monitor = Monitor(metrics=FAITHFUL, judge=judge, screen=unsure_screen(), sample_rate=0.5, sinks=[sink])
    run(monitor, 40)
    monitor.close()
    judged = [one.scores[0] for one in sink.evaluations if one.scores]
    assert {one.status for one in judged} == {"failed"}
    assert {one.screen[0].status for one in sink.evaluations} == {"scored"}
    # Nothing was learnt, so that nothing moves.
    assert {one.inclusion_probability for one in judged} == {0.5}


@pytest.mark.parametrize("queue", ["file", "nats"])
def test_after_a_day_without_the_judge_each_turn_has_its_screen_and_figures_are_of_what_was_judged(
    queue: str, tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a day would be with waits of minutes: turns wait as often as they may, and then fail by name."""
    monkeypatch.setattr("steelyard.online._worker._FIRST_WAIT", 0.5)
    monkeypatch.setattr("steelyard.online._worker._LONGEST_WAIT", 0.5)
    monkeypatch.setattr("steelyard.online._worker._POSTPONED", 2)
    back = threading.Event()

    def script(question: Question, request: Request) -> Answer:
        if not back.is_set():
            raise JudgeUnavailable("away", cause="unreachable")
        return YesNo(value=number_of(request) % 4 != 0)

    sink, path = MemorySink(), tmp_path / "steelyard.db"
    nats = queue == "nats"
    monitor = Monitor(
        metrics=FAITHFUL,
        judge=CircuitBreaker(ScriptedJudge(script, name="dear"), reset_after=0.02),
        screen=unsure_screen(),
        sample_rate=0.5,
        sinks=[sink, SQLiteSink(path)],
        spool=request.getfixturevalue("nats_server").queue() if nats else tmp_path / "spool.db",
    )
    monitor.start()
    for number in range(60):
        monitor.submit(numbered(number))
    until(lambda: len(sink.evaluations) == 60)
    away = [one.scores[0] for one in sink.evaluations if one.scores]
    assert 15 < len(away) < 45 and {one.status for one in away} == {"failed"}
    assert {one.cause for one in away} <= {"unreachable", "breaker_open"}
    back.set()
    for number in range(60, 180):
        monitor.submit(numbered(number))
    until(lambda: len(sink.evaluations) == 180)
    assert monitor.flush(60) == 0
    monitor.close()
    assert {one.screen[0].status for one in sink.evaluations} == {"scored"}
    judged = [one.scores[0] for one in sink.evaluations if one.scores and one.scores[0].status == "scored"]
    (figure,) = report(path).figures.metrics
    assert figure.screen is not None and figure.screen.cheap.n == 180
    assert figure.estimate.n == len(judged)
    assert figure.estimate.low < 0.75 < figure.estimate.high


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Turns wait for a judge that is away as often as it takes, and come back soon, behind all others."""
    monkeypatch.setattr("steelyard.online._worker._FIRST_WAIT", 0.5)
    monkeypatch.setattr("steelyard.online._worker._LONGEST_WAIT", 0.5)
    monkeypatch.setattr("steelyard.online._worker._POSTPONED", 10_000)


class JudgeThatIsAway:
    """A judge behind a breaker, and how often it was asked about each turn."""

    def __init__(self) -> None:
        self.refused = Counter[int]()
        self.judge = CircuitBreaker(ScriptedJudge(self._away, name="dear"), failures=1_000_000)

    def _away(self, question: Question, request: Request) -> Answer:
        self.refused[number_of(request)] += 1
        raise JudgeUnavailable("away", cause="unreachable")

    def until_all_wait(self, ended: MemorySink, count: int) -> None:
        until(lambda: len(self.refused) + len(ended.evaluations) == count and min(self.refused.values()) >= 3)


@pytest.mark.usefixtures("patient")
@pytest.mark.parametrize("queue", ["file", "nats", "rabbit"])
def test_turns_that_wait_through_a_restart_are_neither_screened_nor_drawn_again(
    queue: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    server = None if queue == "file" else request.getfixturevalue(f"{queue}_server")
    path = tmp_path / "spool.db" if server is None else server.queue()
    before, after, away = MemorySink(), MemorySink(), JudgeThatIsAway()
    screens = [two_kinds(), two_kinds()]
    first, second = (
        Monitor(metrics=FAITHFUL, judge=judge, screen=screen, sample_rate=0.5, sinks=[sink], spool=path)
        for judge, screen, sink in ((away.judge, screens[0], before), (judge_of(), screens[1], after))
    )
    for number in range(60):
        first.submit(numbered(number))
    away.until_all_wait(before, 60)
    first.close(timeout=0)
    second.start()
    until(lambda: len(after.evaluations) == len(away.refused))
    assert second.flush(60) == 0
    second.close()
    assert len(screens[0].requests) == 60 and not screens[1].requests
    assert {one.scores[0].inclusion_probability for one in after.evaluations} == {0.5}
    for one in (*before.evaluations, *after.evaluations):
        assert one.record is not None and one.screen[0].verdicts[0].about and one.screen[0].value is not None


@pytest.mark.usefixtures("patient")
def test_turns_that_waited_without_a_screen_are_drawn_anew_at_the_least_rate(tmp_path: Path) -> None:
    """A worker without a screen drew them at a rate of its own; one above the least would be wrong."""
    path, before, after, away = tmp_path / "spool.db", MemorySink(), MemorySink(), JudgeThatIsAway()
    selection: dict[str, Any] = {"metrics": FAITHFUL, "screen": two_kinds(), "sample_rate": 0.5}
    here = Monitor(**selection, judge=judge_of(), sinks=[], spool=SpoolSettings(path=path, evaluate=False))
    run(here, 60)
    here.close()
    first = Monitor(metrics=FAITHFUL, judge=away.judge, sinks=[before], spool=path)
    first.start()
    away.until_all_wait(before, 60)
    first.close(timeout=0)
    second = Monitor(**selection, judge=judge_of(), sinks=[after], spool=path)
    second.start()
    assert second.flush(60) == 0
    second.close()
    assert len(after.evaluations) == len(away.refused)
    judged = [one.scores[0] for one in after.evaluations if one.scores]
    assert 0 < len(judged) < len(away.refused)
    assert [one.inclusion_probability for one in judged] == pytest.approx([0.5 * 0.3] * len(judged))


def test_the_budget_binds_the_judge_and_the_screen_goes_on() -> None:
    sink, judge = MemorySink(), judge_of()
    monitor = Monitor(
        metrics=FAITHFUL,
        judge=judge,
        screen=free_screen(),
        sinks=[sink],
        budget=Budget(requests_per_day=20),
    )
    run(monitor, 200)
    monitor.close()
    assert len(judge.requests) <= 20
    reading = monitor.stats().screen
    assert reading is not None and reading.seen == len(sink.evaluations)
    cut = [one for one in sink.evaluations if one.scores and one.scores[0].status == "failed"]
    assert all(one.scores[0].cause == "over_budget" for one in cut)


def test_a_turn_that_the_budget_cuts_off_keeps_its_screen_and_fails_by_name() -> None:
    """One that is forced goes past the budget."""
    # Among the first of any sample, so that the budget does not thin them out before it binds.
    *first, forced = [f"t{n}" for n in range(20_000) if sampling_position(f"t{n}") < 0.001][:6]
    sink, going = MemorySink(), threading.Event()

    class Waits(ScriptedJudge):
        async def answer(self, request: Request) -> Reply:
            await asyncio.to_thread(going.wait, 120)
            return await super().answer(request)

    judge = Waits(judge_of().script, name="dear")
    monitor = Monitor(
        metrics=FAITHFUL,
        judge=judge,
        screen=free_screen(),
        sinks=[sink],
        concurrency=4,
        budget=Budget(requests_per_day=3),
        selection=Selection(rules=[Rule(tags=["vip"], force=True)]),
    )
    going.set()
    finish(monitor, [turn(first[0])])
    going.clear()
    for name in first[1:]:
        monitor.submit(turn(name))
    # Two are under way, and use what is left.
    until(lambda: monitor.stats().sinks[sink.name].written == 3)
    monitor.submit(turn(forced, tags=("vip",)))
    going.set()
    assert monitor.flush(60) == 0
    monitor.close()
    cut = [one for one in sink.evaluations if one.scores[0].status == "failed"]
    assert sink.by_record[forced].scores[0].status == "scored"
    assert len(sink.evaluations) == 6 and len(cut) == 2
    for one in cut:
        assert one.scores[0].cause == "over_budget" and 0 < one.scores[0].inclusion_probability < 1
        assert one.screen[0].status == "scored"


def free_screen() -> ScriptedJudge:
    """Costs nothing, as the local judge does."""

    @dataclass
    class Free(ScriptedJudge):
        async def answer(self, request: Request) -> Reply:
            reply = await super().answer(request)
            return replace(reply, usage=replace(reply.usage, requests=0))

    return Free(lambda question, request: YesNo(value=True, probability=0.5), name="cheap")


def test_texts_of_the_screen_are_left_out_with_all_others() -> None:
    sink = MemorySink()
    monitor = Monitor(
        metrics=FAITHFUL, judge=judge_of(), screen=unsure_screen(), sinks=[sink], store_content=False
    )
    finish(monitor, [numbered(7)])
    monitor.close()
    (one,) = sink.evaluations
    assert one.screen[0].value is not None and "Curie" not in evaluation_to_json(one)
    assert evaluation_from_json(evaluation_to_json(one)) == one


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"screen": ScriptedJudge(lambda q, r: None, name="dear")}, "judge and screen are both 'dear'"),
        ({"screen": "nothing:at-all"}, "nothing"),
        ({"screen": "local", "screen_rate": 1.5}, "screen_rate must be a number from 0 to 1"),
        ({"screen": "local", "screen_floor": -0.1}, "screen_floor must be a number from 0 to 1"),
    ],
)
def test_what_a_screen_cannot_be_is_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigurationError, match=words):
        Monitor(metrics=FAITHFUL, judge=judge_of(), sinks=[], **options)


def test_metrics_with_judges_of_their_own_are_not_screened() -> None:
    own: list[Metric] = [Faithfulness(judge=judge_of(name="own"))]
    with pytest.raises(ConfigurationError, match="nothing for a screen to see"):
        Monitor(metrics=own, judge=judge_of(), screen="local", sinks=[])
    sink = MemorySink()
    mixed = [*own, ContextRelevancy()]
    monitor = Monitor(metrics=mixed, judge=judge_of(), screen=unsure_screen(), sinks=[sink])
    finish(monitor, [numbered(5)])
    monitor.close()
    (one,) = sink.evaluations
    assert [score.metric for score in one.screen] == ["context_relevancy"] and len(one.scores) == 2


def test_the_local_judge_is_a_screen_by_name(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("STEELYARD_SCREEN", "local")
    monkeypatch.setenv("STEELYARD_SAMPLE_RATE", "0")
    sink = MemorySink()
    monitor = Monitor(metrics=FAITHFUL, judge=judge_of(), sinks=[sink])
    finish(monitor, [numbered(5)])
    monitor.close()
    (one,) = sink.evaluations
    provenance = one.screen[0].provenance
    assert provenance is not None and provenance.judge.startswith("local") and not one.scores


def signalled_screen() -> ScriptedJudge:
    """Its probability tells nothing, its signals all: a screen that has something to learn."""

    def script(question: Question, request: Request) -> Answer:
        number = number_of(request)
        good = number % 4 != 0
        notes = {"signals": {"cosine": 0.8 if good else 0.3 + (number % 7) / 50}}
        return YesNo(value=True, probability=0.5, evidence=(Evidence(notes=notes),))

    return ScriptedJudge(script, name="cheap")


def learn(path: Path, *, judge: ScriptedJudge, screen: ScriptedJudge, count: int = 600) -> list[Evaluation]:
    sink = MemorySink()
    monitor = Monitor(
        metrics=FAITHFUL,
        judge=judge,
        screen=screen,
        sample_rate=0.6,
        sinks=[sink],
        screen_file=str(path),
        concurrency=1,
    )
    run(monitor, count)
    monitor.close()
    return sink.evaluations


def test_the_screen_learns_from_the_judge_and_says_so(tmp_path: Path) -> None:
    path = tmp_path / "screen.json"
    turns = learn(path, judge=judge_of(4), screen=signalled_screen())
    fitted = FittedScreen.load(path)
    assert fitted is not None and fitted.screen[0] == "cheap" and fitted.judge[0] == "dear"
    (known,) = fitted.maps.values()
    assert known.turns == 200 and known.left < 0.3 * known.left_by_value
    first, last = turns[0].screen[0], turns[-1].screen[0]
    assert first.calibration is None and first.calibrated_value is None
    assert last.calibration == fitted.version and last.value == 0.5
    late = turns[500:]
    said = [one.screen[0].calibrated_value for one in late]
    assert all(
        value is not None and (value > 0.7) == (int(one.record_id[1:]) % 4 != 0)
        for value, one in zip(said, late, strict=True)
    )
    # What it is expected to say tells how often the judge is asked; the screen itself says the same of all.
    asked = [
        (int(one.record_id[1:]) % 4 != 0, one.scores[0].inclusion_probability) for one in late if one.scores
    ]
    assert max(rate for good, rate in asked if good) < min(rate for good, rate in asked if not good)
    # The next process goes by it from its first turn on; the same pair of judges made it.
    (again,) = learn(path, judge=judge_of(4), screen=signalled_screen(), count=1)
    assert again.screen[0].calibration == fitted.version
    score = replace(again.screen[0], calibration=None, calibrated_value=None)
    assert fitted.apply(again.replace(screen=(score,))) == again
    # What another screen found says nothing by this one's maps.
    assert score.provenance is not None
    other = again.replace(screen=(replace(score, provenance=replace(score.provenance, judge="other")),))
    assert fitted.apply(other) == other


def test_what_was_learnt_from_another_judge_is_never_applied(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "screen.json"
    learn(path, judge=judge_of(4), screen=signalled_screen(), count=450)
    (other,) = learn(path, judge=judge_of(4, name="other"), screen=signalled_screen(), count=1)
    assert other.screen[0].calibration is None
    assert "is not applied to 'cheap' and 'other'" in caplog.text


@pytest.mark.parametrize("name", ["old", "cheap"])
def test_what_another_screen_found_while_turns_waited_teaches_nothing(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("steelyard.online._worker._FIRST_WAIT", 1.0)
    spool, path, away, sink = tmp_path / "s.db", tmp_path / "screen.json", JudgeThatIsAway(), MemorySink()
    old = ScriptedJudge(signalled_screen().script, name=name)
    first = Monitor(metrics=FAITHFUL, judge=away.judge, screen=old, sinks=[sink], spool=spool)
    for number in range(200):
        first.submit(numbered(number))
    until(lambda: len(away.refused) == 200)
    first.close(timeout=0)
    screen, judge, file = signalled_screen(), judge_of(4), str(path)
    again = Monitor(metrics=FAITHFUL, judge=judge, screen=screen, sinks=[sink], spool=spool, screen_file=file)
    again.start()
    until(lambda: len(sink.evaluations) == 200)
    again.close()
    assert path.exists() == (name == "cheap")


def test_a_map_that_does_not_help_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "screen.json"
    turns = learn(path, judge=judge_of(), screen=unsure_screen())
    assert not path.exists() and all(one.screen[0].calibration is None for one in turns)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"steelyard_screen": 1, "maps": {}, "screen": "ab"}'])
def test_a_file_that_is_no_screens_is_refused(text: str, tmp_path: Path) -> None:
    path = tmp_path / "screen.json"
    path.write_text(text)
    with pytest.raises(ConfigurationError, match="screen_file"):
        learn(path, judge=judge_of(), screen=unsure_screen(), count=0)


def test_a_file_that_was_edited_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "screen.json"
    learn(path, judge=judge_of(4), screen=signalled_screen(), count=450)
    path.write_text(path.read_text().replace('"level": 0', '"level": 1'))
    with pytest.raises(ConfigurationError, match="edited"):
        learn(path, judge=judge_of(4), screen=signalled_screen(), count=0)


@pytest.mark.parametrize("queue", ["file", "nats"])
def test_screen_and_judge_may_both_work_in_another_process(
    queue: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    sink, screen = MemorySink(), unsure_screen()
    nats = queue == "nats"
    path = request.getfixturevalue("nats_server").queue() if nats else tmp_path / "spool.db"
    here = Monitor(
        metrics=FAITHFUL,
        judge=judge_of(),
        screen=screen,
        sample_rate=0.3,
        screen_rate=0.8,
        sinks=[],
        spool=SpoolSettings(path=path, evaluate=False),
    )
    run(here, 200)
    here.close()
    stats = here.stats()
    assert not screen.requests and stats.screen is None
    assert stats.seen == 200 == stats.spooled + stats.skipped["sampled_out"]
    there = Monitor(
        metrics=FAITHFUL, judge=judge_of(), screen=screen, sample_rate=0.3, sinks=[sink], spool=path
    )
    there.start()
    until(lambda: len(sink.evaluations) >= stats.spooled)
    assert there.flush(60) == 0
    there.close()
    after = there.stats()
    check_law(after)
    assert after.spool is not None and after.spool.evaluated == stats.spooled == len(screen.requests)
    assert len(sink.evaluations) == stats.spooled
    assert {one.screen[0].inclusion_probability for one in sink.evaluations} == {0.8}
    assert 30 < sum(bool(one.scores) for one in sink.evaluations) < 100


def test_a_worker_without_a_screen_judges_its_share_alone(tmp_path: Path) -> None:
    """The application was told of a screen, the worker was not: no probability is wrong."""
    path, sink = tmp_path / "spool.db", MemorySink()
    here = Monitor(
        metrics=FAITHFUL,
        judge=judge_of(),
        screen=unsure_screen(),
        sample_rate=0.3,
        sinks=[],
        spool=SpoolSettings(path=path, evaluate=False),
    )
    run(here, 100)
    here.close()
    there = Monitor(metrics=FAITHFUL, judge=judge_of(), sinks=[sink], spool=path)
    there.start()
    assert there.flush(60) == 0
    there.close()
    judged = [one for one in sink.evaluations if one.scores]
    assert 15 < len(judged) < 45 and {one.scores[0].inclusion_probability for one in judged} == {0.3}


TURN = Record(question="q?", contexts=(Context(text="Passage."),), answer="Claim here.")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    made = fit(labelled(150, shift=2.5))
    assert isinstance(made, Fit)
    path = tmp_path / "calibration.json"
    Calibration.of({Key("faithfulness", "scripted", "test"): made}).save(path)
    return path


def test_sinks_have_the_raw_and_the_calibrated_value(file: Path, tmp_path: Path) -> None:
    sinks: list[Sink] = [SQLiteSink(tmp_path / "r.db"), JSONLSink(tmp_path / "r.jsonl")]
    with_file = Monitor(metrics=FAITHFUL, judge=kind_judge(), sinks=sinks, calibration=file)
    finish(with_file, [TURN])
    with_file.close()
    for stored in (*read_evaluations(tmp_path / "r.db"), *read_jsonl(tmp_path / "r.jsonl")):
        score = stored["faithfulness"]
        assert (score.value, score.hard_value) == (0.9, 1.0)
        assert score.calibrated_value is not None and 0.5 < score.calibrated_value < 1.0
        assert score.calibration == json.loads(file.read_text())["version"]


def test_the_setting_names_the_file(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STEELYARD_CALIBRATION", str(file))
    assert Monitor(sinks=[]).options.calibration == Calibration.load(file)
    monkeypatch.setenv("STEELYARD_CALIBRATION", str(file.with_name("nowhere.json")))
    with pytest.raises(ConfigurationError, match=r"nowhere\.json"):
        Monitor(sinks=[])
    with pytest.raises(ConfigurationError, match="must be a file or a Calibration"):
        Monitor(sinks=[], calibration=3)  # type: ignore[arg-type]
