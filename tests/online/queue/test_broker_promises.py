"""What docs/how-to/many-machines.md says of both brokers, where no other test holds it."""

from __future__ import annotations

import asyncio
import os
import signal
import textwrap
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest

import programs
from online.helpers import check_law, finish, turn
from online.queue.nats import counted, in_use, lease, lease_one, result, selected
from servers import NatsServer, RabbitServer
from steelyard.online import Monitor, SpoolSettings
from steelyard.online.queue._open import StoredQueue, open_queue
from steelyard.online.queue._protocol import TurnQueue
from steelyard.online.queue._turns import Leased
from steelyard.online.queue.broker._broker import BrokerAddress, dead_letter_of
from steelyard.record import Context
from waiting import until


@pytest.fixture(params=["nats", "rabbit"])
def server(request: pytest.FixtureRequest) -> NatsServer | RabbitServer:
    found: NatsServer | RabbitServer = request.getfixturevalue(f"{request.param}_server")
    return found


def opened(url: str) -> AbstractAsyncContextManager[StoredQueue]:
    return in_use(open_queue(SpoolSettings(path=url)))


async def test_queues_of_other_names_on_one_broker_are_apart(server: NatsServer | RabbitServer) -> None:
    async with opened(server.queue()) as one, opened(server.queue()) as other:
        assert await one.put([selected("a")]) == ["new"]
        assert await other.put([selected("a"), selected("b")]) == ["new", "new"]
        assert (await lease_one(one)).turn == selected("a")
        assert len(await lease(other, 2)) == 2


async def test_only_nats_knows_what_another_process_has_put_in(server: NatsServer | RabbitServer) -> None:
    url = server.queue()
    async with opened(url) as first, opened(url) as second:
        assert await first.put([selected("a")]) == ["new"]
        assert await first.put([selected("a")]) == ["known"]
        outcome = await second.put([selected("a")])
        assert outcome == (["known"] if isinstance(server, NatsServer) else ["new"])


