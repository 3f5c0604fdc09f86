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

from dataclasses import dataclass

from nats.js import JetStreamContext
from nats.js.api import (
    AckPolicy,
    ConsumerConfig,
    DiscardPolicy,
    RetentionPolicy,
    StorageType,
    StoreCompression,
    StreamConfig,
)
from nats.js.errors import NotFoundError

from steelyard.online.queue.broker._broker import Refused

CONSUMER = "workers"
_DAY = 24 * 3600.0
_KNOWN_FOR = 120.0
"""Seconds for which the server recognises a turn that is published twice."""
_AT_ONCE = 65_536
"""Turns that all workers together may hold; the server's default of 1,000 would be 40 busy processes."""


@dataclass(frozen=True, slots=True)
class Present:
    """What was there when a process connected."""

    lease_seconds: float
    """How long a lease holds."""
    last_turn: int
    """Number of the latest turn that was put in; 0 where there was none."""


@dataclass(frozen=True, slots=True)
class Streams:
    """Names of streams, and what they are created with."""

    name: str
    """The queue's name."""
    max_bytes: int
    """Bound of what may be pending."""
    replicas: int
    """On how many servers of a cluster each message is kept."""
    lease_seconds: float
    """How long a lease holds, where the consumer is created now."""

    @property
    def turns(self) -> str:
        """The stream of turns; its subject is `NAME.turns`."""
        return f"{self.name}-turns"

    @property
    def results(self) -> str:
        """The stream of results; its subjects are `NAME.results.SEQ`."""
        return f"{self.name}-results"

    @property
    def undelivered(self) -> str:
        """The stream of results that wait for a sink; its subjects are `NAME.undelivered.SINK`."""
        return f"{self.name}-undelivered"

    @property
    def notes(self) -> str:
        """The stream of notes; its subjects are `NAME.notes.SEQ`."""
        return f"{self.name}-notes"

    @property
    def dead(self) -> str:
        """The stream of dead letters; its subjects are `NAME.dead.CAUSE`."""
        return f"{self.name}-dead"

    async def ensure(self, jetstream: JetStreamContext) -> Present:
        """Create what is missing; leave what is there as it is, unless it cannot work.

        Limits of present streams are the operator's: a process with other options does not change them.

        Raises:
            Refused: If a stream or the consumer was set up in a way that loses or doubles turns.
            Error: What the client raises.
        """
        last = 0
        for config in self._configs():
            assert config.name is not None
            try:
                found = await jetstream.stream_info(config.name)
            except NotFoundError:
                await jetstream.add_stream(config)
            else:
                _check(found.config, config)
                if config.name == self.turns:
                    last = found.state.last_seq
        return Present(await self._ensure_consumer(jetstream), last)

    async def _ensure_consumer(self, jetstream: JetStreamContext) -> float:
        try:
            config = (await jetstream.consumer_info(self.turns, CONSUMER)).config
        except NotFoundError:
            config = ConsumerConfig(
                durable_name=CONSUMER,
                ack_policy=AckPolicy.EXPLICIT,
                ack_wait=self.lease_seconds,
                max_deliver=-1,
                max_ack_pending=_AT_ONCE,
                filter_subject=f"{self.name}.turns",
            )
            await jetstream.add_consumer(self.turns, config)
        if config.ack_policy != AckPolicy.EXPLICIT or (config.max_deliver or -1) > 0:
            raise Refused(
                f"the consumer {CONSUMER!r} of the stream {self.turns!r} was set up otherwise (it needs "
                "explicit acknowledgement and no bound of deliveries); delete it, and it is made anew"
            )
        return config.ack_wait or self.lease_seconds

    def _configs(self) -> list[StreamConfig]:
        return [
            self._work(self.turns, f"{self.name}.turns"),
            self._work(self.undelivered, f"{self.name}.undelivered.*"),
            self._side(self.results, "results", max_bytes=self.max_bytes, days=7, last=True),
            self._side(
                self.notes, "notes", max_bytes=max(self.max_bytes // 10, 1024 * 1024), days=7, last=True
            ),
            self._side(
                self.dead, "dead", max_bytes=max(self.max_bytes // 10, 1024 * 1024), days=30, last=False
            ),
        ]

    def _work(self, name: str, subject: str) -> StreamConfig:
        """A work queue, which refuses what does not fit and forgets nothing."""
        return StreamConfig(
            name=name,
            subjects=[subject],
            retention=RetentionPolicy.WORK_QUEUE,
            discard=DiscardPolicy.NEW,
            max_bytes=self.max_bytes,
            storage=StorageType.FILE,
            num_replicas=self.replicas,
            duplicate_window=_KNOWN_FOR,
            compression=StoreCompression.S2,
        )

    def _side(self, name: str, kind: str, *, max_bytes: int, days: int, last: bool) -> StreamConfig:
        return StreamConfig(
            name=name,
            subjects=[f"{self.name}.{kind}.*"],
            retention=RetentionPolicy.LIMITS,
            discard=DiscardPolicy.OLD,
            max_bytes=max_bytes,
            max_age=days * _DAY,
            max_msgs_per_subject=1 if last else -1,
            storage=StorageType.FILE,
            num_replicas=self.replicas,
            duplicate_window=_KNOWN_FOR,
            compression=StoreCompression.S2,
            allow_direct=True,
        )


def _check(found: StreamConfig, wanted: StreamConfig) -> None:
    """Refuse a stream whose rules would lose turns or deliver none.

    Raises:
        Refused: Naming the stream and the setting.
    """
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
