"""The ledger: its two equations hold at every moment, whoever counts."""

from __future__ import annotations

import sys
import threading
from types import FrameType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from online.helpers import FAITHFUL, SlowJudge, turn, yes
from steelyard.online import Monitor
from steelyard.online.queue._inbox import Inbox
from steelyard.online.queue._turns import Counts, Feedback, Ledger, Queued
from steelyard.record import Record
from waiting import until


def balanced(counts: Counts) -> bool:
    skipped, dead = sum(counts.skipped.values()), sum(counts.dead.values())
    finished = counts.pending + counts.evaluated + dead + counts.abandoned + counts.spooled
    return counts.seen == skipped + finished and counts.accepted == finished and counts.pending >= 0


def test_it_balances_at_every_moment_under_threads() -> None:
    ledger = Inbox(max_items=10**6, max_bytes=10**9, wake=lambda: None, feedback=Feedback())
    item = Queued(turn(), None, 1)
    stop = threading.Event()
    unbalanced: list[Counts] = []

    def work(state: str) -> None:
        for number in range(2000):
            if number % 5 == 0:
                ledger.skip("sampled_out")
            ledger.put(item)
            ledger.settle(state, "why")  # type: ignore[arg-type]

    def watch() -> None:
        while not stop.is_set():
            counts = ledger.counts()
            if not balanced(counts):
                unbalanced.append(counts)

    watcher = threading.Thread(target=watch)
    workers = [threading.Thread(target=work, args=(s,)) for s in ("evaluated", "dead", "skipped", "spooled")]
    for thread in (watcher, *workers):
        thread.start()
    for thread in workers:
        thread.join()
    stop.set()
    watcher.join()
    final = ledger.counts()
    assert not unbalanced
    assert (final.seen, final.pending, final.evaluated, final.spooled) == (9600, 0, 2000, 2000)
    assert final.skipped == {"sampled_out": 1600, "why": 2000}
    assert final.dead == {"why": 2000}


def test_a_turn_cannot_be_settled_twice() -> None:
    ledger = Ledger()
    ledger.accept()
    ledger.settle("evaluated")
    with pytest.raises(ValueError, match="only 0 are pending"):
        ledger.settle("dead", "again")
    assert balanced(ledger.counts())


def test_only_what_was_settled_can_be_reopend() -> None:
    ledger = Ledger()
    with pytest.raises(ValueError, match="no turn has been evaluated"):
        ledger.reopen("evaluated")
    ledger.accept()
    ledger.settle("evaluated")
    ledger.skip("sampled_out")
    ledger.reopen("evaluated")
    ledger.reopen("skipped")
    assert ledger.counts().pending == 2 and balanced(ledger.counts())


def test_waiting_ends_with_the_last_turn_and_says_what_is_left() -> None:
    ledger = Inbox(max_items=10, max_bytes=1000, wake=lambda: None, feedback=Feedback())
    ledger.put(Queued(turn(), None, 1))
    ledger.put(Queued(turn(), None, 1))
    assert ledger.wait(0.01) == 2
    threading.Timer(0.05, lambda: ledger.settle("evaluated", count=2)).start()
    assert ledger.wait(120) == 0


def test_turns_that_were_given_up_on_their_way_may_still_arrive() -> None:
    ledger = Ledger()
    for _ in range(3):
        ledger.accept()
    ledger.settle("abandoned", count=3)
    ledger.settle("spooled", count=2)
    counts = ledger.counts()
    assert (counts.abandoned, counts.spooled, counts.pending) == (1, 2, 0) and balanced(counts)
    with pytest.raises(ValueError, match="only 0 are pending"):
        ledger.settle("spooled", count=2)


@given(st.lists(st.sampled_from(["accept", "skip", "evaluated", "dead", "skipped", "spooled", "abandon"])))
def test_any_sequence_balances(moves: list[str]) -> None:
    ledger = Ledger()
    for move in moves:
        if move == "accept":
            ledger.accept()
        elif move == "skip":
            ledger.skip("never")
        elif move == "abandon":
            ledger.settle("abandoned", count=ledger.pending)
        elif ledger.pending:
            ledger.settle(move, "why")  # type: ignore[arg-type]
        assert balanced(ledger.counts())


def test_a_turn_that_comes_while_the_lock_is_held_wakes_the_worker_too() -> None:
    woken: list[int] = []
    inbox = Inbox(max_items=10, max_bytes=1000, wake=lambda: woken.append(1), feedback=Feedback())
    item = Queued(turn(), None, 1)

    def submit_meanwhile(*_: object) -> Counts:
        thread = threading.Thread(target=inbox.put, args=(item,))
        thread.start()
        thread.join()
        return real()

    real = inbox._ledger.counts
    inbox._ledger.counts = submit_meanwhile  # type: ignore[method-assign]
    assert inbox.counts().pending == 0
    assert woken == [1]
    inbox._ledger.counts = real  # type: ignore[method-assign]
    assert inbox.counts().pending == 1
    assert inbox.take(5) == [item]
    assert inbox.sleep()
    inbox.put(item)
    assert woken == [1, 1]