@pytest.fixture(params=["file", "nats", "rabbit"])
def stored(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where a queue of the test's own is."""
    if request.param == "file":
        return str(tmp_path / "turns.db")
    found: NatsServer | RabbitServer = request.getfixturevalue(f"{request.param}_server")
    return found.queue()


@pytest.mark.faults
@pytest.mark.parametrize("stored", ["file", "nats"], indirect=True)
def test_a_forked_child_opens_the_spool_for_itself(stored: str) -> None:
    script = f"""
    import os, time, warnings
    warnings.simplefilter("ignore")
    from steelyard.online import Monitor, SpoolSettings
    from steelyard.record import Record
    settings = SpoolSettings(path={stored!r}, evaluate=False)
    monitor = Monitor(metrics=[], sinks=[], spool=settings)
    until = time.monotonic() + 100

    def connect():
        monitor.start()
        while monitor.stats().spool is None and time.monotonic() < until:
            time.sleep(0.02)

    connect()
    monitor.submit(Record(id="parent", question="q"))
    assert monitor.flush(60) == 0
    for name in "abc":
        if os.fork() == 0:
            connect()
            monitor.submit(Record(id=name, question="q"))
            left = monitor.flush(60)
            os._exit(left + (monitor.stats().spooled != 1))
    for _ in "abc":
        assert os.wait()[1] == 0
    monitor.submit(Record(id="parent again", question="q"))
    assert monitor.flush(60) == 0
    while monitor.stats().spool.accepted != 5 and time.monotonic() < until:
        time.sleep(0.02)
    assert (monitor.stats().spooled, monitor.stats().spool.accepted) == (2, 5), monitor.stats()
    """
    done = programs.run(["-c", textwrap.dedent(script)], ours=True, timeout=150)
    assert (done.returncode, done.stderr) == (0, "")


async def test_what_is_just_coming_for_a_sink_when_a_worker_stops_is_the_next_ones_at_once(
    stored: str,
) -> None:
    async def cancelled(queue: TurnQueue, steps: int, sink: str = "away") -> None:
        """Ask, and cancel it after so many steps of the loop."""
        asking = asyncio.create_task(queue.parked(sink, 8))
        for _ in range(steps):
            await asyncio.sleep(0.001 if steps > 20 else 0)
        asking.cancel()
        [found] = await asyncio.gather(asking, return_exceptions=True)
        await queue.park([(one, {"away"}) for one in (found if isinstance(found, list) else [])])

    async with opened(stored) as queue:
        await queue.put([selected("a"), selected("b")])
        held, other = [one for one in await lease(queue, 2) if isinstance(one, Leased)]
        done = await queue.finish(held, result(held))
        assert done is not None
        await cancelled(queue, 200)
        assert await queue.park([(done, {"away"})]) == []
        await queue.watch(["away"])  # so that it is known to be there
        for steps in range(20):
            await cancelled(queue, steps)
            await cancelled(queue, steps, f"never-watched-{steps}")
        # The connection holds what it held before.
        delivered = await queue.finish(other, result(other))
        assert delivered is not None
        await queue.delivered([delivered])
        await queue.release([])
    async with opened(stored) as following:
        async with asyncio.timeout(20):  # a lease is 30 s
            while not (again := await following.parked("away", 8)):  # noqa: ASYNC110 - brokers have no event for it
                await asyncio.sleep(0.05)
        assert [one.evaluation for one in again] == [result(held)]
        await following.delivered(again)
        assert await following.lease(8) == []


async def test_the_first_count_has_what_waits_for_a_sink(stored: str) -> None:
    async with opened(stored) as queue:
        await queue.put([selected("a")])
        held = await lease_one(queue)
        done = await queue.finish(held, result(held))
        assert done is not None
        assert await queue.park([(done, {"away"})]) == []
    following = open_queue(SpoolSettings(path=stored))
    await following.watch(["away"])
    await following.open()
    counts = following.counts()
    assert counts is not None
    assert (counts.undelivered, counts.waiting) == (1, {"away": 1})
    await following.close()


async def test_large_turns_travel_compressed_and_come_back_whole(nats_server: NatsServer) -> None:
    contexts = tuple(
        Context(text=f"Passage {number} of the old stone city. " * 1_000) for number in range(20)
    )

    async with opened(nats_server.queue()) as queue:
        large = selected("large", contexts=contexts)
        assert await queue.put([large]) == ["new"]  # of 780 KB
        assert (await counted(queue, lambda counts: counts.bytes > 0)).bytes < 60_000
        assert (await lease_one(queue)).turn == large


def test_while_a_broker_is_slow_the_inbox_fills_and_turns_are_then_skipped_by_name(
    nats_with: Callable[..., NatsServer],
) -> None:
    server = nats_with()
    settings = SpoolSettings(path=server.queue(), evaluate=False)
    monitor = Monitor(metrics=[], sinks=[], spool=settings, max_queue=10)
    finish(monitor, [turn("first")])
    assert server.process is not None
    server.process.send_signal(signal.SIGSTOP)
    os.waitid(os.P_PID, server.process.pid, os.WSTOPPED)
    for number in range(300):
        monitor.submit(turn(str(number)))
    skipped = monitor.stats().skipped
    # Ten wait; as many may have been taken out to be sent before.
    assert skipped in ({"queue_full": 290}, {"queue_full": 280})
    check_law(monitor.stats())
    server.process.send_signal(signal.SIGCONT)
    until(lambda: monitor.stats().spooled == 301 - skipped["queue_full"])


def test_a_dead_letter_that_somebody_else_put_there_is_shown_as_far_as_it_can_be_read() -> None:
    assert dead_letter_of(b"odd", {"Steelyard-Attempts": "many"}).attempts == 0


def test_an_address_names_a_cluster_and_is_shown_without_its_secrets() -> None:
    written = "tls://user:word@a:4222,b:4223?replicas=3&credentials=/etc/nats.creds&queue=shop"
    address = BrokerAddress.of(written)
    assert address.servers == ("tls://user:word@a:4222", "tls://user:word@b:4223")
    assert (address.queue, address.options["replicas"]) == ("shop", "3")
    assert address.options["credentials"] == "/etc/nats.creds"
    for shown in (address.shown, repr(address), SpoolSettings(path=written).shown):
        assert "word" not in shown and "nats.creds" not in shown and "a:4222" in shown
