"""What the endpoint answers to requests of every kind, good and hostile."""

from __future__ import annotations

import asyncio
import gzip
import json
import threading
import zlib
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
from google.rpc.status_pb2 import Status
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)

from collect.parts import JSON, PROTOBUF, otlp_json, protobuf, stored, turn_spans
from collect.running import HERE, Running
from steelyard.collect import app
from steelyard.errors import ConfigurationError
from waiting import until

TOKEN = "a-token-that-is-long-enough"


def test_gzip_and_deflate_are_unpacked(running: Running) -> None:
    body = protobuf(turn_spans())
    for packed, name in ((gzip.compress(body), "gzip"), (zlib.compress(body), "deflate")):
        assert running.ask(packed, {**PROTOBUF, "content-encoding": name}).status_code == 200
    assert running.collector.counts.spans == 6


def test_spans_without_ids_are_refused_by_number_and_the_rest_is_taken(running: Running) -> None:
    request = ExportTraceServiceRequest.FromString(protobuf(turn_spans()))
    request.resource_spans[0].scope_spans[0].spans[0].trace_id = b"\0" * 16
    request.resource_spans[0].scope_spans[0].spans[1].span_id = b"short"
    reply = running.ask(request.SerializeToString())
    partial = ExportTraceServiceResponse.FromString(reply.content).partial_success
    assert (reply.status_code, partial.rejected_spans) == (200, 2)
    assert "trace id" in partial.error_message
    data = json.loads(otlp_json(turn_spans()))
    data["resourceSpans"][0]["scopeSpans"][0]["spans"][0]["traceId"] = "nonsense"
    data["resourceSpans"][0]["scopeSpans"][0]["spans"].append("no span")
    assert running.ask(json.dumps(data).encode(), JSON).json()["partialSuccess"]["rejectedSpans"] == "2"
    counts = running.collector.counts
    assert (counts.spans, counts.refused_spans) == (3, 4)


DEEP_JSON = b'{"resourceSpans":' + b"[" * 100_000 + b"]" * 100_000 + b"}"


def deep_protobuf(depth: int) -> bytes:
    """A span with an attribute whose value nests this deep."""
    value = b"\x0a\x01x"
    for _ in range(depth):
        inner = b"\x0a" + _varint(len(value)) + value
        value = b"\x2a" + _varint(len(inner)) + inner
    pair = b"\x0a\x01k\x12" + _varint(len(value)) + value
    span = b"\x0a\x10" + b"1" * 16 + b"\x12\x08" + b"2" * 8 + b"\x4a" + _varint(len(pair)) + pair
    scope = b"\x12" + _varint(len(span)) + span
    block = b"\x12" + _varint(len(scope)) + scope
    return b"\x0a" + _varint(len(block)) + block


def _varint(number: int) -> bytes:
    made = bytearray()
    while number > 0x7F:
        made.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*made, number])


@pytest.mark.parametrize(
    ("body", "headers", "status", "cause"),
    [
        (protobuf(turn_spans())[:-7], PROTOBUF, 400, "unreadable"),
        (otlp_json(turn_spans())[:-7], JSON, 400, "unreadable"),
        (b'{"resourceSpans": 3}', JSON, 400, "unreadable"),
        (b"[]", JSON, 400, "unreadable"),
        (b"\xff\xfe\x00", JSON, 400, "unreadable"),
        (DEEP_JSON, JSON, 400, "unreadable"),
        (deep_protobuf(5_000), PROTOBUF, 400, "unreadable"),
        (b"text", {"content-type": "text/plain"}, 415, "content_type"),
        (b"x", {**PROTOBUF, "content-encoding": "br"}, 400, "encoding"),
        (b"not gzip", {**PROTOBUF, "content-encoding": "gzip"}, 400, "encoding"),
        (gzip.compress(b"a" * 9000)[:-9], {**PROTOBUF, "content-encoding": "gzip"}, 400, "encoding"),
        (b"x" * 2_000_000, PROTOBUF, 413, "too_large"),
        (gzip.compress(b"\0" * 2_000_000), {**PROTOBUF, "content-encoding": "gzip"}, 413, "too_large"),
    ],
    ids=lambda value: f"{len(value)}" if isinstance(value, bytes) else None,
)
def test_what_cannot_be_read_is_refused_by_name(
    running: Running, body: bytes, headers: dict[str, str], status: int, cause: str
) -> None:
    reply = running.ask(body, headers, max_body=1_000_000)
    assert (reply.status_code, running.refused) == (status, {cause: 1})
    is_json = headers["content-type"] != PROTOBUF["content-type"]
    said = reply.json() if is_json else Status.FromString(reply.content)
    # Of `google.rpc.Code`: an argument that is invalid need not be sent again.
    assert (said["code"] == 3 and said["message"]) if is_json else (said.code == 3 and said.message)
    assert len(running.journal) == 0


