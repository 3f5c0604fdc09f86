"""What a `BrokerQueue` needs of a message broker; one file for each kind implements it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from steelyard.errors import SteelyardError
from steelyard.online.queue._dead_letters import DeadLetter, Decide
from steelyard.online.queue._protocol import Stored


class Unreachable(SteelyardError):
    """The broker does not answer, or the connection has ended: it is worth trying again."""


class Refused(SteelyardError):
    """The broker refuses, and will refuse again: wrong credentials, or a queue that is set up otherwise."""


@dataclass(frozen=True, kw_only=True, slots=True, repr=False)
class Outgoing:
    """A turn to publish."""

    key: str
    """By which a broker that can recognises a duplicate: a hash of the record's id."""
    body: bytes
    """The turn."""


@dataclass(frozen=True, kw_only=True, slots=True, repr=False)
class Message:
    """A turn that was leased from the broker."""

    seq: int
    """Its number in the queue; with brokers that number nothing, one that this process gives."""
    lease: str
    """Which delivery of it this is."""
    body: bytes
    """The turn."""
    attempts: int
    """How often it was leased without being given back, this time included."""
    postponed: int = 0
    """How often it was postponed."""
    result: bytes | None = None
    """Its result, where an earlier holder left one; empty where that did not fit."""
    raw: Any = None
    """The client library's own object."""


@dataclass(frozen=True, kw_only=True, slots=True, repr=False)
class Waiting:
    """A result that some sinks do not have."""

    message: Message
    """Its turn."""
    body: bytes
    """The result, with what it says of the turn."""
    sinks: Collection[str]
    """Which sinks, as `token_of` writes their names."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Totals:
    """What a broker says of its queue at one moment."""

    accepted: int
    """Turns put in."""
    pending: int
    """Waiting or leased."""
    evaluated: int
    """Judged."""
    dead: Mapping[str, int]
    """Given up, by cause."""
    undelivered: int
    """Results that wait for their sinks."""
    bytes: int
    """Size of what is pending."""
    waiting: Mapping[str, int] = field(default_factory=dict)
    """By sink: results that are kept for it."""


class Parked(Protocol):
    """Results that wait for a sink; likewise."""

    async def watch(self, sinks: Collection[str]) -> None:
        """Count what waits for these sinks."""
        ...

    async def put(self, results: Sequence[Waiting]) -> list[bool]:
        """Store each result once for each of its sinks; False where it does not fit."""
        ...

    async def pull(self, sink: str, most: int) -> list[Message]:
        """Lease the oldest results that wait for a sink."""
        ...

    async def acknowledge(self, messages: Sequence[Message]) -> None:
        """Their sink has these."""
        ...

    async def give_back(self, messages: Sequence[Message]) -> None:
        """Their sink does not have these; they wait again."""
        ...


class Broker(Protocol):
    """One connection to a broker, and what is stored there.

    Every coroutine may raise `Unreachable` or `Refused`, and nothing else.
    """

    @property
    def parked(self) -> Parked:
        """Results that wait for a sink."""
        ...

    @property
    def lease_seconds(self) -> float:
        """How long a lease holds without `extend`; infinite where it ends with the connection."""
        ...

    async def connect(self) -> None:
        """Connect anew, and see to the streams or queues."""
        ...

    async def publish(self, turns: Sequence[Outgoing]) -> list[Stored | None]:
        """Publish turns side by side; None for each that the broker has not confirmed in time."""
        ...

    async def pull(self, most: int) -> list[Message]:
        """Lease the oldest turns; waits up to half a second for one."""
        ...

    async def extend(self, messages: Sequence[Message]) -> None:
        """Hold on to leases."""
        ...

    async def keep_result(self, message: Message, body: Callable[[], bytes]) -> bool:
        """Store a result until its turn is acknowledged, if results are stored at all.

        False where another holder has stored one, or the lease is known to be lost.
        """
        ...

    async def acknowledge(self, messages: Sequence[Message]) -> None:
        """These turns are through: they and their results leave the broker."""
        ...

    async def give_back(self, messages: Sequence[Message], seconds: float, *, postpone: bool) -> bool:
        """Give turns back, due after some seconds; False where the lease is known to be lost.

        It does not count as an attempt. With `postpone`, it counts as postponed.
        """
        ...

    async def dead_letter(self, message: Message, cause: str) -> bool:
        """Move a turn to the dead letters; False where the lease is known to be lost."""
        ...

    async def dead_letters(self, decide: Decide, most: int) -> list[DeadLetter]:
        """Have somebody decide about dead letters, the oldest first."""
        ...

    async def totals(self) -> Totals:
        """The broker's counts now."""
        ...

    async def close(self) -> None:
        """Disconnect. Never raises."""
        ...
