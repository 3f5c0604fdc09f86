"""Results in a spool file until every sink has them: whoever dies, and whoever else is at work."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from online.helpers import Clock, turn
from online.queue.spools import check, opened, result, spooled
from steelyard.online.queue._spool import Spool
from steelyard.online.queue._turns import Undelivered


def finished(spool: Spool, *names: str) -> list[Undelivered]:
    """Turns that were just judged; this process holds their results."""
    spool.put([spooled(name) for name in names])
    done = [spool.finish(leased, result(leased)) for leased in spool.lease_turns(len(names))]
    return [one for one in done if one is not None]


def ids(results: list[Undelivered]) -> list[str]:
    return [one.evaluation.record_id for one in results]


def test_what_a_dead_process_left_comes_once_oldest_first_and_before_turns(tmp_path: Path) -> None:
    clock = Clock()
    spool = opened(tmp_path / "s.db", clock=clock, lease_seconds=10)
    finished(spool, "a", "b", "c")
    spool.put([spooled("later")])
    assert spool.lease_results(5) == []
    clock.now += 11
    assert ids([one for one in spool.lease(2) if isinstance(one, Undelivered)]) == ["a", "b"]
    assert ids(spool.lease_results(5)) == ["c"]
    assert spool.lease_results(5) == []
    check(spool)


def test_what_waits_for_a_sink_comes_once_and_again_when_its_holder_is_dead(tmp_path: Path) -> None:
    clock = Clock()
    spool = opened(tmp_path / "s.db", clock=clock, lease_seconds=10)
    spool.park([(one, ["away"]) for one in finished(spool, "a", "b", "c")])
    assert spool.lease_results(5) == spool.parked("other", 5) == []
    assert ids(first := spool.parked("away", 2)) == ["a", "b"]
    assert ids(spool.parked("away", 5)) == ["c"]
    clock.now += 6
    spool.renew(first)
    clock.now += 5
    assert ids(spool.parked("away", 5)) == ["c"]
    clock.now += 6
    assert ids(spool.parked("away", 5)) == ["a", "b"]
    # The machine was started again, and its clock with it.
    clock.now = 1.0
    assert ids(spool.parked("away", 5)) == ["a", "b", "c"]


def test_a_result_that_its_holder_renews_comes_to_nobody(tmp_path: Path) -> None:
    clock = Clock()
    spool = opened(tmp_path / "s.db", clock=clock, lease_seconds=10)
    held = finished(spool, "a")
    clock.now += 6
    spool.renew(held)
    clock.now += 6
    assert spool.lease_results(5) == []


def test_whoever_has_lost_a_result_settles_nothing(tmp_path: Path) -> None:
    clock = Clock()
    spool = opened(tmp_path / "s.db", clock=clock, lease_seconds=10)
    whole = finished(spool, "a")
    clock.now += 11
    mine = spool.lease_results(1)
    spool.delivered(whole)
    spool.park([(one, ["away"]) for one in whole])
    spool.release(whole)
    assert (spool.counts().undelivered, spool.counts().waiting) == (1, {})
    assert spool.lease_results(1) == []
    spool.park([(one, ["away"]) for one in mine])
    lost = spool.parked("away", 1)
    clock.now += 11
    held = spool.parked("away", 1)
    spool.delivered(lost)
    spool.release(lost)
    assert (spool.counts().waiting, spool.parked("away", 1)) == ({"away": 1}, [])
    spool.delivered(held)
    assert (spool.counts().undelivered, spool.counts().waiting) == (0, {})


def test_what_is_released_comes_to_the_next_at_once(tmp_path: Path) -> None:
    spool = opened(tmp_path / "s.db")
    spool.release(finished(spool, "a"))
    [whole] = spool.lease_results(5)
    spool.park([(whole, ["away"])])
    spool.release(spool.parked("away", 5))
    assert ids(spool.parked("away", 5)) == ["a"]


def test_a_result_takes_room_until_its_last_sink_has_it(tmp_path: Path) -> None:
    spool = opened(tmp_path / "s.db", max_bytes=10_000)
    spool.put([spooled("a")])
    [leased] = spool.lease_turns(1)
    # Longer than a turn, so that one fits where it was.
    large = replace(result(leased), record=turn("a", answer="It was found. " * 100))
    [whole] = filter(None, [spool.finish(leased, large)])
    spool.park([(whole, ["one", "two"])])
    assert spool.counts().waiting == {"one": 1, "two": 1}
    full = 0
    while spool.put([spooled(f"filling {full}")]) == ["new"]:
        full += 1
    spool.delivered(spool.parked("one", 5))
    assert spool.put([spooled("more")]) == ["full"]
    assert (spool.counts().undelivered, spool.counts().waiting) == (1, {"two": 1})
    spool.delivered(spool.parked("two", 5))
    assert spool.put([spooled("more")]) == ["new"]
    assert (spool.counts().undelivered, spool.counts().waiting) == (0, {})
    check(spool)


def test_what_is_dropped_frees_its_room_and_what_is_moved_does_not(tmp_path: Path) -> None:
    spool = opened(tmp_path / "s.db")
    spool.park([(one, ["old", "other"]) for one in finished(spool, "a", "b")])
    assert spool.move("old", "other") == 2
    assert (spool.counts().undelivered, spool.counts().waiting) == (2, {"other": 2})
    assert spool.move("other", "new") == 2
    assert spool.counts().waiting == {"new": 2}
    assert ids(spool.parked("new", 5)) == ["a", "b"]
    assert spool.move("new", "") == 2
    assert (spool.counts().undelivered, spool.counts().waiting) == (0, {})
