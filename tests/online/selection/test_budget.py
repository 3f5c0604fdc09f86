"""Throttle and budget: the rate goes down before the limit binds, and the limit holds if it does."""

from __future__ import annotations

import asyncio
import itertools
import math
import random
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from online.helpers import FAITHFUL, Clock, check_law, finish, kind_judge, traced, turn, yes
from steelyard.errors import ConfigurationError
from steelyard.online import Budget, Monitor, Price, Rule, Selection, SpoolSettings
from steelyard.online._budget import BudgetControl
from steelyard.online._screening import Allocation
from steelyard.online._selection import key_of, sampling_position
from steelyard.online._shared_budget import Claim, Granted, Standing
from steelyard.online.queue._protocol import MemoryQueue, QueueFailed
from steelyard.online.queue._turns import Leased, Selected
from steelyard.questions import Reply, Request
from steelyard.record import Context, Record, Stage
from steelyard.scores import Usage
from steelyard.testing import MemorySink, ScriptedJudge


def day(
    control: BudgetControl, clock: Clock, *, arrivals: int, seconds: float, usage: Usage
) -> list[tuple[float, str]]:
    """Send turns evenly through some time: for each its share, and what became of it."""
    rng = random.Random(3)
    seen = []
    for _ in range(arrivals):
        clock.now += seconds / arrivals
        share = control.share()
        outcome = "sampled_out"
        if rng.random() < share:
            outcome = control.reserve("turn") or "judged"
            control.correct("turn", usage)
        seen.append((share, outcome))
    return seen


def test_a_budget_thins_evenly_and_keeps_its_limit() -> None:
    clock = Clock(0.0)
    # Beside a limit that never binds.
    budget = Budget(tokens_per_hour=100_000, requests_per_day=10**6)
    control = BudgetControl(budget=budget, clock=clock)
    usage = Usage(requests=2, prompt_tokens=900, completion_tokens=100)
    seen = day(control, clock, arrivals=1000, seconds=3590, usage=usage)
    judged = [number for number, (_, outcome) in enumerate(seen) if outcome == "judged"]
    assert 90 <= len(judged) <= 100
    # Spread over the whole hour rather than used up at its beginning.
    assert 35 <= sum(number < 500 for number in judged) <= 65
    shares = [share for share, _ in seen[100:900]]
    assert min(shares) > 0.05 and max(shares) < 0.2


def test_the_next_window_begins_anew() -> None:
    clock = Clock(0.0)
    control = BudgetControl(budget=Budget(requests_per_hour=5), clock=clock)
    for _ in range(5):
        assert control.reserve("turn") is None
        control.correct("turn", Usage(requests=1))
    assert control.reserve("late") == "over_budget"
    clock.now += 3601
    assert control.reserve("turn") is None


def test_turns_under_way_count_before_their_bill_is_known() -> None:
    control = BudgetControl(budget=Budget(requests_per_hour=10), clock=Clock(0.0))
    assert control.reserve("first") is None
    control.correct("first", Usage(requests=4))
    assert control.reserve("second") is None
    assert control.reserve("third") == "over_budget"
    control.release("second")
    assert control.reserve("fourth") is None
    assert control.reserve("fifth", forced=True) is None


def test_what_a_screen_uses_counts() -> None:
    control = BudgetControl(budget=Budget(requests_per_hour=10), clock=Clock(0.0))
    assert control.share() == 1.0
    control.spend(Usage(requests=10))
    assert control.reserve("first") == "over_budget"


def test_what_was_set_aside_for_a_turn_that_cannot_be_judged_is_free_again() -> None:
    control = BudgetControl(budget=Budget(requests_per_hour=10), clock=Clock(0.0))
    assert control.reserve("first") is None
    control.correct("first", Usage(requests=4))
    assert control.reserve("second") is None
    assert control.reserve("third") == "over_budget"
    leased = Leased(0, "lease", Selected(turn("second"), 0.0, 1.0))
    queue = MemoryQueue(Monitor(metrics=[], sinks=[])._run.inbox, capacity=1)
    asyncio.run(control.give_up(queue, leased))
    assert control.reserve("third") is None


def test_what_is_set_aside_stays_so_in_the_next_window() -> None:
    clock = Clock(0.0)
    control = BudgetControl(budget=Budget(requests_per_hour=10), clock=clock)
    assert control.reserve("first") is None
    control.correct("first", Usage(requests=4))
    clock.now += 3500
    assert control.reserve("second") is None
    clock.now += 200
    assert control.reserve("third") is None
    assert control.reserve("fourth") == "over_budget"


