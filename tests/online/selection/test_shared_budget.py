"""A budget that lies in the spool: for all processes, across their ends and a clock that is set back."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from online.helpers import FAITHFUL, Clock, SlowJudge, finish, kind_judge, turn, yes
from steelyard.online import Budget, Monitor, Rule, Selection, Spool, SpoolSettings
from steelyard.online._shared_budget import UNKNOWN_PAUSE, Claim
from steelyard.online.queue._turns import Selected
from waiting import until


def test_a_budget_is_asked_for_turns_found_in_the_spool_and_given_back(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    host = Monitor(metrics=[], sinks=[], throttle=1000, spool=SpoolSettings(path=path, evaluate=False))
    finish(host, (turn(f"{number}") for number in range(60)))
    host.close()
    judge = kind_judge()
    worker = Monitor(
        metrics=FAITHFUL,
        judge=judge,
        sinks=[],
        spool=path,
        concurrency=1,
        budget=Budget(requests_per_hour=10),
    )
    worker.start()
    until(lambda: len(judge.requests) >= 8)
    worker.flush(1)
    assert 8 <= len(judge.requests) <= 10
    counts = worker.stats().spool
    assert counts is not None
    assert counts.evaluated == len(judge.requests)
    assert counts.accepted == counts.pending + counts.evaluated == 60


@pytest.mark.faults
def test_processes_on_one_spool_share_a_budget(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    host = Monitor(metrics=[], sinks=[], spool=SpoolSettings(path=path, evaluate=False))
    finish(host, (turn(f"{number}") for number in range(40)))
    host.close(0)
    judges = [SlowJudge(yes, seconds=0.05) for _ in range(2)]
    budget = Budget(requests_per_day=12)
    workers = [
        Monitor(metrics=FAITHFUL, judge=judge, sinks=[], spool=path, concurrency=4, budget=budget)
        for judge in judges
    ]
    for worker in workers:
        worker.start()
    until(lambda: sum(len(judge.requests) for judge in judges) >= 12)
    workers[0].flush(1)
    for worker in workers:
        worker.close(0)
    # A third one, later, knows what was used, and so does one after a restart of the machine.
    judges.append(SlowJudge(yes))
    late = Monitor(metrics=FAITHFUL, judge=judges[2], sinks=[], spool=path, budget=budget)
    late.start()
    until(lambda: late.stats().spool is not None)
    late.flush(1)
    assert sum(len(judge.requests) for judge in judges) == 12
    counts = late.stats().spool
    assert counts is not None
    assert counts.evaluated == 12
    assert counts.accepted == counts.pending + counts.evaluated == 40


def test_until_it_is_known_what_turns_use_one_is_judged_at_a_time(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "s.db")
    spool.put([Selected(turn(name), 0.0, 1.0) for name in ("a", "b")])
    claims = [Claim("tokens", 3600.0, 100.0, None)]
    [first, second] = spool.lease_turns(2)
    assert spool.claim(first, claims, {}).wait == 0
    assert spool.claim(second, claims, {}).wait == UNKNOWN_PAUSE
    spool.bill(first, {"tokens": 50.0, "requests": 1.0})
    assert spool.claim(second, claims, {}).wait == 0
    spool.close()


def test_a_process_that_dies_is_charged_what_was_set_aside(tmp_path: Path) -> None:
    now = Clock(0.0)
    spool = Spool(tmp_path / "s.db", lease_seconds=10, clock=now, wall_clock=now)
    spool.put([Selected(turn(name), 0.0, 1.0) for name in ("a", "b")])
    claims = [Claim("tokens", 3600.0, 100.0, 60.0)]
    [first, second] = spool.lease_turns(2)
    assert spool.claim(first, claims, {}).wait == 0
    assert spool.claim(second, claims, {}).wait == 3600  # it is set aside for the first
    now.now += 11
    [again, _] = spool.lease_turns(2)
    refused = spool.claim(again, claims, {})
    assert refused.wait == 3600 - 11
    assert [(one.used, one.reserved) for one in refused.windows] == [(60.0, 0.0)]
    # Who comes back after that has no lease any more, and is not charged a second time.
    spool.bill(first, {"tokens": 30.0, "requests": 1.0})
    assert [one.used for one in spool.claim(again, claims, {}).windows] == [60.0]
    now.now += 3600
    [again, _] = spool.lease_turns(2)
    assert spool.claim(again, claims, {}).wait == 0
    spool.bill(again, None)
    assert [(one.used, one.reserved) for one in spool.claim(again, claims, {}).windows] == [(0.0, 0.0)]
    spool.close()


def test_who_has_lost_a_turn_pays_nothing_for_whoever_holds_it(tmp_path: Path) -> None:
    now = Clock(0.0)
    spool = Spool(tmp_path / "s.db", lease_seconds=10, clock=now, wall_clock=now)
    spool.put([Selected(turn("a"), 0.0, 1.0)])
    claims = [Claim("tokens", 3600.0, 1000.0, 60.0)]
    [lost] = spool.lease_turns(1)
    spool.claim(lost, claims, {})
    now.now += 11
    [held] = spool.lease_turns(1)
    spool.claim(held, claims, {})
    spool.bill(lost, {"tokens": 30.0, "requests": 1.0})
    (window,) = spool.claim(held, claims, {}).windows
    # What died with the first holder, and what is set aside for the second.
    assert (window.used, window.reserved, window.typical) == (60.0, 60.0, None)
    spool.close()


def test_a_turn_out_of_a_cache_teaches_no_process_what_turns_use(tmp_path: Path) -> None:
    now = Clock(0.0)
    spool = Spool(tmp_path / "s.db", clock=now, wall_clock=now)
    spool.put([Selected(turn(name), 0.0, 1.0) for name in ("a", "b", "c")])
    claims = [Claim("tokens", 3600.0, 1000.0, 60.0)]
    asked, cached, last = spool.lease_turns(3)
    for leased, used in (
        (asked, {"tokens": 50.0, "requests": 1.0}),
        (cached, {"tokens": 0.0, "requests": 0.0}),
    ):
        spool.claim(leased, claims, {})
        spool.bill(leased, used)
    (window,) = spool.claim(last, claims, {}).windows
    assert (window.used, window.typical) == (50.0, 50.0)
    spool.close()


def test_what_was_judged_past_a_spool_that_failed_is_entered_later(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    judge = kind_judge()
    monitor = Monitor(
        metrics=FAITHFUL,
        judge=judge,
        sinks=[],
        spool=path,
        budget=Budget(requests_per_day=6),
        selection=Selection(rules=[Rule(tags=["must"], force=True)]),
    )
    finish(monitor, [turn("stored")])
    aside = path.rename(tmp_path / "aside")
    path.mkdir()  # so that no other one is made there
    finish(monitor, (turn(f"past {number}") for number in range(3)))
    assert monitor.stats().evaluated == 3
    path.rmdir()
    aside.rename(path)
    until(lambda: monitor.stats().spool is not None)
    for number in range(5):
        monitor.submit(turn(f"later {number}", tags=("must",)))
    until(lambda: len(judge.requests) >= 6)
    monitor.flush(1)
    monitor.close(0)
    with closing(sqlite3.connect(path)) as file:
        assert file.execute("SELECT used FROM budget").fetchall() == [(6.0,)] == [(len(judge.requests),)]


def test_a_clock_that_is_set_back_gives_no_second_budget(tmp_path: Path) -> None:
    now = Clock(0.0)
    now.now = 10_000.0
    spool = Spool(tmp_path / "s.db", wall_clock=now)
    spool.put([Selected(turn("a"), 0.0, 1.0), Selected(turn("b"), 0.0, 1.0)])
    [first, second] = spool.lease_turns(2)
    claims = [Claim("requests", 3600.0, 1.0, 1.0)]
    assert spool.claim(first, claims, {}).wait == 0
    spool.bill(first, {"requests": 1.0})
    now.now = 5.0
    assert spool.claim(second, claims, {}).wait == 3600
    spool.close()