class Weighed:
    """A draft that notes which threads have asked for its size."""

    id, trace = "weighed", None

    def __init__(self, size: int = 1) -> None:
        self.bytes = size
        self.threads: list[threading.Thread] = []

    @property
    def size(self) -> int:
        self.threads.append(threading.current_thread())
        return self.bytes

    def build(self) -> Record:
        return turn()


def awake(*, max_bytes: int = 1000) -> Inbox:
    """An inbox whose worker was woken and will look in again by itself."""
    inbox = Inbox(max_items=100, max_bytes=max_bytes, wake=lambda: None, feedback=Feedback())
    inbox.put(Queued(turn(), None, 1))
    assert inbox.take(1)
    return inbox


def test_a_turn_wakes_a_sleeping_worker_and_leaves_it_to_weigh() -> None:
    woken: list[int] = []
    inbox = Inbox(max_items=10, max_bytes=1000, wake=lambda: woken.append(1), feedback=Feedback())
    drafts = [Weighed(), Weighed()]
    for draft in drafts:
        inbox.put(Queued(draft, None))
    assert (woken, [draft.threads for draft in drafts]) == ([1], [[], []])  # once for both
    assert len(inbox.take(2)) == 2
    assert inbox.sleep()
    inbox.put(Queued(Weighed(), None))
    assert (len(woken), inbox.sleep()) == (2, False)


def test_an_exception_while_the_worker_is_woken_leaves_it_to_be_woken_by_the_next_turn() -> None:
    woken: list[int] = []

    def wake() -> None:
        woken.append(1)
        if len(woken) == 1:
            raise KeyboardInterrupt

    inbox = Inbox(max_items=10, max_bytes=1000, wake=wake, feedback=Feedback())
    with pytest.raises(KeyboardInterrupt):
        inbox.put(Queued(Weighed(), None))
    inbox.put(Queued(Weighed(), None))
    assert (len(woken), len(inbox.take(2))) == (2, 2)


def test_the_worker_weighs_turns_so_that_submitting_threads_need_not() -> None:
    inbox, drafts = awake(), [Weighed() for _ in range(96)]
    for draft in drafts:
        inbox.put(Queued(draft, None))
    left = [draft for draft in drafts if not draft.threads]
    assert len(left) == 93  # of a list that grows, one in 32 is looked at
    worker = threading.Thread(target=inbox.take, args=(5,))
    worker.start()
    worker.join()
    assert all(draft.threads == [worker] for draft in left)


def test_large_turns_after_small_ones_are_noticed_before_the_worker_looks_in() -> None:
    inbox = awake(max_bytes=10_000)
    for size in (1, 1000):
        for _ in range(100):
            inbox.put(Queued(Weighed(size), None))
    unweighed = [entry.turn for entry in inbox._entries if isinstance(entry, Queued)]
    large = sum(turn.bytes == 1000 for turn in unweighed if isinstance(turn, Weighed))
    assert inbox.waiting[1] + 1000 * large <= 10_000 + 16 * 1000


def test_turns_that_nobody_looks_at_are_weighed_before_they_grow_many() -> None:
    inbox = awake(max_bytes=50)
    for _ in range(200):
        inbox.put(Queued(Weighed(10), None))
    items, kept = inbox.waiting
    assert items == 5 and kept == 50
    counts = inbox.counts()
    assert (counts.pending, counts.skipped) == (6, {"queue_full": 195})


def test_one_giant_does_not_close_the_queue_to_others() -> None:
    inbox, told = awake(), list[tuple[object, str]]()
    inbox.decided = lambda turn, reason: told.append((turn, reason))
    drafts = [Weighed(size) for size in (10, 2000, 10)]
    for draft in drafts:
        inbox.put(Queued(draft, None))
    assert inbox.counts().skipped == {"queue_full": 1}
    assert inbox.waiting == (2, 20)
    assert told == [(drafts[1], "queue_full")]
    assert not inbox.full


def test_a_full_queue_takes_turns_again_once_some_were_taken() -> None:
    inbox = awake(max_bytes=100)
    for _ in range(3):
        inbox.put(Queued(Weighed(40), None))
    inbox.counts()
    assert inbox.full
    assert len(inbox.take(1)) == 1
    inbox.put(Queued(Weighed(40), None))
    inbox.counts()
    assert inbox.waiting == (2, 80) and not inbox.full