def test_what_a_turn_uses_is_learnt_slowly_and_from_those_that_asked() -> None:
    control = BudgetControl(budget=Budget(requests_per_hour=100), clock=Clock(0.0))
    for requests in (10, *(0,) * 20, 60):
        assert control.reserve("turn") is None
        control.correct("turn", Usage(requests=requests))
    # A turn takes 15 now: nothing was learnt from those out of a cache, and a tenth from the large one.
    assert control.reserve("one") is control.reserve("two") is None
    assert control.reserve("three") == "over_budget"


def test_a_turn_that_is_handed_over_counts_against_the_throttle_and_is_not_asked_again() -> None:
    control = BudgetControl(turns_per_minute=2, clock=Clock(0.0))
    for name in "ab":
        assert control.reserve(name) is None
        control.hand_over(name)
    assert control.reserve("c") == "throttled"
    leased = [Leased(number, "lease", Selected(turn(f"{number}"), 0.0, 1.0)) for number in range(3)]
    queue = MemoryQueue(Monitor(metrics=[], sinks=[])._run.inbox, capacity=1)
    assert [asyncio.run(control.ask(queue, one)) for one in leased] == [0.0, 0.0, 0.0]


async def test_what_is_owed_to_a_queue_that_fails_is_owed_still() -> None:
    class Failing(MemoryQueue):
        owed: ClassVar[list[dict[str, float]]] = []

        async def claim(self, leased: Leased, claims: Sequence[Claim], owed: Mapping[str, float]) -> Granted:
            self.owed.append(dict(owed))
            if len(self.owed) == 1:
                raise QueueFailed
            return Granted(0.0, [Standing(one.kind, one.seconds, 0.0, 5.0, 3.0, None) for one in claims])

        async def bill(self, leased: Leased, used: Mapping[str, float] | None) -> None: ...

    queue = Failing(Monitor(metrics=[], sinks=[])._run.inbox, capacity=1)
    control = BudgetControl(budget=Budget(requests_per_hour=10), shared=True, clock=Clock(0.0))
    past, next_ = (Leased(n, "lease", Selected(turn(f"{n}"), 0.0, 1.0)) for n in range(2))
    assert control.reserve("0") is None
    await control.settle(queue, past, Usage(requests=2))
    with pytest.raises(QueueFailed):
        await control.ask(queue, next_)
    assert await control.ask(queue, next_) == 0.0
    assert [owed["requests"] for owed in queue.owed] == [2.0, 2.0]
    # What others have used and set aside counts: 2 of 10 are left, and a turn takes 2.
    assert control.reserve("mine") is None
    assert control.reserve("one more") == "over_budget"


@given(
    tokens=st.tuples(*[st.integers(0, 10**6)] * 3),
    requests=st.integers(0, 100),
    cost=st.none() | st.floats(0, 10),
    cached=st.none() | st.just(0.5),
)
def test_money_is_counted_by_the_judge_or_by_the_price(
    tokens: tuple[int, int, int], requests: int, cost: float | None, cached: float | None
) -> None:
    fresh, known, received = tokens
    usage = Usage(
        requests=requests,
        prompt_tokens=fresh + known,
        cached_tokens=known,
        completion_tokens=received,
        cost=cost,
    )
    dollars = (2.0 * fresh + (2.0 if cached is None else cached) * known + 8.0 * received) / 1e6
    used = {"tokens": fresh + known + received, "requests": requests}
    for price, by_price in ((Price(input=2.0, output=8.0, cached=cached), dollars), (None, 0.0)):
        budget = Budget(cost_per_day=1.0, price=price)
        assert budget.used(usage) == pytest.approx({**used, "cost": by_price if cost is None else cost})


def test_prices_by_name() -> None:
    price = Price.named("gpt-4o-mini")
    assert 0 < (price.cached or 0) < price.input < price.output
    tokens = Usage(prompt_tokens=1_000_000, completion_tokens=1_000_000)
    assert price.of(tokens) == pytest.approx(price.input + price.output)
    assert Price.named("mistral-small-latest", base_url="https://api.mistral.ai/v1") != price
    with pytest.raises(ConfigurationError, match="no price is known for 'nobody-9'"):
        Price.named("nobody-9")


