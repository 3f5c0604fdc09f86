"""What a BrokerQueue needs of a message broker: its address, the bodies of messages, calls, a connection."""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
import time
import zlib
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, Self, TypeVar
from urllib.parse import SplitResult, parse_qsl, urlencode, urlsplit, urlunsplit

from steelyard._internal.logs import SafeLogger
from steelyard._internal.text import redacted_url
from steelyard.errors import ConfigurationError, SteelyardError
from steelyard.online.queue._protocol import DeadLetter, Decide, QueueCounts, QueueFailed, Stored, broken_off
from steelyard.online.queue._turns import Selected, result_to_json, seen_to_dict, turn_from_json
from steelyard.record import text_of
from steelyard.scores import Evaluation, evaluation_from_json

PATIENCE = 10.0
"""Seconds: long enough for a server that restarts."""
COMING = 5.0
"""Seconds for what is just being leased or stored when a process stops."""
_log = SafeLogger("steelyard.online")
# Between two attempts to connect: a server that restarts refuses connections at once.
_PAUSE = 0.2
_Result = TypeVar("_Result")
NATS = frozenset({"nats", "tls"})
AMQP = frozenset({"amqp", "amqps"})
_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_NATS_OPTIONS = frozenset({"queue", "replicas", "credentials"})
_OF_TURN = b'{"record_of":"turn",'
_PACKED_FROM = 64 * 1024  # below, compressing costs more than the bytes do
_OTHER = re.compile(r"[^A-Za-z0-9_-]")
_LARGEST = 64 * 1024 * 1024  # what unpacks to more is not ours, and may be an attack


def is_address(path: object) -> bool:
    """Whether this names a server rather than a file."""
    return isinstance(path, str) and "://" in path


@dataclass(frozen=True, slots=True)
class BrokerAddress:
    """Where a broker is, and which of its queues is meant."""

    scheme: str
    """`nats`, `tls` (NATS), `amqp` or `amqps`."""
    servers: tuple[str, ...] = field(repr=False)
    """Addresses for the client, with user and password; several for a NATS cluster."""
    shown: str
    """The address as it may be logged."""
    queue: str
    """The name that streams, subjects and queues on the broker begin with."""
    options: Mapping[str, str] = field(default_factory=dict, repr=False)
    """What else stood behind the question mark."""

    @classmethod
    def of(cls, url: str) -> Self:
        shown = redacted_url(url)
        try:
            parts = urlsplit(url)
            options = dict(parse_qsl(parts.query, keep_blank_values=True))
        except ValueError:
            raise ConfigurationError(
                "the spool's address cannot be read as a URL; write nats://HOST:4222, for example"
            ) from None
        if parts.scheme not in NATS | AMQP:
            raise ConfigurationError(
                f"the spool {shown!r} is neither a file nor a broker; addresses begin with nats://, tls://, "
                "amqp:// or amqps://"
            )
        if not parts.netloc.rpartition("@")[2]:
            raise ConfigurationError(
                f"the spool's address {shown!r} names no host; write nats://HOST:4222, for example"
            )
        queue = options.pop("queue", "steelyard")
        if not _NAME.fullmatch(queue):
            raise ConfigurationError(
                f"queue={queue!r} in the spool's address: a name has up to 64 letters, digits, '_' and '-'; "
                "choose another name"
            )
        if parts.scheme in NATS:
            _check_nats(options)
            return cls(parts.scheme, _servers(parts), shown, queue, options)
        return cls(parts.scheme, (urlunsplit(parts._replace(query=urlencode(options))),), shown, queue)


def _check_nats(options: Mapping[str, str]) -> None:
    if unknown := set(options) - _NATS_OPTIONS:
        raise ConfigurationError(
            f"the spool's address has no option {min(unknown)!r}; there are "
            f"{', '.join(sorted(_NATS_OPTIONS))}"
        )
    replicas = options.get("replicas", "1")
    if replicas not in {"1", "3", "5"}:
        raise ConfigurationError(f"replicas={replicas!r} in the spool's address must be 1, 3 or 5")


def _servers(parts: SplitResult) -> tuple[str, ...]:
    user, at, hosts = parts.netloc.rpartition("@")
    return tuple(f"{parts.scheme}://{user}{at}{host.strip()}" for host in hosts.split(",") if host.strip())


def key_of(turn: Selected) -> str:
    """What the broker tells the same turn by, published twice."""
    return hashlib.blake2b(text_of(turn.record.id).encode(), digest_size=16).hexdigest()


def is_token(name: str) -> bool:
    """Whether this is what `token_of` makes of a sink's name; `counts` has it where it knows no more."""
    return re.fullmatch(r"[A-Za-z0-9_-]+-[0-9a-f]{8}", name) is not None


