"""What waits beside the turns on NATS: results for a sink, and dead letters."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from nats.aio.msg import Msg
from nats.errors import MaxPayloadError
from nats.js import JetStreamContext
from nats.js.api import Header, PubAck
from nats.js.errors import NotFoundError

from steelyard.online.queue._protocol import DeadLetter, Decide, record_id_of
from steelyard.online.queue.broker._broker import LeasedMessage, Unreachable, Waiting, unpacked_or_empty
from steelyard.online.queue.broker._nats_connection import FULL, NatsConnection, refuse
from steelyard.online.queue.broker._nats_streams import Streams


class NatsParked:
    """The stream `NAME-undelivered` of one queue."""

    def __init__(self, streams: Streams, connection: NatsConnection) -> None:
        self._streams = streams
        self._connection = connection
        self._subscriptions: dict[str, JetStreamContext.PullSubscription] = {}

    def start(self) -> None:
        self._subscriptions.clear()

    async def watch(self, sinks: Collection[str]) -> None:
        """The stream tells of all sinks."""

    async def put(self, results: Sequence[Waiting]) -> list[bool]:
        # The same result parked twice, because a process died in between, is one for two minutes.
        messages: list[tuple[str, bytes, dict[str, str]]] = [
            (self._subject(sink), result.body, {Header.MSG_ID: f"{result.message.seq}-{sink}"})
            for result in results
            for sink in result.sinks
        ]
        answers = iter(await self._connection.publish_all(messages, stream=self._streams.undelivered))
        return [min([_stored(next(answers)) for _ in result.sinks], default=True) for result in results]

    async def pull(self, sink: str, most: int) -> list[LeasedMessage]:
        async with self._connection.translated():
            subscription = self._subscriptions.get(sink) or await self._subscribe(sink)
            return [_message(raw) for raw in await self._connection.fetch(subscription, most)]

    async def acknowledge(self, messages: Sequence[LeasedMessage]) -> None:
        async with self._connection.translated():
            await self._connection.send_in_order([(message.lease, b"+ACK") for message in messages])

    async def give_back(self, messages: Sequence[LeasedMessage]) -> None:
        async with self._connection.translated():
            await self._connection.send_in_order([(message.lease, b"-NAK") for message in messages])

    async def counts(self) -> Mapping[str, int]:
        found = await self._connection.jetstream.stream_info(self._streams.undelivered, subjects_filter=">")
        return {subject.rpartition(".")[2]: count for subject, count in (found.state.subjects or {}).items()}

    async def _subscribe(self, sink: str) -> JetStreamContext.PullSubscription:
        stream, consumer = self._streams.undelivered, f"sink-{sink}"
        jetstream = self._connection.jetstream
        await self._streams.ensure_consumer(jetstream, stream, consumer, self._subject(sink))
        self._subscriptions[sink] = found = await jetstream.pull_subscribe_bind(consumer, stream)
        return found

    def _subject(self, sink: str) -> str:
        return f"{self._streams.name}.undelivered.{sink}"


def _message(raw: Msg) -> LeasedMessage:
    return LeasedMessage(
        seq=raw.metadata.sequence.stream,
        lease=raw.reply,
        body=raw.data,
        attempts=raw.metadata.num_delivered,
        raw=raw,
    )


def _stored(answer: PubAck | Exception | None) -> bool:
    """Whether the server has a result."""
    if answer is None:
        raise Unreachable("it does not confirm a result")
    if isinstance(answer, PubAck):
        return True
    if isinstance(answer, MaxPayloadError) or getattr(answer, "err_code", None) in FULL:
        return False
    refuse(answer)


async def walk_dead_letters(
    connection: NatsConnection, streams: Streams, decide: Decide, most: int
) -> list[DeadLetter]:
    """Have somebody decide about dead letters, the oldest first."""
    jetstream = connection.jetstream
    state = (await jetstream.stream_info(streams.dead)).state
    letters: list[DeadLetter] = []
    seq = state.first_seq
    while seq <= state.last_seq and len(letters) < most:
        try:
            found = await jetstream.get_msg(streams.dead, seq, direct=True)
        except NotFoundError:  # dropped or replayed before
            seq += 1
            continue
        headers, body = found.headers or {}, found.data or b""
        letter = DeadLetter(
            record_id=record_id_of(unpacked_or_empty(body)),
            cause=headers.get("Steelyard-Cause", ""),
            attempts=int(headers.get("Steelyard-Attempts", "0")),
        )
        letters.append(letter)
        fate = decide(letter)
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
