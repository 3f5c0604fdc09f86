"""A queue on a real NATS server: what happens when it, or a process that uses it, fails."""

from __future__ import annotations

import asyncio
import random
from dataclasses import replace
from pathlib import Path

import pytest
from nats.js import JetStreamContext

from online.helpers import FAITHFUL, check_law, finish, kind_judge, turn
from online.queue.nats import counted, lease, lease_one, on_server, open_at, queue_at, result, selected
from servers import NatsServer, new_name
from steelyard.online import Monitor, SpoolSettings
from steelyard.online.queue._open import open_queue, try_queue
from steelyard.online.queue._turns import Leased, Undelivered
from steelyard.online.queue.broker._broker import BrokerAddress
from steelyard.online.queue.broker._queue import BrokerQueue
from steelyard.record import Context
from steelyard.scores import Evaluation, Score
from steelyard.testing import MemorySink
from waiting import until

CHINESE = [chr(number) for number in range(0x4E00, 0x9000)]
"""Characters that are three bytes each, and by chance cannot be compressed below one MiB for a large turn."""


def test_one_process_puts_turns_in_and_another_one_judges_them(nats_server: NatsServer) -> None:
    url, sink = nats_server.queue(), MemorySink()
    application = Monitor(
        metrics=FAITHFUL, judge=kind_judge(), sinks=[], spool=SpoolSettings(path=url, evaluate=False)
    )
    worker = Monitor(metrics=FAITHFUL, judge=kind_judge(), sinks=[sink], spool=url)
    worker.start()
    finish(application, (turn(str(number)) for number in range(40)))
    assert application.stats().spooled == 40
    check_law(application.stats())
    until(lambda: worker.stats().sinks["memory"].written == 40)
    assert {one.record_id for one in sink.evaluations} == {str(number) for number in range(40)}
    assert application.close() == worker.close() == 0


async def test_a_turn_of_a_process_that_died_comes_again_and_its_result_if_there_was_one(
    nats_server: NatsServer,
) -> None:
    url = nats_server.queue()
    async with open_at(url, lease_seconds=0.5) as dying, open_at(url) as other:
        await dying.put([selected("judged"), selected("begun")])
        judged, begun = await lease(dying, 2)
        assert isinstance(judged, Leased)
        assert await dying.finish(judged, result(judged)) is not None
        await dying.close()  # without `release`: as if it had been killed
        found = await lease(other, 2)
        left = {type(one): one for one in found}
        again, back = left[Leased], left[Undelivered]
        assert isinstance(back, Undelivered)
        assert back.evaluation == result(judged)
        assert isinstance(again, Leased)
        assert again.turn == selected("begun")
        await other.delivered([back])
        counts = await counted(other, lambda counts: counts.evaluated == 1)
        assert (counts.accepted, counts.pending) == (2, 1)


async def test_a_result_that_was_left_comes_with_the_record_of_its_turn_or_its_own(
    nats_server: NatsServer,
) -> None:
    url = nats_server.queue()
    async with open_at(url, lease_seconds=0.5) as dying, open_at(url) as other:
        await dying.put([selected(name) for name in ("the same", "another", "none")])
        made: dict[str, Evaluation] = {}
        for one in await lease(dying, 3):
            assert isinstance(one, Leased)
            name, record = one.turn.record.id, one.turn.record
            changed = {"the same": record, "another": record.replace(answer="masked"), "none": None}
            made[name] = replace(result(one), record=changed[name])
            assert await dying.finish(one, made[name]) is not None
        await dying.close()
        found = await lease(other, 3)
        assert {
            one.evaluation.record_id: one.evaluation for one in found if isinstance(one, Undelivered)
        } == made


async def test_turns_that_came_ahead_of_time_are_renewed_and_given_back_at_the_end(
    nats_server: NatsServer,
) -> None:
    url = nats_server.queue()
    async with open_at(url, lease_seconds=3) as busy, open_at(url) as idle:
        names = {f"turn-{number}" for number in range(10)}
        await busy.put([selected(name) for name in names])
        held = await lease(busy, 8)  # and two more come, a quarter of eight
        for _ in range(8):
            await busy.renew(held)
            assert await idle.lease(8) == []  # each waits half a second
        await busy.release([one for one in held if isinstance(one, Leased)])
        found = await lease(idle, 10)
        assert {one.turn.record.id for one in found if isinstance(one, Leased)} == names


async def test_two_holders_of_a_turn_give_one_result(nats_server: NatsServer) -> None:
    url = nats_server.queue()
    async with open_at(url, lease_seconds=0.5) as slow, open_at(url) as quick:
        await slow.put([selected("a")])
        first, second = await lease_one(slow), await lease_one(quick)
        assert await quick.finish(second, result(second)) is not None
        other = replace(result(first), duration=1.0)
        assert await slow.finish(first, other) is None


