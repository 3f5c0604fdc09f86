"""The fault table of docs/check/faults.md: what goes wrong at the judge's server."""

from __future__ import annotations

import itertools
import json
import logging
import socket
import sqlite3
import time
from contextlib import closing
from pathlib import Path

import pytest

from judge_server import Fault, JudgeServer
from online.failures.parts import causes, chat, run
from online.helpers import FAITHFUL, turn
from steelyard.errors import JudgeUnavailable
from steelyard.judge.chat import ChatJudge
from steelyard.online import Canaries, CanaryReading, Monitor
from steelyard.probing import load_probes
from steelyard.questions import Answer, Question, Request, Supported, YesNo
from steelyard.testing import MemorySink, ScriptedJudge
from waiting import until

pytestmark = pytest.mark.faults


def test_1_too_many_requests_with_a_wait(server: JudgeServer) -> None:
    server.faults.extend(Fault(status=429, headers={"retry-after": "0.05"}) for _ in range(3))
    stats, sink = run(chat(server), turns=3)
    assert causes(sink) == [None] * 3
    assert stats.usage.requests == len(server.received) == 6


@pytest.mark.parametrize("headers", [{"retry-after": "600"}, {}])
def test_2_too_many_requests_for_long(server: JudgeServer, headers: dict[str, str], tmp_path: Path) -> None:
    server.faults.extend(Fault(status=429, headers=headers) for _ in range(40))
    started = time.monotonic()
    stats, sink = run(chat(server, retries=1))
    assert causes(sink) == ["rate_limited"]
    assert time.monotonic() - started < 120  # far from the 600 seconds that were asked for, however busy
    started_again = time.monotonic()
    monitor = Monitor(metrics=FAITHFUL, judge=chat(server, retries=0), sinks=[], spool=tmp_path / "spool.db")
    monitor.submit(turn())
    rows: list[tuple[float]] = []
    while not rows and time.monotonic() < started_again + 60:
        assert monitor.flush(0.2) == 1
        with closing(sqlite3.connect(tmp_path / "spool.db")) as file:
            rows = file.execute("SELECT not_before FROM turns WHERE postponed = 1").fetchall()
    [(due,)] = rows
    spool = monitor.stats().spool
    assert spool is not None and (spool.pending, spool.evaluated) == (1, 0)
    # Due when the server said, or after the first pause of five seconds where it did not.
    wait = due - started_again
    assert 600 <= wait < 660 if headers else 5 <= wait < 65


def answering(*, half: bool = False) -> ScriptedJudge:
    """A judge that knows every probe, and answers each time, or every other time."""
    known = {(probe.contexts, probe.claim): probe.expected for probe in load_probes().probes}
    calls = itertools.count()

    def answer(question: Question, request: Request) -> Answer:
        assert isinstance(question, Supported)
        key = (tuple(context.text for context in request.view.contexts or ()), question.claim)
        if half and next(calls) % 2:
            raise JudgeUnavailable("away", cause="server_error")
        return YesNo(value=known.get(key, True), probability=0.9)

    return ScriptedJudge(answer)


@pytest.mark.parametrize(("half", "state"), [(True, "learning"), (False, "watching")])
def test_nothing_is_learnt_of_a_judge_that_is_away_every_other_time(
    half: bool, state: str, caplog: pytest.LogCaptureFixture
) -> None:
    judge, canaries = answering(half=half), Canaries(share=0.0001, probes=40)
    monitor = Monitor(metrics=FAITHFUL, judge=judge, sinks=[], canaries=canaries)
    monitor.submit(turn())
    until(lambda: "answers few canaries" in caplog.text if half else learnt(monitor).state == state)
    assert monitor.flush(30) == 0
    assert learnt(monitor).state == state and (learnt(monitor).probes > 0) == (state == "watching")
    monitor.close()


def test_canaries_whose_probes_are_gone_are_learned_anew(tmp_path: Path) -> None:
    file = tmp_path / "canaries.json"
    for asked in (160, 160):
        judge = answering()
        canaries = Canaries(share=0.0001, probes=40, file=file)
        monitor = Monitor(metrics=FAITHFUL, judge=judge, sinks=[], canaries=canaries)
        monitor.submit(turn())
        wait_for_canaries(monitor)
        assert monitor.flush(30) == 0
        assert len(judge.requests) == asked + 1
        monitor.close()
        known = json.loads(file.read_text())
        file.write_text(json.dumps(known | {"probes": ["gone", *known["probes"][1:]]}))


