"""The five streams of a queue on NATS JetStream, and what is done where they are there already.

| stream | what is in it |
|---|---|
| `NAME-turns` | turns that are pending; a work queue, so that what is acknowledged is gone |
| `NAME-results` | results until they are delivered or parked, by the number of their turn |
| `NAME-undelivered` | results that wait for a sink, by its name; a work queue |
| `NAME-notes` | how often a turn was postponed or given back, by its number |
| `NAME-dead` | dead letters by cause, for 30 days |

The sequence numbers of the turns, the results and the dead letters are the ledger: each turn, result and dead
letter that was ever stored has raised one of them by one.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from datetime import datetime
from typing import Any

from nats.js import JetStreamContext
from nats.js.api import (
    AckPolicy,
    ConsumerConfig,
    DiscardPolicy,
    PubAck,
    RetentionPolicy,
    StorageType,
    StoreCompression,
    StreamConfig,
    StreamInfo,
)
from nats.js.errors import NotFoundError

from steelyard._internal.bounded import BoundedDict
from steelyard.online.queue._protocol import DeadLetter, Decide, QueueCounts
from steelyard.online.queue.broker._broker import Refused, Unreachable, dead_letter_of
from steelyard.online.queue.broker._nats_connection import NatsConnection

CONSUMER = "workers"
_DAY = 24 * 3600.0
_KNOWN_FOR = 120.0
"""Seconds for which the server recognises a turn that is published twice."""
_AT_ONCE = 65_536
"""Messages that all workers together may hold; the server's default of 1,000 would be 40 busy processes."""
_THROUGH = 10_000
_BEYOND = 100
"""By how many turns other processes may have been ahead of this one when the server was killed."""


