"""What every TurnQueue owes to the worker, asked of each of them; a broker is one more entry in QUEUES."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from online.helpers import turn
from servers import NatsServer, RabbitServer
from steelyard.online import QueueCounts, SpoolSettings
from steelyard.online.queue._inbox import Inbox
from steelyard.online.queue._open import open_queue
from steelyard.online.queue._protocol import MemoryQueue, TurnQueue
from steelyard.online.queue._sqlite import SQLiteQueue
from steelyard.online.queue._turns import Feedback, Leased, Queued, Selected, Undelivered
from steelyard.online.queue.broker._queue import BrokerQueue
from steelyard.scores import Evaluation


def memory(request: pytest.FixtureRequest) -> TurnQueue:
    inbox = Inbox(max_items=100, max_bytes=10**6, wake=lambda: None, feedback=Feedback())
    for _ in range(100):
        inbox.put(Queued(turn(), None, 1))
    return MemoryQueue(inbox, capacity=8)


def sqlite(request: pytest.FixtureRequest) -> TurnQueue:
    folder: Path = request.getfixturevalue("tmp_path")
    return open_queue(SpoolSettings(path=folder / "queue.db"))


def nats(request: pytest.FixtureRequest) -> TurnQueue:
    server: NatsServer = request.getfixturevalue("nats_server")
    return open_queue(SpoolSettings(path=server.queue()))


def rabbit(request: pytest.FixtureRequest) -> TurnQueue:
    server: RabbitServer = request.getfixturevalue("rabbit_server")
    return open_queue(SpoolSettings(path=server.queue()))


QUEUES: dict[str, Callable[[pytest.FixtureRequest], TurnQueue]] = {
    "memory": memory,
    "sqlite": sqlite,
    "nats": nats,
    "rabbit": rabbit,
}


@pytest.fixture(params=QUEUES)
def queue(request: pytest.FixtureRequest) -> TurnQueue:
    return QUEUES[request.param](request)


@asynccontextmanager
async def opened(queue: TurnQueue) -> AsyncIterator[None]:
    """A block in which a queue is open; its ledger is checked at the end."""
    await queue.open()
    try:
        yield
        balanced(queue)
    finally:
        await queue.close()


def balanced(queue: TurnQueue) -> QueueCounts:
    counts = queue.counts()
    assert counts is not None
    assert counts.accepted == counts.pending + counts.evaluated + sum(counts.dead.values())
    return counts


async def count_anew(queue: TurnQueue) -> None:
    if isinstance(queue, BrokerQueue):
        await queue.watch(["slow"])


def selected(name: str) -> Selected:
    return Selected(turn(name), 0.25, 0.5)


def result(leased: Leased) -> Evaluation:
    return Evaluation(record_id=leased.turn.record.id, scores=())


async def lease(queue: TurnQueue, most: int = 8) -> list[Leased]:
    found = await queue.lease(most)
    assert all(isinstance(one, Leased) for one in found)
    return [one for one in found if isinstance(one, Leased)]


async def test_what_goes_in_comes_out_in_order_and_is_delivered(queue: TurnQueue) -> None:
    async with opened(queue):
        assert await queue.put([selected("a"), selected("b"), selected("a")]) == ["new", "new", "known"]
        assert balanced(queue).pending == 2
        first, second = await lease(queue)
        assert [first.turn, second.turn] == [selected("a"), selected("b")]
        done = await queue.finish(first, result(first))
        assert isinstance(done, Undelivered)
        assert done.evaluation == result(first)
        counts = balanced(queue)
        assert (counts.evaluated, counts.undelivered, counts.pending) == (1, 1, 1)
        await queue.delivered([done])
        assert balanced(queue).undelivered == 0


async def test_a_turn_has_one_result_only(queue: TurnQueue) -> None:
    async with opened(queue):
        await queue.put([selected("a")])
        [leased] = await lease(queue)
        assert await queue.finish(leased, result(leased)) is not None
        assert await queue.finish(leased, result(leased)) is None
        assert not await queue.dead_letter(leased, "ValueError")
        assert not await queue.postpone(leased, 1)
        assert balanced(queue).evaluated == 1


async def test_a_leased_turn_is_not_leased_again(queue: TurnQueue) -> None:
    async with opened(queue):
        await queue.put([selected("a"), selected("b")])
        [first] = await lease(queue, 1)
        [second] = await lease(queue, 5)
        assert {first.turn.record.id, second.turn.record.id} == {"a", "b"}


async def test_a_dead_turn_is_counted_by_its_cause(queue: TurnQueue) -> None:
    async with opened(queue):
        await queue.put([selected("a"), selected("b")])
        before = balanced(queue)
        for leased in await lease(queue):
            assert await queue.dead_letter(leased, "ValueError")
        counts = balanced(queue)
        assert not before.dead  # counts are those of one moment
        assert (counts.dead, counts.pending) == ({"ValueError": 2}, 0)


async def test_what_is_released_comes_again_first(queue: TurnQueue) -> None:
    async with opened(queue):
        await queue.put([selected("a"), selected("b"), selected("c")])
        held = await lease(queue, 2)
        await queue.release(held)
        assert balanced(queue).pending == 3
        assert [one.turn.record.id for one in await lease(queue)] == ["a", "b", "c"]
        assert await queue.finish(held[0], result(held[0])) is None


@pytest.mark.parametrize("turns", [1, 2, 3])
async def test_what_comes_while_its_asker_is_cancelled_is_given_back(queue: TurnQueue, turns: int) -> None:
    async with opened(queue):
        names = [str(number) for number in range(turns)]
        await queue.put([selected(name) for name in names])
        asking = asyncio.create_task(queue.lease(8))
        await asyncio.sleep(0)  # it has asked, and nobody has answered yet
        asking.cancel()
        held = await asyncio.gather(asking, return_exceptions=True)
        leased = held[0] if isinstance(held[0], list) else []
        await queue.release(leased)
        assert sorted(one.turn.record.id for one in await lease(queue)) == names


@pytest.mark.parametrize("call", ["finish", "postpone", "dead_letter", "delivered", "park"])
async def test_what_a_worker_breaks_off_at_its_end_waits_for_no_lease(queue: TurnQueue, call: str) -> None:
    async def ends(queue: TurnQueue, held: Leased, moment: int) -> Leased | Undelivered:
        """Begins a call, and is cancelled a little later than others."""
        done = await queue.finish(held, result(held)) if call in ("delivered", "park") else None
        calls: dict[str, Callable[[], Coroutine[Any, Any, object]]] = {
            "finish": lambda: queue.finish(held, result(held)),
            "postpone": lambda: queue.postpone(held, 0.01),
            "dead_letter": lambda: queue.dead_letter(held, "ValueError"),
            "delivered": lambda: queue.delivered([done] if done else []),
            "park": lambda: queue.park([(done, ["slow"])] if done else []),
        }
        task = asyncio.create_task(calls[call]())
        for _ in range(moment):
            await asyncio.sleep(0.001 if moment % 2 else 0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        return done or held

    async with opened(queue):
        await queue.put([selected(f"{number}") for number in range(6)])
        held = await lease(queue)
        ended = await asyncio.gather(*(ends(queue, one, moment) for moment, one in enumerate(held)))
        if not queue.durable:
            return  # the process that judged them delivers them
        await queue.release(ended)
        async with asyncio.timeout(30):
            while (counts := balanced(queue)).pending + counts.undelivered:
                for again in await queue.lease(8) + await queue.parked("slow", 8):
                    made = await queue.finish(again, result(again)) if isinstance(again, Leased) else again
                    await queue.delivered([made] if made else [])
                await count_anew(queue)


async def test_a_result_that_is_released_comes_again_if_the_queue_keeps_it(
    queue: TurnQueue, request: pytest.FixtureRequest
) -> None:
    async with opened(queue):
        await queue.put([selected("a")])
        [leased] = await lease(queue)
        done = await queue.finish(leased, result(leased))
        assert done is not None
        # Whoever counts deletes what a crash has left of results, and nothing else.
        for _ in range(2):
            await count_anew(queue)
        await queue.release([done])
        if not queue.durable:
            return  # the process that judged it delivers it
        async with asyncio.timeout(20):
            while not (found := await queue.lease(8)):
                pass
        [again] = found
        # RabbitMQ keeps nothing beside a turn, which is judged again then.
        if request.node.callspec.params["queue"] == "rabbit":
            assert isinstance(again, Leased) and again.turn == leased.turn
            return
        assert isinstance(again, Undelivered)
        assert again.evaluation == result(leased)
        await queue.delivered([again])


async def brought(queue: TurnQueue, sink: str) -> Undelivered:
    """The one result that is kept for a sink, once it is there."""
    async with asyncio.timeout(20):
        while not (found := await queue.parked(sink, 8)):  # noqa: ASYNC110 - brokers have no event for it
            await asyncio.sleep(0.05)
    [one] = found
    return one


async def test_a_result_is_kept_for_each_sink_that_does_not_have_it(queue: TurnQueue) -> None:
    async with opened(queue):
        await queue.put([selected("a")])
        [leased] = await lease(queue)
        done = await queue.finish(leased, result(leased))
        assert done is not None
        assert await queue.parked("slow", 8) == []
        assert await queue.park([(done, {"slow", "away: 1"})]) == []
        if not queue.durable:
            assert await queue.parked("slow", 8) == []
            return
        assert balanced(queue).undelivered == 1
        slow = await brought(queue, "slow")
        assert (slow.evaluation, slow.sink) == (result(leased), "slow")
        assert await queue.parked("slow", 8) == []
        await count_anew(queue)
        assert balanced(queue).pending == 0
        await queue.renew([slow])
        await queue.delivered([slow])
        away = await brought(queue, "away: 1")
        assert await queue.park([(away, {"away: 1"})]) == []
        again = await brought(queue, "away: 1")
        assert again.evaluation == result(leased)
        assert balanced(queue).evaluated == 1
        await queue.delivered([again])
        async with asyncio.timeout(20):
            while balanced(queue).undelivered or balanced(queue).waiting:  # noqa: ASYNC110 - likewise
                await asyncio.sleep(0.05)
        assert await queue.lease(8) == []


async def test_results_that_wait_for_a_sink_are_handed_on_to_another_or_dropped(queue: TurnQueue) -> None:
    async with opened(queue):
        if not isinstance(queue, SQLiteQueue | BrokerQueue):
            return  # nothing waits in memory
        await queue.put([selected(name) for name in "abc"])
        results = [await queue.finish(leased, result(leased)) for leased in await lease(queue)]
        first, second, third = (one for one in results if one is not None)
        # The other way round, so that the number of one among results is that of another among turns.
        # A file may have it for the other already; a broker keeps one for each.
        both = {"old", "new"} if isinstance(queue, SQLiteQueue) else {"old"}
        for one, sinks in ((second, both), (first, {"new"}), (third, {"gone"})):
            assert await queue.park([(one, sinks)]) == []
        assert await queue.move("old", "new") == 1
        assert await queue.move("old", "new") == 0
        assert await queue.move("gone", "") == 1
        found: list[Undelivered] = []
        async with asyncio.timeout(20):
            while len(found) < 2:
                found += await queue.parked("new", 8)
        assert {one.evaluation.record_id for one in found} == {"a", "b"}
        assert balanced(queue).waiting.keys() <= {"new"}
        await queue.delivered(found)
        async with asyncio.timeout(20):
            while balanced(queue).undelivered or balanced(queue).waiting:  # noqa: ASYNC110 - likewise
                await asyncio.sleep(0.05)


async def test_results_that_a_worker_gives_back_meanwhile_are_handed_on_too(queue: TurnQueue) -> None:
    async with opened(queue):
        if not isinstance(queue, BrokerQueue):
            return  # a file moves what is held as well
        await queue.put([selected("a")])
        [leased] = await lease(queue)
        done = await queue.finish(leased, result(leased))
        assert done is not None
        assert await queue.park([(done, {"old"})]) == []
        held = await brought(queue, "old")
        moving = asyncio.create_task(queue.move("old", ""))
        await asyncio.wait([moving], timeout=1)  # it has looked, and found nothing
        assert not moving.done()
        assert await queue.park([(held, {"old"})]) == []
        assert await moving == 1


async def test_dead_letters_are_listed_replayed_and_dropped(queue: TurnQueue) -> None:
    async with opened(queue):
        if not isinstance(queue, SQLiteQueue | BrokerQueue):
            return  # what dies in memory is gone
        assert await queue.dead_letters(lambda letter: "keep", 10) == []
        await queue.put([selected(name) for name in "abc"])
        for leased in await lease(queue):
            assert await queue.dead_letter(
                leased, "KeyError" if leased.turn.record.id == "b" else "ValueError"
            )
        listed = await queue.dead_letters(lambda letter: "keep", 10)
        died_of = [(letter.record_id, letter.cause) for letter in listed]
        assert died_of == [("a", "ValueError"), ("b", "KeyError"), ("c", "ValueError")]
        await queue.dead_letters(lambda letter: "replay" if letter.cause == "KeyError" else "keep", 10)
        [again] = await lease(queue)
        assert again.turn == selected("b")
        done = await queue.finish(again, result(again))
        assert done is not None
        await queue.delivered([done])
        await queue.dead_letters(lambda letter: "drop", 10)
        assert await queue.dead_letters(lambda letter: "keep", 10) == []


async def test_a_renewed_lease_holds(queue: TurnQueue) -> None:
    async with opened(queue):
        assert queue.lease_seconds > 0
        await queue.put([selected("a")])
        held = await lease(queue)
        await queue.renew(held)
        assert await queue.finish(held[0], result(held[0])) is not None


async def test_a_postponed_turn_waits_or_stays_leased(queue: TurnQueue) -> None:
    async with opened(queue):
        await queue.put([selected("a")])
        [leased] = await lease(queue)
        if await queue.postpone(leased, 0):
            [leased] = await lease(queue)
            assert leased.postponed == 1
        assert await queue.finish(leased, result(leased)) is not None


async def test_there_is_room_at_first_and_a_lease_waits_for_a_turn(queue: TurnQueue) -> None:
    async with opened(queue):
        assert 1 <= await queue.room(3) <= 3

        async def first() -> list[Leased]:
            while not (found := await lease(queue)):
                pass
            return found

        waiting = asyncio.create_task(first())
        await asyncio.sleep(0)
        await queue.put([selected("a")])
        async with asyncio.timeout(60):
            assert [one.turn.record.id for one in await waiting] == ["a"]


async def test_a_full_queue_in_memory_has_room_as_soon_as_a_turn_is_judged_whatever_its_sinks_do(
    request: pytest.FixtureRequest,
) -> None:
    queue = memory(request)
    await queue.put([selected(str(number)) for number in range(8)])
    waiting = asyncio.create_task(queue.room(5))
    leased = (await lease(queue))[0]
    await asyncio.sleep(0)
    assert not waiting.done()
    assert await queue.finish(leased, result(leased)) is not None
    async with asyncio.timeout(60):
        assert await waiting == 1