def test_a_bomb_is_not_unpacked_further_than_allowed(running: Running) -> None:
    import tracemalloc

    bomb = gzip.compress(b"\0" * 80_000_000, 9)
    tracemalloc.start()
    try:
        reply = running.ask(bomb, {**PROTOBUF, "content-encoding": "gzip"}, max_body=1_000_000)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert reply.status_code == 413
    assert peak < 20_000_000


def test_a_packed_body_of_nothing_is_bounded_too(running: Running) -> None:
    async def nothing() -> AsyncIterator[bytes]:
        # A header of gzip, then blocks that hold nothing.
        yield b"\x1f\x8b\x08" + bytes(7)
        for _ in range(100):
            yield b"\x00\x00\x00\xff\xff" * 100

    headers = {**PROTOBUF, "content-encoding": "gzip"}
    assert running.ask(nothing(), headers, max_body=10_000).status_code == 413


def test_values_that_nest_as_deep_as_allowed_are_read(running: Running) -> None:
    assert running.ask(deep_protobuf(20)).status_code == 200
    nested: dict[str, Any] = {"stringValue": "x"}
    for _ in range(300):
        nested = {"arrayValue": {"values": [nested]}}
    data = json.loads(otlp_json(turn_spans()))
    spans = data["resourceSpans"][0]["scopeSpans"][0]["spans"]
    spans[0]["attributes"].append({"key": "k", "value": nested})
    assert running.ask(json.dumps(data).encode(), JSON).status_code == 200
    running.collector.start()
    until(lambda: running.collector.counts.assembled.get("turns") == 1)
    assert running.collector.counts.unreadable == 0


def test_a_body_without_a_length_is_bounded(running: Running) -> None:
    async def pieces() -> AsyncIterator[bytes]:
        for _ in range(3):
            yield b"x" * 500_000

    assert running.ask(pieces(), PROTOBUF, max_body=1_000_000).status_code == 413


@pytest.mark.parametrize(("bound", "pause"), [("_SECONDS_FOR_A_BODY", 0.02), ("_SECONDS_FOR_A_PIECE", 60)])
def test_a_sender_that_drips_or_stops_is_not_waited_for(
    running: Running, monkeypatch: pytest.MonkeyPatch, bound: str, pause: float
) -> None:
    monkeypatch.setattr(f"steelyard.collect._app.{bound}", 0.2)

    async def drips() -> AsyncIterator[bytes]:
        for _ in range(500):
            yield b"x"
            await asyncio.sleep(pause)

    assert running.ask(drips()).status_code == 408
    assert running.refused == {"timeout": 1} and running.collector.counts.spans == 0


def test_without_the_token_no_counts_are_told(running: Running) -> None:
    async def ask(headers: dict[str, str]) -> int:
        transport = httpx.ASGITransport(app(running.collector, token=TOKEN))
        async with httpx.AsyncClient(transport=transport, base_url=HERE) as client:
            return (await client.get("/healthz", headers=headers)).status_code

    assert asyncio.run(ask({})) == 401
    assert asyncio.run(ask({"authorization": f"Bearer {TOKEN}"})) == 200


def test_without_the_token_nothing_is_taken(running: Running) -> None:
    body = protobuf(turn_spans())
    for given in ({}, {"authorization": "Bearer wrong"}, {"authorization": f"Basic {TOKEN}"}):
        assert running.ask(body, {**PROTOBUF, **given}, token=TOKEN).status_code == 401
    reply = running.ask(body, {**PROTOBUF, "authorization": f"Bearer {TOKEN}"}, token=TOKEN)
    assert reply.status_code == 200
    assert running.refused == {"token": 3}
    with pytest.raises(ConfigurationError, match="at least 16 characters"):
        app(running.collector, token="fifteen letters")


def test_a_page_that_points_its_own_name_here_is_refused(running: Running) -> None:
    assert running.ask(protobuf(turn_spans()), at="http://evil.example").status_code == 421
    assert running.ask(b"", method="GET").status_code == 405


def test_a_full_journal_asks_senders_to_come_back_and_takes_them_later(tmp_path: Path) -> None:
    body = protobuf(turn_spans())
    running = Running(tmp_path, max_bytes=int(2.5 * stored(body)))
    try:
        replies = [running.ask(protobuf(turn_spans())) for _ in range(4)]
        assert [reply.status_code for reply in replies] == [200, 200, 503, 503]
        assert replies[-1].headers["retry-after"] == "5"
        assert Status.FromString(replies[-1].content).code == 14
        running.collector.start()
        until(lambda: running.journal.bytes == 0)
        assert running.ask(body).status_code == 200
        until(lambda: running.monitor.stats().spooled == 3)
    finally:
        running.close()


