"""Any order of what can be done with a spool file keeps its ledger."""

from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, multiple, rule

from online.helpers import Clock
from online.queue.spools import check, result, spooled
from steelyard.online.queue._spool import Spool
from steelyard.online.queue._turns import Leased, Undelivered


class SpoolMachine(RuleBasedStateMachine):
    """Several workers on one spool, dying and coming back, while time passes."""

    leases = Bundle("leases")
    results = Bundle("results")

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.path = Path(self.folder.name) / "spool.db"
        self.clock = Clock()
        self.spool = self.open()
        self.put: set[str] = set()
        self.finished: list[str] = []
        self.delivered: set[str] = set()
        self.held: dict[str, float] = {}

    def open(self) -> Spool:
        return Spool(self.path, clock=self.clock, lease_seconds=10, max_attempts=10**6)

    def teardown(self) -> None:
        self.spool.close()
        self.folder.cleanup()

    @rule(names=st.lists(st.integers(0, 30).map(str), min_size=1, max_size=3))
    def submit(self, names: list[str]) -> None:
        outcomes = self.spool.put([spooled(name) for name in names])
        for name, outcome in zip(names, outcomes, strict=True):
            assert (outcome == "new") == (name not in self.put)
            self.put.add(name)

    @rule(target=leases, most=st.integers(1, 3))
    def leased(self, most: int) -> object:
        claimed = self.spool.lease_turns(most)
        for leased in claimed:
            name = leased.turn.record.id
            assert name not in self.finished
            assert self.held.get(name, 0) <= self.clock.now
            self.held[name] = self.clock.now + 10
        return multiple(*claimed)

    @rule(target=results, leased=consumes(leases))
    def finish(self, leased: Leased) -> object:
        done = self.spool.finish(leased, result(leased))
        if done is None:
            return multiple()
        self.finished.append(leased.turn.record.id)
        self.held.pop(leased.turn.record.id, None)
        return done

    @rule(leased=consumes(leases), seconds=st.floats(0, 100))
    def postpone(self, leased: Leased, seconds: float) -> None:
        if self.spool.postpone(leased, seconds):
            self.held.pop(leased.turn.record.id, None)

    @rule(leased=consumes(leases))
    def release(self, leased: Leased) -> None:
        before = self.spool.counts().pending
        self.spool.release([leased])
        assert self.spool.counts().pending == before
        if self.held.get(leased.turn.record.id, 0) > self.clock.now:
            self.held.pop(leased.turn.record.id, None)

    @rule(leased=consumes(leases))
    def crash(self, leased: Leased) -> None:
        """Nobody ever hears of this lease again."""

    @rule(leased=leases)
    def renew(self, leased: Leased) -> None:
        self.spool.renew([leased])
        self.held[leased.turn.record.id] = self.clock.now

    @rule(done=consumes(results))
    def acknowledge(self, done: Undelivered) -> None:
        self.spool.delivered([done])
        self.delivered.add(done.evaluation.record_id)

    @rule(target=results, most=st.integers(1, 3))
    def take_over(self, most: int) -> object:
        left = self.spool.lease_results(most)
        assert all(done.evaluation.record_id in self.finished for done in left)
        return multiple(*left)

    @rule()
    def restart(self) -> None:
        self.spool.close()
        self.spool = self.open()

    @rule(seconds=st.floats(0, 30))
    def time_passes(self, seconds: float) -> None:
        self.clock.now += seconds

    @rule()
    def machine_starts_again(self) -> None:
        self.clock.now = 1.0
        self.held.clear()

    @invariant()
    def nothing_is_lost_or_done_twice(self) -> None:
        counts = check(self.spool)
        assert counts.accepted == len(self.put)
        assert len(self.finished) == len(set(self.finished)) == counts.evaluated


SpoolMachine.TestCase.settings = settings(
    max_examples=25,
    stateful_step_count=30,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
TestSpoolMachine = SpoolMachine.TestCase
