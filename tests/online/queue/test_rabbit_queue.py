"""A queue on a real RabbitMQ; what every queue owes is asked of it in test_turn_queue.py."""

from __future__ import annotations

import asyncio
import signal
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import aio_pika
import pytest

from online.queue.nats import in_use, lease, lease_one, result, selected
from servers import RabbitServer, free_port, new_name
from steelyard.errors import ConfigurationError
from steelyard.online import SpoolSettings
from steelyard.online.queue._open import try_queue
from steelyard.online.queue._protocol import QueueFailed
from steelyard.online.queue._turns import Leased
from steelyard.online.queue.broker._amqp import AmqpBroker
from steelyard.online.queue.broker._broker import BrokerAddress
from steelyard.online.queue.broker._queue import BrokerQueue
from steelyard.scores import Evaluation


def queue_at(url: str, *, max_bytes: int = 1024**2, patience: float = 5) -> BrokerQueue:
    address = BrokerAddress.of(url)
    return BrokerQueue(AmqpBroker(address, max_bytes=max_bytes), shown=address.shown, patience=patience)


def open_at(url: str, **options: Any) -> AbstractAsyncContextManager[BrokerQueue]:
    return in_use(queue_at(url, **options))


async def test_a_turn_of_a_process_that_died_comes_again_and_one_that_ends_every_process_is_dead(
    rabbit_server: RabbitServer,
) -> None:
    url = rabbit_server.queue()
    # Each ends without `release`: as if it had been killed.
    async with open_at(url) as first:
        await first.put([selected("a")])
        await lease_one(first, 1)
    for _ in range(4):
        async with open_at(url) as next_one:
            assert (await lease_one(next_one, 1)).turn == selected("a")
    async with open_at(url) as last:
        async with asyncio.timeout(30):
            while not ((counts := last.counts()) and counts.dead):
                assert await last.lease(1) == []
        assert (counts.dead, counts.pending) == ({"poison": 1}, 0)
    connection = await aio_pika.connect(rabbit_server.url)
    channel = await connection.channel()
    letter = await (await channel.get_queue(f"{url.rpartition('=')[2]}.dead")).get()
    assert letter is not None
    assert letter.headers["Steelyard-Cause"] == "poison"
    assert b"polonium" in letter.body
    await connection.close()


@pytest.mark.slow
@pytest.mark.timeout(500)
def test_a_broker_that_is_killed_in_flight_loses_no_turn(tmp_path: Path) -> None:
    if not RabbitServer.there():
        pytest.skip("needs RabbitMQ: apt-get install rabbitmq-server")
    server = RabbitServer(tmp_path).start()

    async def test() -> None:
        async with open_at(server.queue(), patience=300) as queue:
            await queue.put([selected("judged"), selected("held"), selected("waiting")])
            judged, _held = [await lease_one(queue, 1) for _ in range(2)]
            done = await queue.finish(judged, result(judged))
            assert done is not None
            server.stop(signal.SIGKILL)
            starting = asyncio.get_running_loop().run_in_executor(None, server.start)
            assert await queue.put([selected("later"), selected("held")]) == ["new", "known"]
            await queue.delivered([done])  # too late: its connection has ended
            await starting
            left = {"judged", "held", "waiting", "later"}
            while left:
                again = await lease_one(queue, 1)
                left.remove(again.turn.record.id)  # each comes once
                done = await queue.finish(again, result(again))
                assert done is not None
                await queue.delivered([done])
            assert await queue.lease(1) == []

    try:
        asyncio.run(test())
    finally:
        server.stop(signal.SIGKILL)


async def test_what_was_leased_over_a_lost_connection_does_not_count(rabbit_server: RabbitServer) -> None:
    """Whether it was handed out, or waits as one of the quarter that came ahead."""
    names = {f"{number}" for number in range(5)}
    async with open_at(rabbit_server.queue()) as queue:
        await queue.put([selected(name) for name in names])
        before = [one for one in await lease(queue, 4, most=4) if isinstance(one, Leased)]
        await queue._broker.close()  # as after a break
        assert await queue.put([selected("later")]) == ["new"]
        assert not any([await queue.finish(one, result(one)) for one in before])
        left = names | {"later"}
        while left:
            again = await lease_one(queue, 1)
            left.remove(again.turn.record.id)
            done = await queue.finish(again, result(again))
            assert done is not None
            await queue.delivered([done])