def wait_for_canaries(monitor: Monitor) -> None:
    until(lambda: learnt(monitor).state == "watching")


def learnt(monitor: Monitor) -> CanaryReading:
    found = monitor.stats().canaries
    assert found is not None
    return found


def test_3_a_third_of_all_requests_fail(server: JudgeServer) -> None:
    for number in range(40):
        server.faults.append(Fault(status=(500, 503)[number % 2]) if number % 3 == 0 else Fault())
    # Chance could hit the same turn again and again: with eight retries, one in 20,000 would fail.
    stats, sink = run(chat(server, retries=8), turns=25, seconds=40)
    assert causes(sink) == [None] * 25
    assert stats.usage.requests == len(server.received) == 25 + 13


@pytest.mark.parametrize("fault", [Fault(hang=120), Fault(drip=1), Fault(drop=True)])
def test_4_timeout_hang_and_slow_drip(server: JudgeServer, fault: Fault) -> None:
    server.faults.append(fault)
    started = time.monotonic()
    _, sink = run(chat(server, timeout=4, retries=0), turns=2)
    assert time.monotonic() - started < 60
    assert sorted(map(str, causes(sink))) == ["None", "unreachable" if fault.drop else "timeout"]


@pytest.mark.parametrize(
    "fault",
    [
        Fault(raw=b"{"),
        Fault(raw=b"[]"),
        Fault(raw=b"<html>"),
        Fault(content="no JSON"),
        Fault(content="{}"),
        Fault(content='{"s1": NaN}'),
        Fault(content='{"q1": 17, "s1": 17, "q99": "what"}'),
        Fault(content="I'm sorry, I can't help with that."),
        Fault(edit=lambda body: body["choices"][0]["message"].update(content=None, refusal="no")),
        Fault(edit=lambda body: body.update(choices=[])),
    ],
)
def test_5_replies_that_make_no_sense(server: JudgeServer, fault: Fault) -> None:
    server.faults.extend([fault] * 12)
    _, sink = run(chat(server, retries=0))
    [evaluation] = sink.evaluations
    score = evaluation["faithfulness"]
    assert (score.status, score.value) == ("failed", None)
    assert score.cause is not None and score.explanation
    server.faults.clear()
    _, sink = run(chat(server, retries=0))
    assert sink.evaluations[0]["faithfulness"].value == 1.0


def test_6_a_judge_that_is_down_keeps_memory_bounded() -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    judge = ChatJudge("stub", base_url=f"http://127.0.0.1:{port}/v1", api_key="k", retries=0)
    sink = MemorySink()
    monitor = Monitor(metrics=FAITHFUL, judge=judge, sinks=[sink], max_queue=50, concurrency=4)
    for number in range(1000):
        monitor.submit(turn(f"turn {number}"))
        assert monitor.stats().queued <= 50
    assert monitor.flush(60) == 0
    stats = monitor.stats()
    assert stats.evaluated + stats.skipped["queue_full"] == 1000
    assert {evaluation["faithfulness"].cause for evaluation in sink.evaluations} <= {
        "unreachable",
        "breaker_open",
    }


@pytest.mark.parametrize(
    ("fault", "cause"),
    [
        (Fault(status=401, code="invalid_api_key"), "unauthorized"),
        (Fault(status=404, code="model_not_found"), "unknown_model"),
    ],
)
def test_7_a_wrong_key_or_model_is_not_tried_again(
    server: JudgeServer, fault: Fault, cause: str, caplog: pytest.LogCaptureFixture
) -> None:
    server.faults.extend([fault] * 100)
    with caplog.at_level(logging.WARNING, "steelyard"):
        _, sink = run(chat(server), turns=20, concurrency=2)
    assert causes(sink) == [cause] * 20
    assert len(server.received) <= 2
    assert len([record for record in caplog.records if "not asked again" in record.message]) == 1