async def test_a_lease_that_is_renewed_holds(nats_server: NatsServer) -> None:
    url = nats_server.queue()
    async with open_at(url, lease_seconds=1.5) as slow, open_at(url) as idle:
        await slow.put([selected("a")])
        leased = await lease_one(slow)
        for _ in range(6):
            await slow.renew([leased])
            assert await idle.lease(1) == []  # each waits half a second
        assert await slow.finish(leased, result(leased)) is not None


async def test_a_turn_that_ends_every_process_is_a_dead_letter_with_its_cause(
    nats_server: NatsServer,
) -> None:
    url = nats_server.queue()
    async with open_at(url, lease_seconds=0.2) as queue:
        await queue.put([selected("a")])
        for _ in range(5):
            dying = queue_at(url)
            await dying.open()
            await lease_one(dying)
            await dying.close()
        counts = queue.counts()
        while not (counts and counts.dead):
            await queue.lease(1)
            counts = queue.counts()
        assert (counts.dead, counts.pending) == ({"poison": 1}, 0)

    async def read(streams: JetStreamContext) -> None:
        name = url.rpartition("=")[2]
        letter = await streams.get_last_msg(f"{name}-dead", f"{name}.dead.poison")
        assert letter.headers is not None
        assert (letter.headers["Steelyard-Cause"], letter.headers["Steelyard-Attempts"]) == (
            "poison",
            "6",
        )
        assert b"polonium" in (letter.data or b"")

    await on_server(url, read)


async def test_a_turn_may_be_postponed_and_released_more_often_than_it_may_fail(
    nats_server: NatsServer,
) -> None:
    async with open_at(nats_server.queue()) as queue:
        await queue.put([selected("a")])
        for number in range(8):
            leased = await lease_one(queue)
            assert leased.postponed == number
            assert await queue.postpone(leased, 0)
            await queue.release([await lease_one(queue)])
        assert (await lease_one(queue)).postponed == 8


async def test_a_turn_that_two_workers_have_finished_counts_once(nats_server: NatsServer) -> None:
    url = nats_server.queue()
    async with open_at(url, lease_seconds=1) as slow, open_at(url) as quick:
        await slow.put([selected("a"), selected("b")])
        held = await lease_one(slow, 1)
        waiting = await lease_one(quick, 1)
        again = await lease_one(quick)  # the lease of the slow one has ended
        assert again.turn == held.turn
        for queue, leased in ((quick, again), (slow, held)):
            done = await queue.finish(leased, result(leased))
            await queue.delivered([done] if done else [])
        counts = await counted(slow, lambda to: (to.accepted, to.pending, to.evaluated) == (2, 1, 1))
        assert not counts.dead
        await quick.release([waiting])


async def test_what_others_put_into_the_stream_or_take_out_of_it_is_counted(nats_server: NatsServer) -> None:
    url = nats_server.queue()
    name = url.rpartition("=")[2]
    async with open_at(url) as queue:
        await on_server(url, lambda streams: streams.publish(f"{name}.turns", b"x" * 100))
        await on_server(url, lambda streams: streams.publish(f"{name}.turns", b'{"record": 5}'))
        await queue.put([selected("a"), selected("b")])
        assert [one.turn.record.id for one in await lease(queue, 2) if isinstance(one, Leased)] == ["a", "b"]
        counts = await counted(queue, lambda counts: counts.accepted == 4)
        assert (counts.dead, counts.pending) == ({"unreadable": 2}, 2)
        await on_server(url, lambda streams: streams.purge_stream(f"{name}-turns"))
        counts = await counted(queue, lambda counts: counts.pending == 0)
        assert counts.dead == {"unreadable": 2, "removed": 2}


async def test_a_full_stream_and_a_turn_that_is_too_large_are_skipped_for_their_size(
    nats_server: NatsServer, caplog: pytest.LogCaptureFixture
) -> None:
    async with open_at(nats_server.queue()) as queue:
        noise = random.Random(1).choices(CHINESE, k=40_000 * 25)
        texts = ["".join(noise[start : start + 40_000]) for start in range(0, len(noise), 40_000)]
        contexts = tuple(Context(text=text) for text in texts)
        outcome = await queue.put([selected("huge", contexts=contexts), selected("small")])
        assert outcome == ["full", "new"]
        half = contexts[:5]
        outcome = await queue.put([selected(f"half {number}", contexts=half) for number in range(4)])
        assert outcome.count("full") in {2, 3}
        there = 1 + outcome.count("new")
        await counted(queue, lambda to: to.bytes > 400_000 and to.accepted == to.pending == there)
    assert "refuses turns" in caplog.text