async def test_results_that_are_being_kept_when_a_worker_stops_are_kept_once(
    rabbit_server: RabbitServer,
) -> None:
    async with open_at(rabbit_server.queue()) as queue:
        names = [f"{number:02}" for number in range(12)]
        await queue.put([selected(name) for name in names])
        for steps, one in enumerate(await lease(queue, 12, most=12)):
            assert isinstance(one, Leased)
            done = await queue.finish(one, Evaluation(record_id=one.turn.record.id, scores=()))
            assert done is not None
            keeping = asyncio.create_task(queue.park([(done, {"away"})]))
            for _ in range(2 * steps):
                await asyncio.sleep(0)
            keeping.cancel()
            await asyncio.gather(keeping, return_exceptions=True)
            await queue.park([(done, {"away"})])  # as for all that is held at the end
        await queue.watch(["away"])
        found: list[str] = []
        while again := await queue.parked("away", 20):
            found += [one.evaluation.record_id for one in again]
        assert sorted(found) == names


async def test_a_consumer_that_the_broker_ends_is_made_anew(rabbit_server: RabbitServer) -> None:
    """As it does where a queue is deleted, and another process has made it again before this one looks."""
    url = rabbit_server.queue()
    name = f"{url.rpartition('=')[2]}.turns"
    async with open_at(url) as queue:
        await queue.put([selected("before")])
        await lease_one(queue)
        connection = await aio_pika.connect(rabbit_server.url)
        channel = await connection.channel()
        await (await channel.get_queue(name)).delete(if_unused=False, if_empty=False)
        await asyncio.sleep(0.05)
        await channel.declare_queue(name, durable=True, arguments={"x-queue-type": "quorum"})
        await connection.close()
        assert await queue.put([selected("after")]) == ["new"]
        assert (await lease_one(queue)).turn == selected("after")


async def test_a_postponed_turn_waits_in_the_broker_and_comes_back(rabbit_server: RabbitServer) -> None:
    async with open_at(rabbit_server.queue()) as queue:
        await queue.put([selected("a")])
        assert await queue.postpone(await lease_one(queue, 1), 4.5)
        assert await queue.lease(1) == []
        again = await lease_one(queue, 1)
        assert (again.turn, again.postponed) == (selected("a"), 1)


async def test_a_full_queue_refuses_turns_for_their_size(
    rabbit_server: RabbitServer, caplog: pytest.LogCaptureFixture
) -> None:
    async with open_at(rabbit_server.queue(), max_bytes=5000) as queue:
        outcomes: list[str] = []
        for number in range(20):
            outcomes += await queue.put([selected(str(number), answer="x" * 1000)])
        assert "new" in outcomes
        assert outcomes.count("full") > 10
    assert "the queue is full" in caplog.text


async def test_a_queue_of_another_kind_is_refused_by_name_and_other_bounds_are_left_as_they_are(
    rabbit_server: RabbitServer,
) -> None:
    classic, bounded = new_name(), new_name()
    connection = await aio_pika.connect(rabbit_server.url)
    channel = await connection.channel()
    await channel.declare_queue(f"{classic}.turns", durable=True)
    await channel.declare_queue(
        f"{bounded}.turns", durable=True, arguments={"x-queue-type": "quorum", "x-max-length": 7}
    )
    await connection.close()
    with pytest.raises(ConfigurationError, match=rf"{classic}.turns.*not a quorum queue"):
        await try_queue(SpoolSettings(path=f"{rabbit_server.url}/?queue={classic}"))
    async with open_at(f"{rabbit_server.url}/?queue={bounded}") as queue:
        assert await queue.put([selected("a")]) == ["new"]


def test_wrong_credentials_and_a_broker_that_is_not_there_are_named(rabbit_server: RabbitServer) -> None:
    wrong = rabbit_server.url.replace("guest:guest", "guest:hidden-word")
    with pytest.raises(ConfigurationError, match=r"refuses the credentials") as refused:
        asyncio.run(try_queue(SpoolSettings(path=wrong)))
    with pytest.raises(QueueFailed, match=r"cannot be reached") as away:
        asyncio.run(try_queue(SpoolSettings(path=f"amqp://me:hidden-word@127.0.0.1:{free_port()}")))
    assert "hidden-word" not in f"{refused.value} {away.value}"