def plain(text: str) -> str:
    """A text that may stand in a subject, a header or a name: dots and stars mean something to NATS."""
    return _OTHER.sub("_", text)


def token_of(sink: str) -> str:
    """A sink's name as a part of a subject or of a queue's name."""
    return f"{plain(sink)[:60]}-{hashlib.blake2b(sink.encode(), digest_size=4).hexdigest()}"


_MOST_SEEN = 64 * 1024
"""RabbitMQ takes headers of 128 KiB; of a turn with more, nothing is kept."""


def seen_of(turn: Selected) -> str:
    """What the screen said of a turn, as it is kept beside it; empty where there is nothing, or too much."""
    text = "" if turn.seen is None else json.dumps(seen_to_dict(turn.seen))
    return text if len(text) <= _MOST_SEEN else ""


def result_of(turn: Selected, evaluation: Evaluation) -> bytes:
    """A result as it is stored beside its turn: the Record, most of it, lies there already."""
    if evaluation.record is None or evaluation.record != turn.record:
        return packed(result_to_json(evaluation))
    line = result_to_json(replace(evaluation, record=None))
    return packed(_OF_TURN + line[1:])


def evaluation_of(result: bytes, turn: bytes) -> Evaluation:
    """The result again. Raises whatever a damaged text makes it raise."""
    line = unpacked(result)
    evaluation = evaluation_from_json(line)
    if not line.startswith(_OF_TURN):
        return evaluation
    return replace(evaluation, record=turn_from_json(unpacked(turn)).record)


def packed(body: bytes) -> bytes:
    """Compressed where it is large: brokers bound the size of a message, mostly at 1 MiB."""
    return body if len(body) < _PACKED_FROM else zlib.compress(body, 1)


def unpacked(body: bytes) -> bytes:
    """What was packed; JSON begins with a bracket, which no compressed text does."""
    if body[:1] == b"{":
        return body
    inflate = zlib.decompressobj()
    text = inflate.decompress(body, _LARGEST)
    if not inflate.eof:
        raise zlib.error("too large or cut off")
    return text


def dead_letter_of(body: bytes, headers: Mapping[str, Any]) -> DeadLetter:
    """A dead letter, by its turn and what stands in its headers."""
    record_id = ""
    with suppress(Exception):  # what cannot be read is what letters die of
        record_id = turn_from_json(unpacked(body)).record.id
    attempts = str(headers.get("Steelyard-Attempts", ""))
    return DeadLetter(
        record_id=record_id,
        cause=str(headers.get("Steelyard-Cause", "")),
        attempts=int(attempts) if attempts.isdecimal() else 0,
    )


class Unreachable(SteelyardError):
    """The broker does not answer, or the connection has ended: it is worth trying again."""


class Refused(SteelyardError):
    """The broker refuses, and will refuse again: wrong credentials, or a queue that is set up otherwise."""


@dataclass(frozen=True, kw_only=True, slots=True, repr=False)
class Outgoing:
    """A turn to publish, or a result that some sinks do not have."""

    key: str
    """By which a broker that can recognises a duplicate: a hash of the record's id, or the turn's number."""
    body: bytes
    sinks: Collection[str] = ()
    """For a result: which sinks, as `token_of` writes their names."""


@dataclass(frozen=True, kw_only=True, slots=True, repr=False)
class LeasedMessage:
    """A turn, or a result that waits for a sink, that was leased from the broker."""

    seq: int
    """Its number in the queue; with brokers that number nothing, one that this process gives."""
    lease: str
    """Which delivery of it this is."""
    body: bytes
    attempts: int = 1
    """How often it was leased without being given back, this time included."""
    postponed: int = 0
    """How often it was postponed."""
    seen: str = ""
    """What the screen said of it, if it has."""
    result: bytes | None = None
    """Its result, where an earlier holder left one; empty where that did not fit."""
    sink: str = ""
    """Of a result: the sink that it waits for, as `token_of` writes its name."""
    raw: Any = None
    """The client library's own object."""


