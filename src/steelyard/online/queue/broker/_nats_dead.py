"""Dead letters on NATS: a stream that is walked by number."""

from __future__ import annotations

from nats.js.api import PubAck
from nats.js.errors import NotFoundError

from steelyard.online.queue._dead_letters import DeadLetter, Decide, record_id_of
from steelyard.online.queue.broker._bodies import unpacked_or_empty
from steelyard.online.queue.broker._broker import Unreachable
from steelyard.online.queue.broker._nats_connection import NatsConnection
from steelyard.online.queue.broker._nats_streams import Streams


async def walk_dead_letters(
    connection: NatsConnection, streams: Streams, decide: Decide, most: int
) -> list[DeadLetter]:
    """Have somebody decide about dead letters, the oldest first.

    Raises:
        Error: What the client raises.
    """
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
