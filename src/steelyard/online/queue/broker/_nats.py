"""A queue on NATS JetStream, through nats-py."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, NoReturn

from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.errors import AuthorizationError, Error, MaxPayloadError, NoRespondersError
from nats.js import JetStreamContext
from nats.js.api import Header, PubAck, RawStreamMsg
from nats.js.errors import APIError, NoStreamResponseError, NotFoundError, ServiceUnavailableError

from steelyard._internal.redact import error_words
from steelyard._internal.warn_once import WarnOnce
from steelyard.online.queue._protocol import Stored
from steelyard.online.queue.broker._address import BrokerAddress
from steelyard.online.queue.broker._broker import Message, Outgoing, Refused, Totals, Unreachable
from steelyard.online.queue.broker._nats_pull import Puller
from steelyard.online.queue.broker._nats_requests import Requests
from steelyard.online.queue.broker._nats_streams import CONSUMER, Streams

_log = logging.getLogger("steelyard.online")
_ANSWER = 5.0
_LINGER = 0.5
_FULL = frozenset({10002, 10023, 10047, 10054, 10077})
"""Codes of the server for: no room, in the account, the server or the stream, or too large a message."""
_NOT_LAST = 10071
_API = "$JS.API"
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
        self._requests: Requests | None = None
        self._puller = Puller(f"{_API}.CONSUMER.MSG.NEXT.{self._streams.turns}.{CONSUMER}")
        # Where the results lie that this process has seen, by the numbers of their turns.
        self._results: dict[int, int] = {}
        self._problem: Exception | None = None
        self._last_result = 0
        self._warn = WarnOnce(_log)

    @property
    def lease_seconds(self) -> float:
        """How long a lease holds, as the server has it."""
        return self._lease_seconds

    async def connect(self) -> None:
        """Connect anew, create the streams that are missing, and bind to the consumer."""
        await self._disconnect()
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
                    closed_cb=self._ended,
                    user_credentials=self._address.options.get("credentials"),
                )
            self._jetstream = self._client.jetstream(timeout=_ANSWER)
            self._lease_seconds = await self._streams.ensure(self._jetstream)
            requests = Requests(self._client, seconds=_ANSWER)
            await requests.start()
            self._puller.start(self._client)
            self._requests = requests

    async def publish(self, turns: Sequence[Outgoing]) -> list[Stored | None]:
        """Publish side by side, and wait for the server's confirmations."""
        subject = f"{self._streams.name}.turns"
        results = await self._publish_all(
            [(subject, turn.body, {Header.MSG_ID: turn.key}) for turn in turns], stream=self._streams.turns
        )
        return [self._stored(result) for result in results]

    async def pull(self, most: int) -> list[Message]:
        """Lease the oldest turns; those that come again with what is known of them."""
        self._connected()
        async with self._translated():
            found = await self._puller.pull(most, patience=_LINGER)
            if not found:
                self._connected()
            return [await self._message(raw) for raw in found]

    async def extend(self, messages: Sequence[Message]) -> None:
        """Tell the server that turns are in progress, those that have come ahead of time too."""
        client, _, _ = self._connected()
        leases = [message.lease for message in messages] + [raw.reply for raw in self._puller.ahead]
        async with self._translated():
            for lease in leases:
                await client.publish(lease, b"+WPI")
            await client.flush(timeout=int(_ANSWER))

    async def keep_result(self, message: Message, body: Callable[[], bytes]) -> bool:
        """Store a result under its turn's number, unless there is one."""
        _, _, requests = self._connected()
        subject = f"{self._streams.name}.results.{message.seq}"
        headers = {"Nats-Expected-Last-Subject-Sequence": "0"}
        async with self._translated():
            for content in (body(), b""):  # one that is too large leaves at least its mark
                try:
                    stored = _acknowledged(await requests.ask(subject, content, headers))
                except MaxPayloadError:
                    self._warn("result", "a result is larger than NATS takes; it is delivered, but not kept")
                    continue
                except APIError as error:
                    if error.err_code != _NOT_LAST:
                        raise
                    # The confirmation of our own may have been lost with a connection.
                    return await self._result(message.seq) == content
                self._results[message.seq] = stored.seq
                return True
        return True

    async def acknowledge(self, messages: Sequence[Message]) -> None:
        """Acknowledge turns, and then delete what was kept beside them."""
        await self._settle([(message, b"+ACK") for message in messages])
        _, jetstream, _ = self._connected()
        async with self._translated():
            deleting: list[bytes] = []
            for message in messages:
                if place := self._results.pop(message.seq, 0):
                    deleting.append(b'{"seq":%d,"no_erase":true}' % place)
                else:
                    await jetstream.purge_stream(
                        self._streams.results, subject=f"{self._streams.name}.results.{message.seq}"
                    )
                if _delivered(message.raw) > 1:
                    await jetstream.purge_stream(
                        self._streams.notes, subject=f"{self._streams.name}.notes.{message.seq}"
                    )
            subject = f"{_API}.STREAM.MSG.DELETE.{self._streams.results}"
            await self._send_in_order([(subject, body) for body in deleting])

    async def give_back(self, messages: Sequence[Message], seconds: float, *, postpone: bool) -> bool:
        """Give turns back, and write down that this was no attempt.

        With those that have come ahead of time, where the process stops.
        """
        if not postpone:
            ahead = await self._puller.stop()
            messages = [*messages, *[await self._message(raw) for raw in ahead]]
        notes: list[tuple[str, bytes, dict[str, str]]] = [
            (f"{self._streams.name}.notes.{message.seq}", _note_of(message, postpone=postpone), {})
            for message in messages
        ]
        if notes:
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
        self._results.pop(message.seq, None)
        return True

    async def totals(self) -> Totals:
        """The ledger from the streams' numbers.

        What has left the stream of turns without a result or a dead letter was removed by somebody else; it
        counts as dead (`removed`).
        """
        _, jetstream, _ = self._connected()
        async with self._translated():
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
        ended = results.last_seq + dead.last_seq
        removed = turns.last_seq - ended - (turns.messages - undelivered)
        if removed > 0:
            causes["removed"] = removed
        pending = max(0, turns.last_seq - ended - max(0, removed))
        return Totals(
            accepted=pending + results.last_seq + sum(causes.values()),
            pending=pending,
            evaluated=results.last_seq,
            dead=causes,
            undelivered=undelivered,
            bytes=turns.bytes,
        )

    async def close(self) -> None:
        """Disconnect, and forget what is still leased."""
        await self._disconnect()
        self._puller.clear()
        self._results.clear()

    async def _disconnect(self) -> None:
        client, self._client, self._jetstream = self._client, None, None
        requests, self._requests = self._requests, None
        if client is not None:
            with contextlib.suppress(Exception):
                async with asyncio.timeout(1):
                    await client.close()
            # A server that hangs takes what is still to be sent from nobody, and the client waits for that.
            if (transport := getattr(client, "_transport", None)) is not None:
                with contextlib.suppress(Exception):
                    transport.close()
        if requests is not None:
            requests.close()

    def _connected(self) -> tuple[Client, JetStreamContext, Requests]:
        if self._client is None or self._jetstream is None or self._requests is None:
            raise Unreachable("there is no connection")
        if self._client.is_closed:
            raise Unreachable("the connection has ended")
        return self._client, self._jetstream, self._requests

    async def _ended(self) -> None:
        """The client has given its connection up; nobody waits for answers any longer."""
        if self._requests is not None:
            self._requests.close()

    async def _note(self, error: Exception) -> None:
        self._problem = error

    async def _publish_all(
        self, messages: Sequence[tuple[str, bytes, dict[str, str]]], *, stream: str
    ) -> list[PubAck | Exception | None]:
        """Publish side by side; the server's answer to each, None where none has come in time."""
        _, _, requests = self._connected()
        sent = [
            await self._sent(requests, subject, body, {**headers, Header.EXPECTED_STREAM: stream})
            for subject, body, headers in messages
        ]
        answers = await asyncio.gather(*sent, return_exceptions=True)
        known: list[PubAck | Exception | None] = []
        for answer in answers:
            if isinstance(answer, NoRespondersError):
                raise Unreachable("JetStream is not there, or the stream was deleted")
            if isinstance(answer, MaxPayloadError):
                known.append(answer)
            elif isinstance(answer, BaseException):
                self._connected()
                known.append(None)
            else:
                known.append(_answer_of(answer))
        return known

    async def _sent(
        self, requests: Requests, subject: str, body: bytes, headers: Mapping[str, str]
    ) -> Awaitable[Msg]:
        """A request on its way; where it could not be sent, the error comes as its answer."""
        try:
            return await requests.send(subject, body, headers)
        except (Error, OSError) as error:
            failed: asyncio.Future[Msg] = asyncio.get_running_loop().create_future()
            failed.set_exception(error)
            return failed

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
        async with self._translated():
            await self._send_in_order([(message.lease, word) for message, word in acknowledgements])

    async def _send_in_order(self, requests: Sequence[tuple[str, bytes]]) -> None:
        """Send requests, and wait for the answer to the last: the server works them off in order."""
        if not requests:
            return
        client, _, asking = self._connected()
        *before, (subject, body) = requests
        for earlier in before:
            await client.publish(*earlier)
        await asking.ask(subject, body)

    async def _message(self, raw: Msg) -> Message:
        seq = raw.metadata.sequence.stream
        delivered = raw.metadata.num_delivered
        note: dict[str, Any] = {}
        result = None
        if delivered > 1:
            result = await self._result(seq)
            written = await self._last(self._streams.notes, "notes", seq)
            with contextlib.suppress(ValueError):
                note = dict(json.loads((written.data if written else None) or b"{}"))
        return Message(
            seq=seq,
            lease=raw.reply,
            body=raw.data,
            attempts=delivered - int(note.get("excused", 0)),
            postponed=int(note.get("postponed", 0)),
            result=result,
            raw=raw,
        )

    async def _result(self, seq: int) -> bytes | None:
        """The result that was stored for a turn, by this process or another."""
        found = await self._last(self._streams.results, "results", seq)
        if found is None:
            return None
        self._results[seq] = found.seq or 0
        return found.data or b""

    async def _last(self, stream: str, kind: str, seq: int) -> RawStreamMsg | None:
        _, jetstream, _ = self._connected()
        try:
            return await jetstream.get_last_msg(stream, f"{self._streams.name}.{kind}.{seq}", direct=True)
        except NotFoundError:
            return None

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


def _answer_of(answer: Msg) -> PubAck | Exception:
    """What the server says of a message that was published."""
    said = json.loads(answer.data)
    if "error" not in said:
        return PubAck.from_response(said)
    try:
        APIError.from_error(said["error"])
    except APIError as error:
        return error
    raise AssertionError("an error is raised")


def _acknowledged(answer: Msg) -> PubAck:
    found = _answer_of(answer)
    if isinstance(found, Exception):
        raise found
    return found


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