def test_the_throttle_of_a_monitor() -> None:
    sink = MemorySink()
    rules = [Rule(tags=["must"], force=True)]
    monitor = Monitor(
        metrics=FAITHFUL, judge=kind_judge(), sinks=[sink], throttle=10, selection=Selection(rules=rules)
    )
    finish(monitor, (traced(number, tags=("must",) if number % 50 == 0 else ()) for number in range(200)))
    stats = monitor.stats()
    assert 5 <= stats.evaluated <= 14
    assert (
        sum(stats.skipped.get(reason, 0) for reason in ("throttled", "sampled_out")) == 200 - stats.evaluated
    )
    assert all(0 < e["faithfulness"].inclusion_probability <= 1 for e in sink.evaluations)
    forced = [e for e in sink.evaluations if e.record is not None and e.record.tags]
    assert len(forced) == 4 and {e["faithfulness"].inclusion_probability for e in forced} == {1.0}


def test_the_budget_of_a_monitor() -> None:
    class Dear(ScriptedJudge):
        async def answer(self, request: Request) -> Reply:
            reply = await super().answer(request)
            return Reply(answers=reply.answers, usage=Usage(requests=1, prompt_tokens=1000, cost=0.01))

    monitor = Monitor(
        metrics=FAITHFUL, judge=Dear(yes), sinks=[], budget=Budget(cost_per_hour=0.05), concurrency=1
    )
    for number in range(30):
        monitor.submit(traced(number))
        monitor.flush(5)
    stats = monitor.stats()
    assert 1 <= stats.evaluated <= 5
    assert stats.usage.cost is not None and stats.usage.cost <= 0.05 + 1e-9
    assert stats.skipped.keys() <= {"over_budget", "sampled_out"}


def test_an_unlimited_budget_costs_nothing() -> None:
    control = BudgetControl()
    assert control.share() == 1.0
    assert control.reserve("turn") is None


async def test_a_window_that_is_shared_ends_for_all_at_the_same_time() -> None:
    class Shared(MemoryQueue):
        async def claim(self, leased: Leased, claims: Sequence[Claim], owed: Mapping[str, float]) -> Granted:
            return Granted(600.0, [Standing(one.kind, one.seconds, 3000.0, 10.0, 0.0, 1.0) for one in claims])

        async def bill(self, leased: Leased, used: Mapping[str, float] | None) -> None: ...

    clock = Clock(0.0)
    control = BudgetControl(budget=Budget(requests_per_hour=10), shared=True, clock=clock)
    leased = Leased(1, "lease", Selected(turn("1"), 0.0, 1.0))
    queue = Shared(Monitor(metrics=[], sinks=[])._run.inbox, capacity=1)
    assert await control.ask(queue, leased) == 600.0
    outcomes = []
    for _ in range(3):
        outcomes.append(control.reserve("mine"))
        clock.now += 400
    assert outcomes == ["over_budget", "over_budget", None]


def test_a_masked_out_turn_gives_its_reservation_back() -> None:
    def mask(record: Record) -> Record:
        if record.tags:
            raise ValueError
        return record

    forced = Selection(rules=[Rule(tags=["must"], force=True)])
    monitor = Monitor(metrics=[], sinks=[], throttle=100, mask=mask, selection=forced)
    finish(monitor, (turn(tags=("must",)) for _ in range(100)))
    finish(monitor, [turn()])
    stats = monitor.stats()
    assert (stats.evaluated, stats.skipped) == (1, {"mask_failed": 100})
    check_law(stats)


def test_a_turn_that_the_queue_refuses_gives_its_reservation_back(tmp_path: Path) -> None:
    forced = Selection(rules=[Rule(tags=["must"], force=True)])
    spool = SpoolSettings(path=tmp_path / "s.db", max_bytes=20_000)
    monitor = Monitor(metrics=[], sinks=[], throttle=10, selection=forced, spool=spool)
    finish(monitor, (turn(f"{number}", tags=("must",), answer="too long " * 5_000) for number in range(10)))
    finish(monitor, [turn("fits")])
    stats = monitor.stats()
    assert (stats.spooled, stats.skipped) == (1, {"spool_full": 10})
    check_law(stats)


