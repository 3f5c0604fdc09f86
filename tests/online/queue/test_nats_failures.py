"""A queue on a real NATS server that is killed, forgets, hangs, stays away or refuses."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import os
import shutil
import signal
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest
from nats.aio.client import Client
from nats.js import JetStreamContext

from online.helpers import FAITHFUL, finish, kind_judge, turn
from online.queue.nats import counted, lease, lease_one, on_server, open_at, queue_at, result, selected
from servers import NatsServer, free_port
from steelyard.online import Monitor, SpoolSettings
from steelyard.online.queue._open import try_queue
from steelyard.online.queue._protocol import QueueFailed, TurnQueue
from steelyard.online.queue._turns import Leased, Undelivered
from steelyard.online.queue.broker._broker import BrokerAddress, Outgoing, Unreachable
from steelyard.online.queue.broker._nats import NatsBroker


@pytest.fixture
def own_server(tmp_path: Path) -> Iterator[NatsServer]:
    """A server that a test may stop."""
    server = NatsServer(tmp_path).start()
    yield server
    server.stop(signal.SIGKILL)


def halt(server: NatsServer) -> None:
    assert server.process is not None
    server.process.send_signal(signal.SIGSTOP)
    os.waitid(os.P_PID, server.process.pid, os.WSTOPPED)


def restart_forgetful(server: NatsServer, name: str) -> None:
    """Kill a server and start it again as if it had not written down what it delivered just before."""
    server.stop(signal.SIGKILL)
    for state in server.folder.glob(f"**/{name}-turns/obs/workers/o.dat"):
        state.unlink()
    server.start()


async def test_a_server_that_is_restarted_loses_no_turn(own_server: NatsServer) -> None:
    async with open_at(own_server.queue()) as queue:
        await queue.put([selected("before"), selected("held")])
        before, held = await lease(queue, 2)
        assert isinstance(before, Leased)
        assert isinstance(held, Leased)
        done = await queue.finish(before, result(before))
        own_server.stop(signal.SIGKILL)
        starting = asyncio.get_running_loop().run_in_executor(None, own_server.start)
        assert await queue.put([selected("after"), selected("after")]) == ["new", "known"]
        assert await queue.finish(held, result(held)) is not None
        assert done is not None
        await queue.delivered([done])
        found = await lease(queue)  # and nothing of what it has held
        assert [one.turn for one in found if isinstance(one, Leased)] == [selected("after")]
        await starting
        await counted(queue, lambda counts: counts.accepted == 3 and counts.evaluated == 2)


async def test_turns_that_are_held_come_to_nobody_else_when_the_server_was_killed(
    own_server: NatsServer,
) -> None:
    url = own_server.queue()
    name = url.rpartition("=")[2]
    async with open_at(url) as holder, open_at(url) as other:
        await holder.put([selected("judged"), selected("begun"), selected("elsewhere")])
        judged, begun = await lease_one(holder, 1), await lease_one(holder, 1)
        elsewhere = await lease_one(other)
        done = await holder.finish(judged, result(judged))
        assert done is not None
        restart_forgetful(own_server, name)
        # The server knows nothing of this delivery, and does not answer.
        await holder.delivered([done])
        assert await other.put([selected("after")]) == ["new"]
        came: list[Leased | Undelivered] = []
        notes: list[int] = []

        async def count(streams: JetStreamContext) -> None:
            notes.append((await streams.stream_info(f"{name}-notes")).state.last_seq)

        async with asyncio.timeout(25):  # a turn in doubt is given back for half a minute
            while not came or notes[-1] < 2:
                came += await other.lease(8)
                await on_server(url, count)
        assert [one.turn for one in came if isinstance(one, Leased)] == [selected("after")]
        assert len(came) == 1
        again = await holder.finish(begun, result(begun))
        assert again is not None
        await holder.delivered([again])
        assert await other.finish(elsewhere, result(elsewhere)) is not None
        counts = await counted(other, lambda counts: counts.evaluated == 3 and counts.undelivered == 1)
        assert (counts.accepted, counts.pending, counts.dead) == (4, 1, {})


async def test_a_turn_whose_holder_died_with_the_server_comes_again_after_a_while(
    own_server: NatsServer,
) -> None:
    url = own_server.queue()
    async with open_at(url, lease_seconds=2) as dying, open_at(url) as other:
        await dying.put([selected("lost"), selected("held")])
        await lease_one(dying, 1)
        held = await lease_one(other)
        await dying.close()  # without `release`: as if it had been killed
        restart_forgetful(own_server, url.rpartition("=")[2])
        again = await lease_one(other)
        assert (again.turn, again.postponed) == (selected("lost"), 0)
        assert await other.finish(held, result(held)) is not None


async def test_a_turn_that_is_through_is_not_judged_again_when_the_server_forgot_it(
    own_server: NatsServer,
) -> None:
    url = own_server.queue()
    async with open_at(url) as queue:
        await queue.put([selected("first"), selected("second")])
        first, second = await lease(queue, 2)
        assert isinstance(first, Leased)
        done = await queue.finish(first, result(first))
        assert done is not None
        restart_forgetful(own_server, url.rpartition("=")[2])
        await queue.delivered([done])
        assert await queue.put([selected("after")]) == ["new"]
        [after] = await lease(queue)
        assert isinstance(after, Leased)
        assert after.turn == selected("after")
        counts = await counted(queue, lambda counts: counts.undelivered == 0)
        assert (counts.accepted, counts.evaluated, counts.pending, counts.dead) == (3, 1, 2, {})
        assert isinstance(second, Leased)
        await queue.release([second, after])


@pytest.mark.parametrize("gone", [(), ("turns",), ("turns", "results", "notes", "undelivered", "dead")])
async def test_turns_after_a_loss_are_not_taken_for_those_before(
    gone: tuple[str, ...], own_server: NatsServer
) -> None:
    """Of the disk, or of streams: what is made anew begins anew with its numbers."""
    url = own_server.queue()
    after = [selected("one"), selected("two"), selected("three")]

    async def delete(streams: JetStreamContext) -> None:
        for kind in gone:
            await streams.delete_stream(f"{url.rpartition('=')[2]}-{kind}")

    async with open_at(url, lease_seconds=2) as dying, open_at(url, lease_seconds=2) as other:
        await dying.put([selected("through"), selected("finished"), selected("held")])
        through, finished, held = [one for one in await lease(dying, 3) if isinstance(one, Leased)]
        done = await dying.finish(through, result(through))
        assert done is not None
        await dying.delivered([done])
        left = await dying.finish(finished, result(finished))
        if gone:
            await on_server(url, delete)
        else:
            own_server.stop(signal.SIGKILL)
            shutil.rmtree(own_server.folder / "jetstream")
            own_server.start()
        assert await other.put(after) == ["new"] * 3
        came = await lease(dying, 3)
        assert [one.turn for one in came if isinstance(one, Leased)] == after
        await dying.watch(["jsonl:results.jsonl"])  # by what the broker counts it is noticed, too
        late = await dying.finish(held, result(held))
        await dying.delivered([one for one in (left, late) if one is not None])
        await dying.close()  # without `release`: as if it had been killed
        again = await lease(other, 3)
        assert [one.turn for one in again if isinstance(one, Leased)] == after


async def test_whoever_comes_while_it_is_connected_anew_is_told_so(
    nats_server: NatsServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker = NatsBroker(BrokerAddress.of(nats_server.queue()), max_bytes=1024**2, lease_seconds=60.0)
    await broker.connect()
    reached = asyncio.Event()

    async def slowly(*_: object, **__: object) -> None:
        reached.set()
        await asyncio.Event().wait()

    monkeypatch.setattr(Client, "connect", slowly)
    connecting = asyncio.ensure_future(broker.connect())
    await reached.wait()
    with pytest.raises(Unreachable):
        await broker.publish([Outgoing(key="k", body=b"{}")])
    connecting.cancel()
    await asyncio.gather(connecting, return_exceptions=True)
    await broker.close()


async def test_what_fails_after_its_caller_was_cancelled_is_no_error_of_the_loop(
    nats_server: NatsServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[dict[str, object]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: said.append(context))
    reached, fail = asyncio.Event(), asyncio.Event()

    async def fails(*_: object) -> None:
        reached.set()
        await fail.wait()
        raise Unreachable("it has gone")

    async with open_at(nats_server.queue(), patience=0.0) as queue:
        await queue.put([selected("one")])
        done = await queue.finish(one := await lease_one(queue), result(one))
        assert done is not None
        monkeypatch.setattr(NatsBroker, "acknowledge", fails)
        calling = asyncio.ensure_future(queue.delivered([done]))
        await reached.wait()
        calling.cancel()
        fail.set()
        with pytest.raises(asyncio.CancelledError):
            await calling
    del calling
    gc.collect()
    assert not said


async def test_a_server_that_stays_away_fails_the_queue_by_name_and_once(
    own_server: NatsServer, caplog: pytest.LogCaptureFixture
) -> None:
    async with open_at(own_server.queue(), patience=0.5) as queue:
        own_server.stop()
        with pytest.raises(QueueFailed):
            await queue.put([selected("a")])
        await asyncio.wait_for(queue.failed(), 1)
        assert not queue.works
        assert queue.counts() is None
        for _ in range(3):  # as the worker does for as long as it takes
            with pytest.raises(QueueFailed):
                await queue.open()
        own_server.start()
        await queue.open()
        assert await queue.put([selected("a")]) == ["new"]
    problems = [record for record in caplog.records if record.name == "steelyard.online"]
    assert [record.levelno for record in problems] == [logging.ERROR, logging.WARNING]
    assert f"127.0.0.1:{own_server.port}" in problems[0].getMessage()


async def test_a_server_that_hangs_is_waited_for_and_takes_nothing_twice(
    own_server: NatsServer,
) -> None:
    async with open_at(own_server.queue(), patience=30) as queue:
        assert own_server.process is not None
        halt(own_server)
        putting = asyncio.create_task(queue.put([selected("a"), selected("b")]))
        done, _ = await asyncio.wait([putting], timeout=1)
        assert not done
        own_server.process.send_signal(signal.SIGCONT)
        assert await putting == ["new", "new"]
        counts = await counted(queue, lambda counts: counts.accepted == 2)
        assert counts.pending == 2


def test_a_monitor_works_in_memory_until_its_broker_is_there(tmp_path: Path) -> None:
    server = NatsServer(tmp_path)
    monitor = Monitor(metrics=FAITHFUL, judge=kind_judge(), sinks=[], spool=server.url)
    finish(monitor, [turn("early")])
    assert (monitor.stats().evaluated, monitor.stats().spooled) == (1, 0)
    server.start()
    for number in range(600):
        monitor.submit(turn(str(number)))
        monitor.flush(0.05)
        if monitor.stats().spooled:
            break
    assert monitor.stats().spooled
    assert monitor.flush(60) == 0
    monitor.close()
    server.stop()


def test_wrong_credentials_are_named_and_never_shown(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    server = NatsServer(tmp_path, ["--user", "somebody", "--pass", "right-secret"]).start()
    wrong = f"nats://somebody:wrong-secret@127.0.0.1:{server.port}"
    settings = SpoolSettings(path=wrong)
    with pytest.raises(Exception, match=r"refuses the credentials") as caught:
        asyncio.run(try_queue(settings))
    monitor = Monitor(metrics=FAITHFUL, judge=kind_judge(), sinks=[], spool=wrong)
    finish(monitor, [turn()])
    assert monitor.stats().evaluated == 1
    monitor.close()
    right = SpoolSettings(path=wrong.replace("wrong-secret", "right-secret"))
    asyncio.run(try_queue(right))
    shown = f"{caught.value} {settings!r} {right!r} {caplog.text} {BrokerAddress.of(wrong)!r}"
    assert "refuses the credentials" in caplog.text
    assert "secret" not in shown
    server.stop()


def test_a_server_that_is_not_there_is_worth_waiting_for() -> None:
    with pytest.raises(QueueFailed, match=r"cannot be reached"):
        asyncio.run(try_queue(SpoolSettings(path=f"nats://127.0.0.1:{free_port()}")))


def test_a_server_without_jetstream_is_told_with_the_option_that_it_needs(tmp_path: Path) -> None:
    server = NatsServer(tmp_path, jetstream=False).start()
    with pytest.raises(QueueFailed, match=r"nats-server needs the option -js"):
        asyncio.run(try_queue(SpoolSettings(path=server.url)))
    server.stop()


@pytest.mark.parametrize(
    ("waits_at", "call"),
    [
        ("connect", lambda queue: queue.open()),
        ("totals", lambda queue: queue.open()),
        ("publish", lambda queue: queue.put([selected("one")])),
        ("extend", lambda queue: queue.renew([])),
    ],
)
async def test_whoever_is_cancelled_ends_although_the_client_loses_it(
    waits_at: str,
    call: Callable[[TurnQueue], Awaitable[object]],
    nats_server: NatsServer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As `asyncio.wait_for` does before Python 3.12; a closed Monitor would go on judging for ever."""

    queue, reached, whole = queue_at(nats_server.queue()), asyncio.Event(), getattr(NatsBroker, waits_at)
    opens = waits_at in ("connect", "totals")
    if not opens:
        await queue.open()

    async def forgetful(broker: NatsBroker, *args: object) -> object:
        reached.set()
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.Event().wait()
        return await whole(broker, *args)

    with monkeypatch.context() as patch:
        patch.setattr(NatsBroker, waits_at, forgetful)
        calling = asyncio.ensure_future(call(queue))
        await reached.wait()
        calling.cancel()
        with pytest.raises(asyncio.CancelledError):
            await calling
    assert queue.works is not opens  # and its connection is closed: a socket left open would warn
    await queue.open()
    await queue.close()


async def test_a_queue_is_settled_once_the_broker_says_that_nothing_is_left(nats_server: NatsServer) -> None:
    async with open_at(nats_server.queue()) as queue:
        assert queue.settled
        await queue.put([selected("one")])
        done = await queue.finish(one := await lease_one(queue), result(one))
        assert done is not None
        await queue.delivered([done])
        assert not queue.settled  # what this process entered says so, and the broker has not been asked since
        await counted(queue, lambda counts: queue.settled and counts.evaluated == 1)
