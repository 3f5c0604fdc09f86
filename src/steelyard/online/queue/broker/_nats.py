"""A queue on NATS JetStream, through nats-py."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import re
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any, NoReturn

from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.errors import AuthorizationError, Error, MaxPayloadError, NoRespondersError
from nats.js import JetStreamContext
from nats.js.api import Header, PubAck
from nats.js.errors import APIError, NoStreamResponseError, NotFoundError, ServiceUnavailableError

from steelyard._internal.redact import error_words
from steelyard._internal.warn_once import WarnOnce
from steelyard.online.queue._protocol import Stored
from steelyard.online.queue.broker._address import BrokerAddress
from steelyard.online.queue.broker._broker import Message, Outgoing, Refused, Totals, Unreachable
from steelyard.online.queue.broker._nats_streams import CONSUMER, Streams

_log = logging.getLogger("steelyard.online")
_ANSWER = 5.0
_LINGER = 0.5
_FULL = frozenset({10002, 10023, 10047, 10054, 10077})
"""Codes of the server for: no room, in the account, the server or the stream, or too large a message."""
_NOT_LAST = 10071
_FORBIDDEN = frozenset({"authorization", "authentication", "permission", "user", "credential", "nkey"})
_TOKEN = re.compile(r"[^A-Za-z0-9_-]")


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
            address.queue, max_bytes, int(address.options.get("replicas", "1")), lease_seconds
        )
        self._lease_seconds = lease_seconds
        self._client: Client | None = None
        self._jetstream: JetStreamContext | None = None
        self._subscription: JetStreamContext.PullSubscription | None = None
        self._problem: Exception | None = None
        self._warn = WarnOnce(_log)

    @property
    def lease_seconds(self) -> float:
        """How long a lease holds, as the server has it."""
        return self._lease_seconds

    async def connect(self) -> None:
        """Connect anew, create the streams that are missing, and bind to the consumer."""
        await self.close()
        self._problem = None
        async with self._translated():
            async with asyncio.timeout(_ANSWER):
                self._client = Client()
                await self._client.connect(
                    servers=list(self._address.servers),
                    name="steelyard",
                    allow_reconnect=False,
                    connect_timeout=int(_ANSWER),
                    max_reconnect_attempts=1,
                    reconnect_time_wait=0,
                    error_cb=self._note,
                    user_credentials=self._address.options.get("credentials"),
                )
            self._jetstream = self._client.jetstream(timeout=_ANSWER)
            self._lease_seconds = await self._streams.ensure(self._jetstream)
            self._subscription = await self._jetstream.pull_subscribe_bind(
                consumer=CONSUMER, stream=self._streams.turns
            )

    async def publish(self, turns: Sequence[Outgoing]) -> list[Stored | None]:
        """Publish side by side, and wait for the server's confirmations."""
        subject = f"{self._streams.name}.turns"
        results = await self._publish_all(
            [(subject, turn.body, {Header.MSG_ID: turn.key}) for turn in turns], stream=self._streams.turns
        )
        return [self._stored(result) for result in results]

    async def pull(self, most: int) -> list[Message]:
        """Lease the oldest turns; those that come again with what is known of them."""
        _, _, subscription = self._connected()
        async with self._translated():
            try:
                found = await subscription.fetch(most, timeout=_LINGER)
            except TimeoutError:  # the client's own is one, too
                self._connected()
                return []
            return list(await asyncio.gather(*map(self._message, found)))

    async def extend(self, messages: Sequence[Message]) -> None:
        """Tell the server that turns are in progress."""
        client, _, _ = self._connected()
        async with self._translated():
            for message in messages:
                await client.publish(message.lease, b"+WPI")
            await client.flush(timeout=int(_ANSWER))

    async def keep_result(self, message: Message, body: bytes) -> bool:
        """Store a result under its turn's number, unless there is one."""
        _, jetstream, _ = self._connected()
        subject = f"{self._streams.name}.results.{message.seq}"
        headers = {"Nats-Expected-Last-Subject-Sequence": "0"}
        async with self._translated():
            for content in (body, b""):  # one that is too large leaves at least its mark
                try:
                    await jetstream.publish(subject, content, headers=headers, stream=self._streams.results)
                except MaxPayloadError:
                    self._warn("result", "a result is larger than NATS takes; it is delivered, but not kept")
                    continue
                except APIError as error:
                    if error.err_code != _NOT_LAST:
                        raise
                    # The confirmation of our own may have been lost with a connection.
                    return await self._last(self._streams.results, "results", message.seq) == content
                return True
        return True

    async def acknowledge(self, messages: Sequence[Message]) -> None:
        """Acknowledge turns, each confirmed by the server, and delete what was kept beside them."""
        await self._settle([(message, b"+ACK") for message in messages])
        _, jetstream, _ = self._connected()
        async with self._translated():
            await asyncio.gather(*(self._forget(jetstream, message) for message in messages))

    async def give_back(self, messages: Sequence[Message], seconds: float, *, postpone: bool) -> bool:
        """Give turns back, and write down that this was no attempt."""
        notes: list[tuple[str, bytes, dict[str, str]]] = [
            (f"{self._streams.name}.notes.{message.seq}", _note_of(message, postpone=postpone), {})
            for message in messages
        ]
        await self._publish_all(notes, stream=self._streams.notes)
        word = b"-NAK " + json.dumps({"delay": int(seconds * 1e9)}).encode() if seconds > 0 else b"-NAK"
        await self._settle([(message, word) for message in messages])
        return True

    async def bury(self, message: Message, cause: str) -> bool:
        """Copy a turn to the dead letters, and then end it."""
        headers = {
            Header.MSG_ID: f"{self._streams.turns}-{message.seq}",
            "Steelyard-Cause": _TOKEN.sub("_", cause),
            "Steelyard-Turn": str(message.seq),
            "Steelyard-Attempts": str(message.attempts),
        }
        subject = f"{self._streams.name}.dead.{_TOKEN.sub('_', cause)[:100]}"
        [result] = await self._publish_all([(subject, message.body, headers)], stream=self._streams.dead)
        if result is None:
            raise Unreachable("it does not confirm a dead letter")
        if not isinstance(result, PubAck):
            self._warn("dead", "a dead letter could not be stored: %s", _words(result))
        await self._settle([(message, b"+TERM")])
        return True

    async def totals(self) -> Totals:
        """The ledger from the streams' numbers.

        What has left the stream of turns without a result or a dead letter was removed by somebody else; it
        counts as dead (`removed`).
        """
        _, jetstream, _ = self._connected()
        async with self._translated():
            dead = (await jetstream.stream_info(self._streams.dead, subjects_filter=">")).state
            results = (await jetstream.stream_info(self._streams.results)).state
            turns = (await jetstream.stream_info(self._streams.turns)).state
            if results.messages and not turns.messages:
                # Left by a process that ended between acknowledging a turn and deleting its result.
                await jetstream.purge_stream(self._streams.results, seq=results.last_seq + 1)
        causes = {subject.rpartition(".")[2]: count for subject, count in (dead.subjects or {}).items()}
        if forgotten := dead.last_seq - sum(causes.values()):
            causes["forgotten"] = forgotten
        undelivered = min(results.messages, turns.messages)
        pending = turns.messages - undelivered
        removed = turns.last_seq - results.last_seq - dead.last_seq - pending
        if removed > 0:
            causes["removed"] = removed
        return Totals(
            accepted=turns.last_seq,
            pending=pending + min(removed, 0),
            evaluated=results.last_seq,
            dead=causes,
            undelivered=undelivered,
            bytes=turns.bytes,
        )

    async def close(self) -> None:
        """Disconnect."""
        client, self._client, self._jetstream, self._subscription = self._client, None, None, None
        if client is not None:
            with contextlib.suppress(Exception):
                async with asyncio.timeout(1):
                    await client.close()
            # A server that hangs takes what is still to be sent from nobody, and the client waits for that.
            if (transport := getattr(client, "_transport", None)) is not None:
                with contextlib.suppress(Exception):
                    transport.close()

    def _connected(self) -> tuple[Client, JetStreamContext, JetStreamContext.PullSubscription]:
        if self._client is None or self._jetstream is None or self._subscription is None:
            raise Unreachable("there is no connection")
        if self._client.is_closed:
            raise Unreachable("the connection has ended")
        return self._client, self._jetstream, self._subscription

    async def _note(self, error: Exception) -> None:
        self._problem = error

    async def _publish_all(
        self, messages: Sequence[tuple[str, bytes, dict[str, str]]], *, stream: str
    ) -> list[PubAck | Exception | None]:
        """Publish side by side; the server's answer to each, None where none has come in time."""
        _, jetstream, _ = self._connected()
        # Not `publish_async`: nats-py 2.16 leaves its future undone where the server refuses a message.
        publishing = [
            jetstream.publish(subject, body, timeout=_ANSWER, stream=stream, headers=dict(headers))
            for subject, body, headers in messages
        ]
        answers = await asyncio.gather(*publishing, return_exceptions=True)
        known: list[PubAck | Exception | None] = []
        for answer in answers:
            if isinstance(answer, NoStreamResponseError):
                raise Unreachable("JetStream is not there, or the stream was deleted")
            if isinstance(answer, BaseException) and not isinstance(answer, APIError | MaxPayloadError):
                self._connected()
                known.append(None)
            else:
                known.append(answer)
        return known

    def _stored(self, answer: PubAck | Exception | None) -> Stored | None:
        if answer is None:
            return None
        if isinstance(answer, PubAck):
            return "known" if answer.duplicate else "new"
        if isinstance(answer, MaxPayloadError) or getattr(answer, "err_code", None) in _FULL:
            self._warn("full", "the broker %s refuses turns: %s", self._address.shown, _words(answer))
            return "full"
        if isinstance(answer, ServiceUnavailableError):
            return None
        _refuse(answer)

    async def _settle(self, acknowledgements: Sequence[tuple[Message, bytes]]) -> None:
        """Send acknowledgements of any kind, and wait until the server has heard them."""
        client, _, _ = self._connected()
        async with self._translated():
            await asyncio.gather(
                *(client.request(message.lease, word, timeout=_ANSWER) for message, word in acknowledgements)
            )

    async def _forget(self, jetstream: JetStreamContext, message: Message) -> None:
        await jetstream.purge_stream(
            self._streams.results, subject=f"{self._streams.name}.results.{message.seq}"
        )
        if _delivered(message.raw) > 1:
            await jetstream.purge_stream(
                self._streams.notes, subject=f"{self._streams.name}.notes.{message.seq}"
            )

    async def _message(self, raw: Msg) -> Message:
        seq = raw.metadata.sequence.stream
        delivered = raw.metadata.num_delivered
        note: dict[str, Any] = {}
        result = None
        if delivered > 1:
            result = await self._last(self._streams.results, "results", seq)
            written = await self._last(self._streams.notes, "notes", seq)
            with contextlib.suppress(ValueError):
                note = dict(json.loads(written or b"{}"))
        return Message(
            seq=seq,
            lease=raw.reply,
            body=raw.data,
            attempts=delivered - int(note.get("excused", 0)),
            postponed=int(note.get("postponed", 0)),
            result=result,
            raw=raw,
        )

    async def _last(self, stream: str, kind: str, seq: int) -> bytes | None:
        _, jetstream, _ = self._connected()
        try:
            found = await jetstream.get_last_msg(stream, f"{self._streams.name}.{kind}.{seq}", direct=True)
        except NotFoundError:
            return None
        return found.data or b""

    @asynccontextmanager
    async def _translated(self) -> AsyncIterator[None]:
        """The client's errors as ours, by their type: their texts may quote addresses."""
        try:
            yield
        except (Unreachable, Refused):
            raise
        except AuthorizationError:
            raise Refused("it refuses the credentials") from None
        except (TimeoutError, OSError, Error, NoRespondersError) as error:
            problem = self._problem or error
            if any(word in str(problem).lower() for word in _FORBIDDEN):
                raise Refused("it refuses the credentials") from None
            if isinstance(error, APIError) and not isinstance(
                error, ServiceUnavailableError | NoStreamResponseError
            ):
                _refuse(error)
            raise Unreachable(f"it cannot be reached ({_words(problem)})") from None
        except Exception as error:  # noqa: BLE001 - whatever else a client raises, on a broken answer say
            raise Unreachable(f"it cannot be used ({error_words(error)})") from None


def _refuse(error: Exception) -> NoReturn:
    raise Refused(_words(error)) from None


def _words(error: Exception) -> str:
    """An error by its type, and by the server's own description, which names no secrets."""
    described = getattr(error, "description", None)
    return f"{error_words(error)}: {described}" if described else error_words(error)


def _note_of(message: Message, *, postpone: bool) -> bytes:
    excused = _delivered(message.raw) - message.attempts + 1
    return json.dumps({"postponed": message.postponed + postpone, "excused": excused}).encode()


def _delivered(raw: Msg) -> int:
    return raw.metadata.num_delivered