def test_a_turn_that_a_throttle_cuts_off_is_skipped_by_name() -> None:
    forced = Selection(rules=[Rule(tags=["must"], force=True)])
    monitor = Monitor(metrics=[], sinks=[], throttle=10, selection=forced)
    finish(monitor, (turn(tags=("must",) if number < 10 else ()) for number in range(15)))
    stats = monitor.stats()
    assert (stats.evaluated, stats.skipped) == (10, {"throttled": 5})


def test_the_probability_that_a_throttle_leaves_is_stored() -> None:
    picked = next(one for one in map(traced, itertools.count()) if sampling_position(key_of(one)) < 0.5)
    sink = MemorySink()
    monitor = Monitor(metrics=FAITHFUL, judge=kind_judge(), sinks=[sink], throttle=10)
    finish(monitor, [picked])
    [evaluation] = sink.evaluations
    # One turn in the first quarter of a memory of 15 s: 18 are expected in the minute, and 10 may be judged.
    expected = 60 / (15 * (1 - math.exp(-0.25)))
    assert evaluation["faithfulness"].inclusion_probability == pytest.approx(10 / expected)


@pytest.mark.parametrize(
    "changes",
    [
        {"metadata": {"deep": [{"text": "x" * 10**6}]}},
        {"reference": "x" * 10**6},
        {"tags": ("x" * 10**6,)},
        {"notes": ("x" * 10**6,)},
        {"reference_contexts": (Context(text="x" * 10**6),)},
        {"contexts": (*(Context(text="short") for _ in range(60)), Context(text="x" * 10**6))},
        {"stages": (Stage(name="search", query="q", contexts=(Context(text="x" * 10**6),)),)},
        {"answer": "\u4e2d" * 500_000},
        {"metadata": {"many": ["x" * 100 for _ in range(10_000)]}},
    ],
)
def test_every_byte_that_a_turn_keeps_alive_is_counted(changes: dict[str, Any]) -> None:
    monitor = Monitor(metrics=[], sinks=[], max_queue_bytes=3_200_000, selection=Selection(rate=1.0))
    record = turn(**changes)
    with unstarted(monitor):
        for _ in range(50):
            monitor.submit(record)
        stats = monitor.stats()
        assert stats.queued <= 3
        assert stats.skipped["queue_full"] >= 47


@contextmanager
def unstarted(monitor: Monitor) -> Iterator[None]:
    """A Monitor whose thread is not started, so that everything waits."""
    monitor._run._half_started = True
    yield
    monitor._run._half_started = False


def test_forced_turns_go_past_the_budget_and_are_on_its_bill() -> None:
    class Dear(ScriptedJudge):
        async def answer(self, request: Request) -> Reply:
            reply = await super().answer(request)
            return Reply(answers=reply.answers, usage=Usage(requests=1, cost=0.01))

    selection = Selection(rules=[Rule(tags=["must"], force=True)])
    budget = Budget(cost_per_day=0.02)
    monitor = Monitor(
        metrics=FAITHFUL, judge=Dear(yes), sinks=[], budget=budget, selection=selection, concurrency=1
    )
    finish(monitor, (traced(number, tags=("must",)) for number in range(12)))
    assert monitor.stats().evaluated == 12
    finish(monitor, [traced(100)])
    stats = monitor.stats()
    assert stats.evaluated == 12 and stats.skipped.keys() <= {"over_budget", "sampled_out"}


def shares(bad: int, inclusion: float) -> tuple[float, float]:
    """Of a bin with a thousand good turns and some bad ones, and of one whose turns vary by half as much."""
    allocation = Allocation(floor=0.0)
    for said in (0.1, 0.9):
        for _ in range(500):
            allocation.share({"m": said})
    for _ in range(1000):
        allocation.learn("m", 0.1, 1.0, 1.0)
    for _ in range(bad):
        allocation.learn("m", 0.1, 0.0, inclusion)
    for number in range(2000):
        allocation.learn("m", 0.9, 0.25 + 0.5 * (number % 2), 1.0)
    return allocation.share({"m": 0.1}), allocation.share({"m": 0.9})


def test_a_turn_that_was_seldom_picked_speaks_for_all_that_were_not() -> None:
    assert shares(100, 0.1) == pytest.approx(shares(1000, 1.0), rel=0.02)
    # Standard deviations of .5 and .25.
    assert shares(100, 0.1) == pytest.approx((4 / 3, 2 / 3), rel=0.02)