async def test_a_stream_that_is_there_is_used_as_it_is_or_refused_by_name(nats_server: NatsServer) -> None:
    older, foreign, doubling = new_name(), new_name(), new_name()

    async def prepare(streams: JetStreamContext) -> None:
        await streams.add_stream(
            name=f"{older}-turns",
            subjects=[f"{older}.turns"],
            retention="workqueue",
            discard="new",
            storage="file",
            max_bytes=5000,
        )
        await streams.add_stream(name=f"{foreign}-turns", subjects=[f"{foreign}.turns"], storage="file")

    await on_server(nats_server.url, prepare)
    async with open_at(f"{nats_server.url}?queue={older}") as queue:
        outcome = await queue.put([selected(str(number), answer="x" * 1000) for number in range(8)])
        assert outcome.count("full") > 3
        await queue.close()
        with pytest.raises(Exception, match=rf"{foreign}-turns.*retention 'limits'.*'workqueue'"):
            await try_queue(SpoolSettings(path=f"{nats_server.url}?queue={foreign}"))
        queue = queue_at(f"{nats_server.url}?queue={doubling}")
        await queue.open()

    async def spoil(streams: JetStreamContext) -> None:
        await streams.delete_consumer(f"{doubling}-turns", "workers")
        await streams.add_consumer(
            f"{doubling}-turns", durable_name="workers", ack_policy="explicit", max_deliver=2
        )

    await on_server(nats_server.url, spoil)
    with pytest.raises(Exception, match=r"consumer 'workers'.*delete it"):
        await try_queue(SpoolSettings(path=f"{nats_server.url}?queue={doubling}"))


async def test_streams_that_are_deleted_are_made_again(nats_server: NatsServer) -> None:
    url = nats_server.queue()
    async with open_at(url) as queue:

        async def delete(streams: JetStreamContext) -> None:
            for kind in ("turns", "results", "notes", "dead"):
                await streams.delete_stream(f"{url.rpartition('=')[2]}-{kind}")

        await on_server(url, delete)
        assert await queue.put([selected("a")]) == ["new"]
        assert (await lease_one(queue)).turn == selected("a")


def test_a_spool_opened_by_address_needs_no_option(nats_server: NatsServer) -> None:
    queue = open_queue(SpoolSettings(path=nats_server.url))
    assert isinstance(queue, BrokerQueue)


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("redis://127.0.0.1", "nats://, tls://, amqp:// or amqps://"),
        ("nats://", "names no host"),
        ("nats://h?queue=a.b", "queue='a.b'"),
        ("nats://h?replica=3", "no option 'replica'"),
        ("nats://h?replicas=2", "must be 1, 3 or 5"),
        ("nats://[h", "cannot be read as a URL"),
    ],
)
def test_an_address_that_means_nothing_is_refused_at_once(address: str, words: str) -> None:
    with pytest.raises(Exception, match=words.replace("[", r"\[").replace("?", r"\?")):
        SpoolSettings(path=address)


def test_how_a_broker_stores_is_not_an_option_here() -> None:
    with pytest.raises(Exception, match=r"durability is for a spool file"):
        SpoolSettings(path="nats://h", durability="full")


async def test_results_that_do_not_fit_where_they_would_wait_stay_with_their_holder(
    nats_server: NatsServer,
) -> None:
    draw = random.Random(2)

    def large(held: Leased) -> Evaluation:
        said = "".join(draw.choices(CHINESE, k=100_000))
        return replace(result(held), scores=(Score.failed("m", cause="timeout", explanation=said),))

    async with open_at(nats_server.queue()) as queue:
        await queue.put([selected(f"{number}") for number in range(8)])
        held = [one for one in await lease(queue, 8) if isinstance(one, Leased)]
        done = [made for one in held if (made := await queue.finish(one, large(one))) is not None]
        left = await queue.park([(one, ["away"]) for one in done])
        assert len(done) == 8 and 0 < len(left) < 8
        # Whoever comes next has all of them, from one place or the other.
        await queue.release([one for one, _ in left])
        again = await lease(queue, len(left))
        kept = list[Undelivered]()
        async with asyncio.timeout(30):
            while len(kept) + len(left) < 8:
                kept += await queue.parked("away", 8)
        names = [one.turn.record.id if isinstance(one, Leased) else one.evaluation.record_id for one in again]
        assert sorted([*names, *(one.evaluation.record_id for one in kept)]) == [str(n) for n in range(8)]


def test_the_document_says_how_long_things_are_kept() -> None:
    page = Path("docs/reference/queues.md").read_text(encoding="utf-8")
    assert "| dead letters stay | 30 days |" in page and "kept beside it for 7 days" in page


async def test_what_is_kept_and_for_how_long_is_what_the_document_says(nats_server: NatsServer) -> None:
    url = nats_server.queue()
    async with open_at(url):
        pass
    found: dict[str, tuple[object, ...]] = {}

    async def read(streams: JetStreamContext) -> None:
        for kind in ("turns", "undelivered", "results", "notes", "dead"):
            config = (await streams.stream_info(f"{BrokerAddress.of(url).queue}-{kind}")).config
            days = (config.max_age or 0) / 86_400
            found[kind] = config.retention, config.discard, days, config.max_msgs_per_subject

    await on_server(nats_server.url, read)
    for kind in ("turns", "undelivered"):  # nothing is forgotten, and what does not fit is refused
        assert found[kind] == ("workqueue", "new", 0, -1)
    assert found["results"] == found["notes"] == ("limits", "old", 7, 1)
    assert found["dead"] == ("limits", "old", 30, -1)
