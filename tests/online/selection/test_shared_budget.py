"""A budget that lies in the spool: for all processes, across their ends and a clock that is set back."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import pytest

from online.helpers import FAITHFUL, Clock, SlowJudge, finish, kind_judge, turn, yes
from steelyard.online import Budget, Monitor, Rule, Selection, Spool, SpoolSettings
from steelyard.online._shared_budget import UNKNOWN_PAUSE, Claim
from steelyard.online.queue._turns import Leased, Selected
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


LIMITS = {("tokens", 60.0): 100.0, ("tokens", 600.0): 400.0, ("requests", 600.0): 9.0}


@dataclass
class Window:
    """What the model knows of one window."""

    started: float
    used: float = 0.0
    typical: float | None = None


@dataclass
class SharedModel:
    """The counts of a shared budget as a few dictionaries, and the spool that keeps them beside it."""

    spool: Spool
    clock: Clock
    running: Clock
    """Leases end by this one, which is never set back."""
    draw: Random
    windows: dict[tuple[str, float], Window] = field(default_factory=dict)
    reserved: dict[int, tuple[str, Mapping[str, float]]] = field(default_factory=dict)
    holders: dict[int, tuple[str, float]] = field(default_factory=dict)
    held: list[Leased] = field(default_factory=list)
    waits: set[str] = field(default_factory=set)

    def lease(self) -> None:
        """Somebody takes turns; whose lease is over has lost them."""
        now = self.running.now
        self.holders = {seq: held for seq, held in self.holders.items() if held[1] > now}
        for leased in self.spool.lease_turns(self.draw.randint(1, 2)):
            self.held.append(leased)
            self.holders[leased.seq] = leased.lease, now + self.spool.lease_seconds

    def roll(self) -> None:
        now = self.clock.now
        for (_, seconds), one in self.windows.items():
            if now - one.started >= seconds:
                one.started, one.used = now, 0.0
            one.started = min(one.started, now)

    def enter(self, used: Mapping[str, float]) -> None:
        for (kind, _), one in self.windows.items():
            one.used += used.get(kind, 0.0)

    def claim(self) -> None:
        leased = self.draw.choice(self.held)
        claims = [
            Claim(kind, seconds, limit, self.draw.choice([None, 4.0, 30.0]))
            for (kind, seconds), limit in LIMITS.items()
        ]
        owed = self.draw.choice([{}, {}, {"tokens": 7.0, "requests": 1.0}])
        granted = self.spool.claim(leased, claims, owed)
        for one in claims:
            self.windows.setdefault((one.kind, one.seconds), Window(self.clock.now))
        self.roll()
        for seq, (lease, amounts) in list(self.reserved.items()):
            if self.holders.get(seq, ("", 0.0))[0] != lease:
                self.enter(amounts)
                del self.reserved[seq]
        self.enter(owed)
        aside = {kind: sum(a.get(kind, 0.0) for _, a in self.reserved.values()) for kind, _ in LIMITS}
        found = {(one.kind, one.seconds): one for one in granted.windows}
        for key, window in self.windows.items():
            there = found.pop(key)
            assert there.age == self.clock.now - window.started
            assert (there.used, there.reserved) == pytest.approx((window.used, aside[key[0]]))
            assert there.typical == pytest.approx(window.typical)
        assert not found
        assert granted.wait == self.wait(claims, aside)
        if not granted.wait:
            self.reserved[leased.seq] = (leased.lease, {one.kind: self.typical(one) or 0.0 for one in claims})

    def typical(self, claim: Claim) -> float | None:
        """What the file knows comes before what the process does."""
        known = self.windows[claim.kind, claim.seconds].typical
        return claim.typical if known is None else known

    def wait(self, claims: Sequence[Claim], aside: Mapping[str, float]) -> float:
        waits = [0.0]
        for one in claims:
            window, typical = self.windows[one.kind, one.seconds], self.typical(one)
            if one.limit - window.used - aside[one.kind] < (typical or 1e-12):
                waits.append(max(1.0, one.seconds - (self.clock.now - window.started)))
            elif typical is None and self.reserved:
                waits.append(UNKNOWN_PAUSE)
        self.waits.add("full" if max(waits) >= 1 else "unknown" if max(waits) else "none")
        return max(waits)

    def bill(self) -> None:
        leased, tokens = self.draw.choice(self.held), self.draw.choice([0.0, 10.0, 50.0])
        used = self.draw.choice([None, {"tokens": tokens, "requests": float(tokens > 0)}])
        self.spool.bill(leased, used)
        lease, _ = self.reserved.get(leased.seq, ("", {}))
        if lease != leased.lease:
            return
        del self.reserved[leased.seq]
        if used is None:
            return
        self.roll()
        self.enter(used)
        for (kind, _), one in self.windows.items():
            before = one.typical or 0.0
            if used["requests"]:
                one.typical = before + (used[kind] - before) / 10 if before else used[kind]
            else:
                one.typical = before

    def time(self) -> None:
        self.clock.now += self.draw.choice([1.0, 1.0, 6.0, 11.0, 61.0, -20.0])


@pytest.mark.parametrize("seed", range(8))
def test_a_shared_budget_counts_what_its_model_counts(tmp_path: Path, seed: int) -> None:
    clock = Clock(0.0)
    clock.now = 1_000.0
    running = Clock(0.0)
    spool = Spool(tmp_path / "s.db", lease_seconds=10, max_attempts=10**6, clock=running, wall_clock=clock)
    spool.put([Selected(turn(f"{number}"), 0.0, 1.0) for number in range(6)])
    model = SharedModel(spool, clock, running, Random(seed))
    model.lease()
    for _ in range(200):
        running.now += 1.0
        model.draw.choice([model.claim, model.claim, model.bill, model.lease, model.time])()
    assert model.waits == {"full", "unknown", "none"}
    spool.close()