def test_requests_side_by_side_do_not_pass_the_bound_of_the_journal_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Counted with what waits and what is being stored, also for a sender that has gone away meanwhile."""
    running = Running(tmp_path, max_bytes=250)
    begun, go_on, add = threading.Event(), threading.Event(), running.journal.add

    def slowly(exports: Sequence[Mapping[str, bytes]]) -> None:
        begun.set()
        go_on.wait(60)
        add(exports)

    async def main() -> list[None | BaseException]:
        export = SimpleNamespace(pieces={"a": b"x" * 100}, spans=1, log_records=0, refused=0)
        first = asyncio.create_task(running.collector.store(export))
        await asyncio.to_thread(begun.wait, 60)
        others = [asyncio.create_task(running.collector.store(export)) for _ in range(3)]
        await asyncio.sleep(0)
        first.cancel()
        go_on.set()
        return await asyncio.gather(first, *others, return_exceptions=True)

    monkeypatch.setattr(running.journal, "add", slowly)
    try:
        found = [type(one).__name__ for one in asyncio.run(asyncio.wait_for(main(), 60))]
        assert found == ["CancelledError", "NoneType", "JournalFull", "JournalFull"]
        assert running.journal.bytes == 200
    finally:
        running.close()


async def beside_half_sent(
    running: Running, count: int, piece: bytes, body: bytes, **options: Any
) -> list[int]:
    """The status of an honest request beside others of which half came, then that of those."""
    served = app(running.collector, **options)
    let_go = asyncio.Event()

    async def slowly() -> AsyncIterator[bytes]:
        yield piece
        await let_go.wait()
        yield body[len(piece) :]

    transport = httpx.ASGITransport(served)
    async with httpx.AsyncClient(transport=transport, base_url=HERE) as client:
        slow = [
            asyncio.create_task(client.post("/v1/traces", content=slowly(), headers=PROTOBUF))
            for _ in range(count)
        ]
        await asyncio.sleep(0.1)
        honest = await client.post("/v1/traces", content=body, headers=PROTOBUF)
        let_go.set()
        return [honest.status_code, *[(await task).status_code for task in slow]]


def test_half_sent_bodies_hold_up_nobody(running: Running) -> None:
    body = protobuf(turn_spans())
    assert asyncio.run(beside_half_sent(running, 40, body[:10], body, max_requests=4)) == [200] * 41


def test_more_bytes_or_requests_at_once_than_there_is_room_for_are_sent_away(running: Running) -> None:
    body = protobuf(turn_spans())
    half = body[: len(body) // 2 + 1]
    beside = asyncio.run(beside_half_sent(running, 2, half, body, max_requests=1, max_body=len(body)))
    assert beside.count(429) == 2 and running.refused == {"busy": 2}
    many = asyncio.run(beside_half_sent(running, 16, body[:10], body, max_requests=1))
    assert many == [429, *[200] * 16]


def test_a_sender_that_goes_away_in_the_middle_is_counted_and_no_error(running: Running) -> None:
    part: dict[str, object] = {"type": "http.request", "body": b"x", "more_body": True}
    came: list[dict[str, object]] = [part, {"type": "http.disconnect"}]
    headers = [(b"host", b"127.0.0.1"), (b"content-type", b"application/x-protobuf")]
    scope = {"type": "http", "method": "POST", "path": "/v1/traces", "headers": headers, "query_string": b""}

    async def receive() -> dict[str, object]:
        return came.pop(0)

    async def send(_: object) -> None:
        """Nobody hears it."""

    asyncio.run(app(running.collector)(scope, receive, send))  # type: ignore[arg-type]
    assert running.refused == {"cut_off": 1}


def test_requests_that_were_answered_take_no_room(running: Running) -> None:
    body = protobuf(turn_spans())

    async def ask() -> list[int]:
        transport = httpx.ASGITransport(app(running.collector, max_requests=1, max_body=len(body)))
        async with httpx.AsyncClient(transport=transport, base_url=HERE) as client:
            asked = [await client.post("/v1/traces", content=body, headers=PROTOBUF) for _ in range(20)]
        return [answer.status_code for answer in asked]

    assert asyncio.run(ask()) == [200] * 20


def test_bytes_behind_the_end_of_a_compressed_body_are_refused(running: Running) -> None:
    packed = gzip.compress(protobuf(turn_spans()))
    headers = {**PROTOBUF, "content-encoding": "gzip"}
    for behind in (b"x", b"x" * 900_000):
        assert running.ask(packed + behind, headers, max_body=1_000_000).status_code == 400
    assert running.ask(packed, headers).status_code == 200