class Streams:
    """Names of streams, what they are created with, and what they count.

    Args:
        name: The queue's name.
        max_bytes: Bound of what may be pending.
        replicas: On how many servers of a cluster each message is kept.
        lease_seconds: How long a lease holds, where the consumer is created now.
    """

    def __init__(self, name: str, *, max_bytes: int, replicas: int, lease_seconds: float) -> None:
        self.name = name
        self.turns, self.results, self.undelivered, self.notes, self.dead = (
            f"{name}-{kind}" for kind in ("turns", "results", "undelivered", "notes", "dead")
        )
        self._max_bytes = max_bytes
        self._replicas = replicas
        self._lease_seconds = lease_seconds
        self._last_result = 0
        self.made: tuple[datetime | None, datetime | None] = (None, None)
        """When the streams of turns and of results that wait were made, as of the last look."""

    def waiting_for(self, sink: str) -> str:
        return f"{self.name}.undelivered.{sink}"

    async def ensure(self, jetstream: JetStreamContext) -> tuple[float, int]:
        """Create what is missing; leave what is there as it is, unless it cannot work.

        Limits of present streams are the operator's: a process with other options does not change them.

        Returns:
            How long a lease holds, and the number of the latest turn that was put in; 0 where there was none.
        """
        infos: dict[str, StreamInfo] = {}
        for config in self._configs():
            assert config.name is not None
            try:
                found = await jetstream.stream_info(config.name)
            except NotFoundError:
                found = await jetstream.add_stream(config)
            else:
                _check(found.config, config)
            infos[config.name] = found
        self.made = infos[self.turns].created, infos[self.undelivered].created
        lease_seconds = await self.ensure_consumer(jetstream, self.turns, CONSUMER, f"{self.name}.turns")
        return lease_seconds, infos[self.turns].state.last_seq

    async def ensure_consumer(
        self, jetstream: JetStreamContext, stream: str, name: str, subject: str
    ) -> float:
        """Create a consumer that is missing; returns how long its leases hold."""
        try:
            config = (await jetstream.consumer_info(stream, name)).config
        except NotFoundError:
            config = ConsumerConfig(
                durable_name=name,
                ack_policy=AckPolicy.EXPLICIT,
                ack_wait=self._lease_seconds,
                max_deliver=-1,
                max_ack_pending=_AT_ONCE,
                filter_subject=subject,
            )
            await jetstream.add_consumer(stream, config)
        if config.ack_policy != AckPolicy.EXPLICIT or (config.max_deliver or -1) > 0:
            raise Refused(
                f"the consumer {name!r} of the stream {stream!r} was set up otherwise (it needs "
                "explicit acknowledgement and no bound of deliveries); delete it, and it is made anew"
            )
        return config.ack_wait or self._lease_seconds

    async def totals(self, jetstream: JetStreamContext) -> QueueCounts:
        """The ledger now.

        What has left the stream of turns without a result or a dead letter was removed by somebody else; it
        counts as dead (`removed`).
        """
        # Turns first: what ends before the others are read then counts as ended, and never as removed.
        of_turns = await jetstream.stream_info(self.turns)
        turns = of_turns.state
        results = (await jetstream.stream_info(self.results)).state
        dead = (await jetstream.stream_info(self.dead, subjects_filter=">")).state
        # Last: a result that is kept for its sinks meanwhile is counted twice for a moment, and not never.
        of_parked = await jetstream.stream_info(self.undelivered, subjects_filter=">")
        parked = of_parked.state
        self.made = of_turns.created, of_parked.created
        waiting = {subject.rpartition(".")[2]: count for subject, count in (parked.subjects or {}).items()}
        if results.messages and not turns.messages and self._last_result:
            # Left by processes that ended between acknowledging a turn and deleting its result.
            await jetstream.purge_stream(self.results, seq=self._last_result + 1)
        self._last_result = results.last_seq
        causes = {subject.rpartition(".")[2]: count for subject, count in (dead.subjects or {}).items()}
        if forgotten := dead.last_seq - sum(causes.values()):
            causes["forgotten"] = forgotten
        undelivered = min(results.messages, turns.messages)
        pending = turns.messages - undelivered
        ended = max(0, turns.last_seq - pending - dead.last_seq)
        # A turn whose worker came back after its lease had ended may have got a second result.
        evaluated = min(results.last_seq, ended)
        if removed := ended - evaluated:
            causes["removed"] = removed
        return QueueCounts(
            accepted=pending + evaluated + sum(causes.values()),
            pending=pending,
            evaluated=evaluated,
            dead=causes,
            # Counted once for each sink: what several wait for is one result.
            undelivered=undelivered + max(waiting.values(), default=0),
            bytes=turns.bytes,
            waiting=waiting,
        )

    def _configs(self) -> list[StreamConfig]:
        small = max(self._max_bytes // 10, 1024 * 1024)
        # A work queue refuses what does not fit and forgets nothing.
        work = {"retention": RetentionPolicy.WORK_QUEUE, "discard": DiscardPolicy.NEW}
        side = {"retention": RetentionPolicy.LIMITS, "discard": DiscardPolicy.OLD, "allow_direct": True}
        last = {**side, "max_age": 7 * _DAY, "max_msgs_per_subject": 1}
        return [
            self._stream(self.turns, "turns", self._max_bytes, **work),
            self._stream(self.undelivered, "undelivered.*", self._max_bytes, **work),
            self._stream(self.results, "results.*", self._max_bytes, **last),
            self._stream(self.notes, "notes.*", small, **last),
            self._stream(self.dead, "dead.*", small, **side, max_age=30 * _DAY, max_msgs_per_subject=-1),
        ]

    def _stream(self, name: str, subject: str, max_bytes: int, **rules: Any) -> StreamConfig:
        return StreamConfig(
            name=name,
            subjects=[f"{self.name}.{subject}"],
            max_bytes=max_bytes,
            storage=StorageType.FILE,
            num_replicas=self._replicas,
            duplicate_window=_KNOWN_FOR,
            compression=StoreCompression.S2,
            **rules,
        )


def _check(found: StreamConfig, wanted: StreamConfig) -> None:
    """Refuse a stream whose rules would lose turns or deliver none."""
    for setting in ("retention", "discard", "storage"):
        there, needed = getattr(found, setting), getattr(wanted, setting)
        if there != needed:
            raise Refused(
                f"the stream {found.name!r} is there with {setting} {_word(there)!r} and must have "
                f"{_word(needed)!r}; empty and delete it, or name another queue with ?queue=NAME"
            )
    missing = set(wanted.subjects or ()) - set(found.subjects or ())
    if missing:
        raise Refused(f"the stream {found.name!r} is there without the subject {min(missing)!r}")


def _word(value: object) -> str:
    return str(getattr(value, "value", value))


class RestartMemory:
    """Which turns a process has seen, for as long as they may come again because the server was restarted.

    A server writes down ten times a second what it has delivered and what was acknowledged. One that is
    killed has forgotten the last moment, and delivers at once, to anybody, whatever it takes to be
    unacknowledged: turns that other processes are judging, and turns that are through. Two rules keep those
    from being judged twice:

    * a turn that this process has seen through is acknowledged again;
    * a turn that another process may hold is given back once, for half the length of a lease. Whoever holds
      it renews or acknowledges it meanwhile; if nobody does, its holder is gone, and it comes again.
    """

    def __init__(self) -> None:
        self._server = ""
        self._highest = 0
        self._in_doubt = 0
        self._ends = 0.0
        self.wait = 0.0
        """Seconds for which a turn in doubt is given back."""
        self._through: BoundedDict[int, None] = BoundedDict(max_items=_THROUGH)

    def connected(self, server: str, *, lease_seconds: float, last_turn: int) -> None:
        """There is a connection to this server process; after another one, turns are in doubt for a lease.

        Not those that are put in from now on: nobody can have held them before.
        """
        if self._server and server != self._server:
            self._in_doubt = min(self._highest + _BEYOND, last_turn)
            self._ends = time.monotonic() + lease_seconds
        self._server, self.wait = server, lease_seconds / 2

    def seen(self, seq: int) -> None:
        """A turn with this number was delivered."""
        self._highest = max(self._highest, seq)

    def through(self, seqs: Iterable[int]) -> None:
        for seq in seqs:
            self._through[seq] = None

    def is_through(self, seq: int) -> bool:
        """Whether this process has acknowledged a turn."""
        return seq in self._through

    def is_in_doubt(self, seq: int) -> bool:
        """Whether the server may have forgotten what became of a turn."""
        return seq <= self._in_doubt and time.monotonic() < self._ends


async def walk_dead_letters(
    connection: NatsConnection, streams: Streams, decide: Decide, most: int
) -> list[DeadLetter]:
    """Have somebody decide about dead letters, the oldest first."""
    jetstream = connection.jetstream
    state = (await jetstream.stream_info(streams.dead)).state
    letters: list[DeadLetter] = []
    seq = max(state.first_seq, 1)  # 0 where nothing was ever stored
    while seq <= state.last_seq and len(letters) < most:
        try:
            found = await jetstream.get_msg(streams.dead, seq, direct=True)
        except NotFoundError:  # dropped or replayed before
            seq += 1
            continue
        headers, body = found.headers or {}, found.data or b""
        letters.append(dead_letter_of(body, headers))
        fate = decide(letters[-1])
        if fate == "replay":
            # Published before it is deleted: a crash in between has the turn judged and leaves the letter.
            [stored] = await connection.publish_all(
                [(f"{streams.name}.turns", body, {})], stream=streams.turns
            )
            if not isinstance(stored, PubAck):
                raise Unreachable("it does not take a turn again")
        if fate != "keep":
            await jetstream.delete_msg(streams.dead, seq)
        seq += 1
    return letters
