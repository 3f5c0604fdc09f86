"""A queue's ledger, read from the numbers of its streams."""

from __future__ import annotations

from collections.abc import Mapping

from nats.js import JetStreamContext

from steelyard.online.queue.broker._broker import Totals
from steelyard.online.queue.broker._nats_streams import Streams


class StreamCounts:
    """Counts of one queue.

    Args:
        streams: Where it lies.
    """

    def __init__(self, streams: Streams) -> None:
        self._streams = streams
        self._last_result = 0

    async def totals(self, jetstream: JetStreamContext, waiting: Mapping[str, int]) -> Totals:
        """The ledger now.

        What has left the stream of turns without a result or a dead letter was removed by somebody else; it
        counts as dead (`removed`).

        Args:
            jetstream: The client's interface to the streams.
            waiting: By sink: results that are kept for it.

        Raises:
            Error: What the client raises.
        """
        # Turns first: what ends before the others are read then counts as ended, and never as removed.
        turns = (await jetstream.stream_info(self._streams.turns)).state
        results = (await jetstream.stream_info(self._streams.results)).state
        dead = (await jetstream.stream_info(self._streams.dead, subjects_filter=">")).state
        if results.messages and not turns.messages and self._last_result:
            # Left by processes that ended between acknowledging a turn and deleting its result.
            await jetstream.purge_stream(self._streams.results, seq=self._last_result + 1)
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
        return Totals(
            accepted=pending + evaluated + sum(causes.values()),
            pending=pending,
            evaluated=evaluated,
            dead=causes,
            # Counted once for each sink: what several wait for is one result.
            undelivered=undelivered + max(waiting.values(), default=0),
            bytes=turns.bytes,
            waiting=waiting,
        )