class Broker(Protocol):
    """One connection to a broker, and what is stored there.

    Every coroutine may raise `Unreachable` or `Refused`, and nothing else.
    """

    @property
    def lease_seconds(self) -> float:
        """How long a lease holds without `extend`; infinite where it ends with the connection."""

    async def connect(self) -> None:
        """Connect anew, and see to the streams or queues."""

    async def publish(self, turns: Sequence[Outgoing]) -> list[Stored | None]:
        """Publish turns side by side; None for each that the broker has not confirmed in time."""

    async def park(self, results: Sequence[Outgoing]) -> list[bool]:
        """Store each result once for each of its sinks; False where it does not fit."""

    async def pull(self, most: int, sink: str = "") -> list[LeasedMessage]:
        """Lease the oldest turns, or the oldest results that wait for a sink; waits up to half a second."""

    async def extend(self, messages: Sequence[LeasedMessage]) -> None:
        """Hold on to leases."""

    async def keep_result(self, message: LeasedMessage, body: Callable[[], bytes]) -> bool:
        """Store a result until its turn is acknowledged, if results are stored at all.

        False where another holder has stored one, or the lease is known to be lost.
        """

    async def acknowledge(self, messages: Sequence[LeasedMessage]) -> None:
        """These are through: turns, with their results, and results leave the broker."""

    async def give_back(self, messages: Sequence[LeasedMessage], seconds: float, *, postpone: bool) -> bool:
        """Give messages back, due after some seconds; False where the lease of a turn is known to be lost.

        It does not count as an attempt. With `postpone`, it counts as postponed.
        """

    async def stop(self) -> list[LeasedMessage]:
        """Ask for no more turns; returns what the broker has sent ahead."""

    async def dead_letter(self, message: LeasedMessage, cause: str) -> bool:
        """Move a turn to the dead letters; False where the lease is known to be lost."""

    async def dead_letters(self, decide: Decide, most: int) -> list[DeadLetter]:
        """Have somebody decide about dead letters, the oldest first."""

    def watch(self, sinks: Collection[str]) -> None:
        """Count what waits for these sinks from now on."""

    async def totals(self) -> QueueCounts:
        """The broker's counts now; what waits for sinks by their tokens."""

    async def close(self) -> None:
        """Disconnect. Never raises."""


class BrokerConnection:
    """Calls a broker, until it stays away or refuses us; then it has failed until it is opened again.

    Args:
        broker: The broker.
        shown: Its address as it may be logged.
        patience: Seconds for which a broken connection is made anew.
        meanwhile: What turns of this process do while the broker cannot be used, for the log.
        anew: Called where a connection was made anew.
    """

    def __init__(
        self, broker: Broker, *, shown: str, patience: float, meanwhile: str, anew: Callable[[], None]
    ) -> None:
        self._broker = broker
        self._shown = shown
        self._patience = patience
        self._meanwhile = meanwhile
        self._anew = anew
        self._connecting = asyncio.Lock()
        self._number = 0
        self.works = False
        self.failed = asyncio.Event()
        # Told once for each outage, however many calls find the broker gone.
        self._said = False

    async def open(self, count: Callable[[], Awaitable[None]]) -> None:
        """Connect, and count what is there."""
        try:
            await broken_off(self._connect(count), seconds=COMING)
        except asyncio.CancelledError:
            self.works = False  # the client may have come to its end
            await self._broker.close()
            raise
        except (Unreachable, Refused) as error:
            self._set_aside(error)
            await self._broker.close()
            raise QueueFailed(str(error)) from error

    async def _connect(self, count: Callable[[], Awaitable[None]]) -> None:
        await self._broker.connect()
        await count()
        self.works = True
        self._number += 1
        self.failed.clear()
        if self._said:
            self._said = False
            _log.warning("the broker %s works again", self._shown)

    async def retried(self, do: Callable[[], Awaitable[_Result]]) -> _Result:
        """Do something with the broker; a broken connection is made anew for a while."""
        deadline = time.monotonic() + self._patience
        while self.works:
            # Remembered from before the call: another caller may make the connection anew meanwhile.
            number = self._number
            try:
                return await do()
            except Unreachable as error:
                if time.monotonic() > deadline:
                    self._set_aside(error)
                else:
                    await broken_off(self._connect_again(number, deadline), seconds=COMING)
            except Refused as error:
                self._set_aside(error)
        raise QueueFailed("the broker cannot be used any more")

    async def call(self, do: Callable[[], Awaitable[_Result]]) -> _Result:
        """The same for a call of the client: whoever is cancelled ends, also where it loses that."""
        return await self.retried(lambda: broken_off(do(), seconds=COMING))

    async def _connect_again(self, number: int, deadline: float) -> None:
        # One at a time: ten calls that find the connection broken would make ten.
        async with self._connecting:
            while self.works and self._number == number:
                try:
                    await self._broker.connect()
                    self._number += 1
                    self._anew()
                except Unreachable as error:
                    if time.monotonic() > deadline:
                        self._set_aside(error)
                    await asyncio.sleep(_PAUSE)
                except Refused as error:
                    self._set_aside(error)

    def _set_aside(self, error: Exception) -> None:
        """Use the broker no more, until it is opened again."""
        self.works = False
        self.failed.set()
        if not self._said:
            self._said = True
            told = "the broker %s cannot be used: %s; it is tried again; turns of this process %s meanwhile"
            _log.error(told, self._shown, error, self._meanwhile)