def test_turns_that_are_put_back_come_first_and_in_order_unless_they_were_given_up() -> None:
    inbox = Inbox(max_items=10, max_bytes=10**9, wake=lambda: None, feedback=Feedback())
    for name in "abc":
        inbox.put(Queued(turn(name), None))
    assert inbox.counts().pending == 3
    before = inbox.waiting
    inbox.put_back(inbox.take(2))
    assert inbox.waiting == before
    taken = inbox.take(2)
    assert [item.turn.id for item in taken] == ["a", "b"]
    assert inbox.abandon() == 3
    assert inbox.waiting == (0, 0)
    inbox.put_back(taken)
    assert inbox.waiting == (0, 0)


def test_what_cannot_be_weighed_is_counted_and_told() -> None:
    inbox, told = awake(), list[object]()
    inbox.complain = lambda turn, error: told.extend((turn, type(error)))
    inbox.put(Queued("no turn", None))  # type: ignore[arg-type]
    assert inbox.counts().skipped == {"unreadable": 1}
    assert told == ["no turn", AttributeError]


@pytest.mark.parametrize(("length", "kept"), [(1_000_000, 9), (1_000, 200)])
def test_turns_that_come_faster_than_they_are_weighed_stay_within_the_bound(length: int, kept: int) -> None:
    refused: list[object] = []
    inbox = Inbox(max_items=10**6, max_bytes=10_000_000, wake=lambda: None, feedback=Feedback())
    inbox.decided = lambda turn, reason: refused.append(turn)
    inbox.put(Queued(Record(question="q", answer="a" * 1_000_000), None))
    assert len(inbox.take(1)) == 1  # the worker is awake, and what turns weigh is known
    weighing, weighed = threading.Event(), threading.Event()

    def worker() -> None:
        with inbox._lock:
            weighing.set()
            weighed.wait(120)

    thread = threading.Thread(target=worker)
    thread.start()
    weighing.wait(120)
    for number in range(200):
        inbox.put(Queued(Record(question="q", answer=f"{number:03d}" + "a" * length), None))
    at_once = len(refused)
    weighed.set()
    thread.join()
    counts = inbox.counts()
    assert at_once == 200 - kept
    assert (counts.accepted - 1, len(refused), counts.skipped.get("queue_full", 0)) == (
        kept,
        200 - kept,
        200 - kept,
    )
    assert balanced(counts)


class Struck(BaseException):
    """Raised out of a signal handler, as SystemExit would be."""


def test_it_balances_wherever_a_handler_raises() -> None:
    """A handler runs where a function of Python begins; here one raises at each of them in turn."""
    left = 0

    def raise_at_the_last(frame: FrameType, event: str, argument: object) -> None:
        nonlocal left
        left -= event == "call"
        if not left:
            sys.setprofile(None)
            raise Struck

    def work(inbox: Inbox) -> None:
        # Each state and reason for the first time, once.
        inbox.skip("sampled_out")
        for _ in range(5):
            inbox.put(Queued(turn(), None))  # one more than there is room for
        inbox.counts()
        inbox.take(1)
        inbox.settle("evaluated")
        inbox.settle("skipped", "throttled")
        inbox.settle("dead", "poison")
        inbox.counts()
        inbox.abandon()

    struck = 0
    for number in range(1, 1000):
        inbox = Inbox(max_items=4, max_bytes=10**9, wake=lambda: None, feedback=Feedback())
        left = number
        sys.setprofile(raise_at_the_last)
        try:
            work(inbox)
        except Struck:
            struck += 1
            assert balanced(inbox.counts()), (number, inbox.counts())
        finally:
            sys.setprofile(None)
    assert 50 < struck < 999


def test_a_monitor_that_is_being_closed_says_so_also_while_its_queue_is_full() -> None:
    judge = SlowJudge(yes, seconds=3600)
    monitor = Monitor(metrics=FAITHFUL, judge=judge, sinks=[], max_queue=1, concurrency=1)
    monitor.submit(turn())
    until(lambda: judge.running)
    while not monitor.stats().skipped:
        monitor.submit(turn())
    full = monitor.stats().skipped
    assert set(full) == {"queue_full"}
    closing = threading.Thread(target=monitor.close, args=(20,))
    closing.start()

    def says_closed() -> bool:
        monitor.submit(turn())
        return "closed" in monitor.stats().skipped

    until(says_closed, seconds=15)
    monitor.close(0)
    closing.join(60)


@pytest.mark.faults
def test_close_without_time_waits_for_no_turn() -> None:
    judge = SlowJudge(yes, seconds=3600)
    monitor = Monitor(metrics=FAITHFUL, judge=judge, sinks=[], exit_timeout=3600)
    monitor.submit(turn())
    until(lambda: judge.running)
    closing = threading.Thread(target=monitor.close, args=(0,), daemon=True)
    closing.start()
    closing.join(60)
    assert not closing.is_alive() and monitor.stats().abandoned == 1
