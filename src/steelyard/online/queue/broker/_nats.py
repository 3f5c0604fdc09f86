"""A queue on NATS JetStream, through nats-py."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Collection, Sequence
from datetime import datetime
from typing import Any

from nats.aio.msg import Msg
from nats.errors import MaxPayloadError
from nats.js import JetStreamContext
from nats.js.api import Header, PubAck, RawStreamMsg
from nats.js.errors import NotFoundError

from steelyard._internal.logs import SafeLogger, WarnOnce
from steelyard.online.queue._protocol import DeadLetter, Decide, QueueCounts, Stored
from steelyard.online.queue.broker._broker import BrokerAddress, LeasedMessage, Outgoing, Unreachable, plain
from steelyard.online.queue.broker._nats_connection import (
    ANSWER,
    FULL,
    NOT_LAST,
    NatsConnection,
    refuse,
    words,
)
from steelyard.online.queue.broker._nats_streams import (
    CONSUMER,
    RestartMemory,
    Streams,
    walk_dead_letters,
)

_log = SafeLogger("steelyard.online")
# A server that does not know of the delivery never answers.
_HEARD = 1.0
_PLACES = 48  # bits


class NatsBroker:
    """A connection to NATS, with the streams of one queue.

    Args:
        address: Where the server is.
        max_bytes: Bound of what may be pending, for a stream that is created now.
        lease_seconds: Length of a lease, for a consumer that is created now.
    """

    def __init__(self, address: BrokerAddress, *, max_bytes: int, lease_seconds: float) -> None:
        self._address = address
        self._streams = Streams(
            address.queue,
            max_bytes=max_bytes,
            replicas=int(address.options.get("replicas", "1")),
            lease_seconds=lease_seconds,
        )
        self.lease_seconds = lease_seconds
        self._connection = NatsConnection(address)
        self._turns: JetStreamContext.PullSubscription | None = None
        # By sink, for results that wait for it.
        self._waiting: dict[str, JetStreamContext.PullSubscription] = {}
        # Turns, and results that wait for a sink.
        self._held: set[tuple[str, int]] = set()
        # Where the results lie that this process has seen, by the numbers of their turns.
        self._results: dict[int, int] = {}
        self._made = self._streams.made
        self._memory = RestartMemory()
        # Acknowledged, but the server did not know that it had delivered them.
        self._unheard: dict[int, LeasedMessage] = {}
        self._warn = WarnOnce(_log)

    async def connect(self) -> None:
        async with self._connection.translated():
            await self._connection.connect()
            self.lease_seconds, last = await self._streams.ensure(self._connection.jetstream)
            self._let_go()
            self._turns = await self._connection.jetstream.pull_subscribe_bind(CONSUMER, self._streams.turns)
            self._waiting.clear()
        self._memory.connected(self._connection.server, lease_seconds=self.lease_seconds, last_turn=last)

    async def publish(self, turns: Sequence[Outgoing]) -> list[Stored | None]:
        subject = f"{self._streams.name}.turns"
        results = await self._connection.publish_all(
            [(subject, turn.body, {Header.MSG_ID: turn.key}) for turn in turns], stream=self._streams.turns
        )
        return [self._stored(result) for result in results]

    async def park(self, results: Sequence[Outgoing]) -> list[bool]:
        # The same result parked twice, because a process died in between, is one for two minutes.
        sent: list[tuple[str, bytes, dict[str, str]]] = [
            (self._streams.waiting_for(sink), result.body, {Header.MSG_ID: f"{result.key}-{sink}"})
            for result in results
            for sink in result.sinks
        ]
        answers = await self._connection.publish_all(sent, stream=self._streams.undelivered)
        stored = [self._stored(answer) for answer in answers]
        if None in stored:
            raise Unreachable("it does not confirm a result")
        left = iter(stored)
        return ["full" not in [next(left) for _ in result.sinks] for result in results]

    async def pull(self, most: int, sink: str = "") -> list[LeasedMessage]:
        """Lease the oldest turns, or results for a sink; turns that come again with what is known of them.

        What this process holds or has seen through is not among them.
        """
        if sink:
            async with self._connection.translated():
                results = self._waiting.get(sink) or await self._subscribe(sink)
                came_for_sink = await self._connection.fetch(results, most)
            messages = [
                LeasedMessage(seq=_number_of(raw), lease=raw.reply, body=raw.data, sink=sink, raw=raw)
                for raw in came_for_sink
            ]
        else:
            self._connection.check()
            assert self._turns is not None
            async with self._connection.translated():
                came = [await self._met(raw) for raw in await self._connection.fetch(self._turns, most)]
            messages = [message for message in came if message is not None]
        self._held.update((message.sink, message.seq) for message in messages)
        return messages

    async def extend(self, messages: Sequence[LeasedMessage]) -> None:
        client = self._connection.client
        async with self._connection.translated():
            for message in self._still_held(messages):
                await client.publish(message.lease, b"+WPI")
            await client.flush(timeout=int(ANSWER))

    async def keep_result(self, message: LeasedMessage, body: Callable[[], bytes]) -> bool:
        """Store a result under its turn's number, unless there is one."""
        subject = f"{self._streams.name}.results.{message.seq}"
        # The server stores it only if there is no result yet: of two workers one wins.
        headers = {"Nats-Expected-Last-Subject-Sequence": "0"}
        for content in (body(), b""):  # one that is too large leaves at least its mark
            [answer] = await self._connection.publish_all(
                [(subject, content, dict(headers))], stream=self._streams.results
            )
            if answer is None or getattr(answer, "err_code", None) in FULL:
                raise Unreachable("it does not take a result")
            if isinstance(answer, MaxPayloadError):
                self._warn("result", "a result is larger than NATS takes; it is delivered, but not kept")
                continue
            if isinstance(answer, PubAck):
                self._results[message.seq] = answer.seq
                return True
            if getattr(answer, "err_code", None) != NOT_LAST:
                refuse(answer)
            async with self._connection.translated():
                # The confirmation of our own may have been lost with a connection.
                if await self._result(message.seq) == content:
                    return True
            self._held.discard(("", message.seq))
            return False
        return True

    async def acknowledge(self, messages: Sequence[LeasedMessage]) -> None:
        """Acknowledge results, and turns, and then delete what was kept beside these."""
        await self._answer([message for message in messages if message.sink], b"+ACK")
        messages = [message for message in messages if not message.sink]
        self._memory.through(message.seq for message in messages)
        doubtful = [message for message in messages if self._memory.is_in_doubt(_place_of(message.raw))]
        async with self._connection.translated():
            if doubtful:
                await self._acknowledge_doubtful(doubtful)
            certain = [message for message in messages if message not in doubtful] if doubtful else messages
            # Acknowledged before what was kept is deleted: a crash in between leaves rubbish, not a lost
            # result.
            await self._answer(certain, b"+ACK")
            await self._forget(certain)

    async def give_back(self, messages: Sequence[LeasedMessage], seconds: float, *, postpone: bool) -> bool:
        """Give turns back, and write down that this was no attempt."""
        await self._answer([message for message in messages if message.sink], b"-NAK")
        turns = [message for message in messages if not message.sink]
        notes = [(message, _note_of(message, postponed=message.postponed + postpone)) for message in turns]
        await self._hand_back(notes, seconds)
        return True

    async def stop(self) -> list[LeasedMessage]:
        """Nothing is sent ahead."""
        return []

    async def dead_letter(self, message: LeasedMessage, cause: str) -> bool:
        # Copied before it is ended: a crash in between gives the letter twice, under one id, and not never.
        headers = {
            # The server drops a second message of this id, so that a repeated copy counts once.
            Header.MSG_ID: f"{self._streams.turns}-{message.seq}",
            "Steelyard-Cause": plain(cause),
            "Steelyard-Turn": str(message.seq),
            "Steelyard-Attempts": str(message.attempts),
        }
        subject = f"{self._streams.name}.dead.{plain(cause)[:100]}"
        [result] = await self._connection.publish_all(
            [(subject, message.body, headers)], stream=self._streams.dead
        )
        if result is None:
            raise Unreachable("it does not confirm a dead letter")
        if not isinstance(result, PubAck):
            self._warn("dead", "a dead letter could not be stored: %s", words(result))
        await self._answer([message], b"+TERM")
        self._memory.through([message.seq])
        self._results.pop(message.seq, None)
        return True

    async def dead_letters(self, decide: Decide, most: int) -> list[DeadLetter]:
        async with self._connection.translated():
            return await walk_dead_letters(self._connection, self._streams, decide, most)

    def watch(self, sinks: Collection[str]) -> None:
        """The stream tells of all sinks."""

    async def totals(self) -> QueueCounts:
        """The ledger from the streams' numbers; what the server has not heard is said again before."""
        async with self._connection.translated():
            if self._unheard:
                await self._acknowledge_doubtful(list(self._unheard.values()))
            counts = await self._streams.totals(self._connection.jetstream)
            self._let_go()
            return counts

    async def close(self) -> None:
        await self._connection.disconnect()
        self._held.clear()
        self._results.clear()
        self._unheard.clear()

    async def _subscribe(self, sink: str) -> JetStreamContext.PullSubscription:
        stream, consumer = self._streams.undelivered, f"sink-{sink}"
        jetstream = self._connection.jetstream
        await self._streams.ensure_consumer(jetstream, stream, consumer, self._streams.waiting_for(sink))
        self._waiting[sink] = found = await jetstream.pull_subscribe_bind(consumer, stream)
        return found

    async def _answer(self, messages: Sequence[LeasedMessage], word: bytes) -> None:
        """Say what became of messages; of those that are held no more, another holder has to say it."""
        held = self._still_held(messages)
        # Let go of before: a pull that waits may bring them at once, and would take them for still held.
        self._held.difference_update((message.sink, message.seq) for message in held)
        try:
            async with self._connection.translated():
                await self._connection.send_in_order([(message.lease, word) for message in held])
        except BaseException:
            self._held.update((message.sink, message.seq) for message in held)
            raise

    def _let_go(self) -> None:
        """Hold nothing of streams that were made anew: their places are those of other messages now."""
        turns, results = self._streams.made
        if (turns, results) != self._made:
            self._made = turns, results
            self._unheard.clear()
            self._held = {
                (sink, number)
                for sink, number in self._held
                if number >> _PLACES >= _microseconds(results if sink else turns)
            }

    def _still_held(self, messages: Sequence[LeasedMessage]) -> list[LeasedMessage]:
        return [message for message in messages if (message.sink, message.seq) in self._held]

    async def _met(self, raw: Msg) -> LeasedMessage | None:
        """A turn that has come, unless nothing is to be done about it here."""
        seq, place, delivered = _number_of(raw), _place_of(raw), raw.metadata.num_delivered
        self._memory.seen(place)
        if ("", seq) in self._held:
            return None
        if self._memory.is_through(seq):
            await self._connection.client.publish(raw.reply, b"+ACK")
            return None
        note = await self._note_for(raw)
        message = LeasedMessage(
            seq=seq,
            lease=raw.reply,
            body=raw.data,
            # What was handed back without an attempt is not counted as one.
            attempts=delivered - int(note.get("excused", 0)),
            postponed=int(note.get("postponed", 0)),
            seen=str(note.get("seen", "")),
            # A turn that comes for the first time cannot have a result, and is not asked for one.
            result=await self._result(seq) if delivered > 1 else None,
            raw=raw,
        )
        if self._memory.is_in_doubt(place) and not note.get("doubted"):
            doubted = _note_of(message, postponed=message.postponed, doubted=True)
            self._held.add(("", seq))
            await self._hand_back([(message, doubted)], self._memory.wait)
            return None
        return message

    async def _note_for(self, raw: Msg) -> dict[str, Any]:
        """What earlier holders have written down of a turn; nothing at its first delivery."""
        if raw.metadata.num_delivered > 1:
            written = await self._last(self._streams.notes, "notes", _number_of(raw))
            with contextlib.suppress(ValueError):
                return dict(json.loads((written.data if written else None) or b"{}"))
        return {}

    async def _hand_back(self, notes: Sequence[tuple[LeasedMessage, bytes]], seconds: float) -> None:
        """Write notes down, and then give their turns back."""
        if notes:
            written: list[tuple[str, bytes, dict[str, str]]] = [
                (f"{self._streams.name}.notes.{message.seq}", note, {}) for message, note in notes
            ]
            # Written before the turn is given back: the next holder may have it at once.
            await self._connection.publish_all(written, stream=self._streams.notes)
        word = b"-NAK " + json.dumps({"delay": int(seconds * 1e9)}).encode() if seconds > 0 else b"-NAK"
        await self._answer([message for message, _ in notes], word)

    async def _acknowledge_doubtful(self, messages: Sequence[LeasedMessage]) -> None:
        """Acknowledge turns one by one.

        A restarted server does not answer for one that it does not know to have delivered: nothing of it may
        be deleted, since it will be delivered again, and the acknowledgement has to be repeated then.
        """
        messages = self._still_held(messages)
        asked = [self._connection.ask(message.lease, b"+ACK") for message in messages]
        answers = await self._connection.answers(asked, seconds=_HEARD)
        self._connection.check()
        self._unheard.update((message.seq, message) for message in messages)
        heard = zip(messages, answers, strict=True)
        await self._forget([message for message, answer in heard if isinstance(answer, Msg)])

    async def _forget(self, messages: Sequence[LeasedMessage]) -> None:
        """Delete what was kept beside turns that are acknowledged."""
        jetstream, name = self._connection.jetstream, self._streams.name
        deleting: list[bytes] = []
        # By its place where that is known: a purge by subject looks through the whole stream.
        for message in messages:
            if place := self._results.pop(message.seq, 0):
                deleting.append(b'{"seq":%d,"no_erase":true}' % place)
            else:
                await jetstream.purge_stream(self._streams.results, subject=f"{name}.results.{message.seq}")
            if message.raw.metadata.num_delivered > 1:
                await jetstream.purge_stream(self._streams.notes, subject=f"{name}.notes.{message.seq}")
            self._unheard.pop(message.seq, None)
            self._held.discard(("", message.seq))
        subject = f"$JS.API.STREAM.MSG.DELETE.{self._streams.results}"
        await self._connection.send_in_order([(subject, body) for body in deleting])

    async def _result(self, seq: int) -> bytes | None:
        """The result that was stored for a turn, by this process or another."""
        found = await self._last(self._streams.results, "results", seq)
        if found is None:
            return None
        self._results[seq] = found.seq or 0
        return found.data or b""

    async def _last(self, stream: str, kind: str, seq: int) -> RawStreamMsg | None:
        subject = f"{self._streams.name}.{kind}.{seq}"
        try:
            return await self._connection.jetstream.get_last_msg(stream, subject, direct=True)
        except NotFoundError:
            return None

    def _stored(self, answer: PubAck | Exception | None) -> Stored | None:
        if answer is None:
            return None
        if isinstance(answer, PubAck):
            return "known" if answer.duplicate else "new"
        if isinstance(answer, MaxPayloadError) or getattr(answer, "err_code", None) in FULL:
            self._warn(
                "full",
                "the broker %s refuses turns or results: %s; start more workers, or raise its bound",
                self._address.shown,
                words(answer),
            )
            return "full"
        refuse(answer)


def _place_of(raw: Msg) -> int:
    """A message's place in its stream."""
    return raw.metadata.sequence.stream


def _number_of(raw: Msg) -> int:
    """A message's number: its place, after the moment at which it was stored.

    A stream that is made anew, on an empty disk or because it was deleted, begins anew with its places, and
    what is known of a turn must not be taken for that of another.
    """
    return _microseconds(raw.metadata.timestamp) << _PLACES | _place_of(raw)


def _microseconds(at: datetime | None) -> int:
    return 0 if at is None else round(at.timestamp() * 1e6)


def _note_of(message: LeasedMessage, *, postponed: int, doubted: bool = False) -> bytes:
    excused = message.raw.metadata.num_delivered - message.attempts + 1
    note = {"postponed": postponed, "excused": excused, "doubted": doubted, "seen": message.seen}
    return json.dumps(note).encode()
