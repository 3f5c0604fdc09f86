"""What the endpoint answers to requests of every kind, good and hostile."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import json
import logging
import sqlite3
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
from opentelemetry.sdk.trace import ReadableSpan

from collect.parts import (
    ANSWER,
    JSON,
    PROTOBUF,
    QUESTION,
    otlp_json,
    plain_spans,
    protobuf,
    stored,
    trace_of,
    turn_spans,
)
from collect.running import HERE, Running
from steelyard import Context, Monitor, Record
from steelyard.collect import Collector, SpanJournal, app
from steelyard.errors import ConfigurationError
from steelyard.online import SpoolSettings
from steelyard_opentelemetry.received import ReceivedSpans
from waiting import until

TOKEN = "a-token-that-is-long-enough"
SHOWN = f"Here you are: {ANSWER}"


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


def test_a_spool_that_is_nearly_full_leaves_spans_in_the_journal(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    running = Running(tmp_path)
    running.monitor.close(0)
    settings = SpoolSettings(path=tmp_path / "small", evaluate=False, max_bytes=6_000)
    monitor = running.monitor = Monitor(metrics=[], sinks=[], spool=settings)
    running.collector = Collector(
        journal=running.journal, reader=ReceivedSpans(quiet=0.05, ttl=5.0), monitor=monitor
    )
    running.collector.start()
    try:
        with caplog.at_level(logging.WARNING, "steelyard.collect"):
            for number in range(40):
                assert running.ask(protobuf(turn_spans(question=f"Question {number}?"))).status_code == 200
            until(lambda: "full" in caplog.text)
        assert 0 < monitor.stats().spooled < 40
        until(lambda: len(running.journal) == 40 - monitor.stats().spooled)
    finally:
        running.close()


def test_a_turn_that_would_fit_waits_in_the_journal_while_the_spool_is_nearly_full(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    running = Running(tmp_path)
    running.monitor.close(0)
    settings = SpoolSettings(path=tmp_path / "small", evaluate=False, max_bytes=100_000)
    monitor = running.monitor = Monitor(metrics=[], sinks=[], spool=settings)
    monitor.submit(Record(question="Who?", contexts=(Context(text="Ann did."),), answer="Ann " * 23_000))
    assert monitor.flush(60) == 0
    running.collector = Collector(
        journal=running.journal, reader=ReceivedSpans(quiet=0.05, ttl=5.0), monitor=monitor
    )
    running.collector.start()
    try:
        with caplog.at_level(logging.WARNING, "steelyard.collect"):
            assert running.ask(protobuf(turn_spans(question="Which one?"))).status_code == 200
            until(lambda: "nearly full" in caplog.text or monitor.stats().spooled > 1)
        assert monitor.stats().spooled == 1
        assert len(running.journal) == 1
    finally:
        running.close()


@pytest.mark.parametrize(
    ("reason", "left"), [("queue_full", 1), ("queue_unavailable", 1), ("spool_full", 1), ("sampled_out", 0)]
)
def test_a_turn_for_which_there_was_no_room_stays_in_the_journal(
    running: Running, monkeypatch: pytest.MonkeyPatch, reason: str, left: int
) -> None:
    listens: list[Any] = []
    told: list[None] = []
    monkeypatch.setattr(running.monitor, "on_decision", listens.append)
    monkeypatch.setattr(
        running.monitor, "submit", lambda record: told.append(listens[0](record.trace, reason))
    )
    running.collector.start()
    assert running.ask(protobuf(turn_spans())).status_code == 200
    until(lambda: told)
    assert running.close() == left


@pytest.mark.parametrize("left", [0, 1])
def test_a_turn_leaves_the_journal_when_the_collector_closes_once_it_is_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, left: int
) -> None:
    monkeypatch.setattr("steelyard.collect._collector._TO_STORE", 0.1 if left else 60)
    running = Running(tmp_path)
    running.collector.start()
    until(lambda: running.monitor.stats().spool is not None)
    found: list[int] = []
    closing = threading.Thread(target=lambda: found.append(running.close()))
    with contextlib.closing(sqlite3.connect(tmp_path / "spool", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")  # so that nothing can be stored yet
        assert running.ask(protobuf(turn_spans())).status_code == 200
        until(lambda: running.monitor.stats().pending == 1)
        closing.start()
        if left:
            closing.join(60)
        other.execute("ROLLBACK")
    closing.join(60)
    assert found == [left]


def test_spans_without_model_work_leave_nothing_in_the_journal(running: Running) -> None:
    assert running.ask(protobuf(plain_spans(200))).status_code == 200
    running.collector.start()
    until(lambda: running.collector.counts.assembled.get("no_llm_spans") == 200)
    until(lambda: running.journal.bytes == 0)


def test_pieces_of_a_settled_trace_that_came_later_stay_in_the_journal(tmp_path: Path) -> None:
    journal = SpanJournal(tmp_path / "spans")
    journal.add([{"a": b"first", "b": b"other"}, {"a": b"second"}])
    (upto, _, _), *_ = journal.after(0)
    journal.forget(["a"], upto=upto)
    assert [(trace, body) for _, trace, body in journal.after(0)] == [("b", b"other"), ("a", b"second")]
    assert journal.bytes == len(b"othersecond")
    journal.close()


def test_a_piece_that_is_read_while_its_trace_is_settled_stays_in_the_journal(
    running: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its turn is not stored yet: a crash would lose it."""
    held: set[str] = set()
    journal, after = running.journal, running.journal.after
    monkeypatch.setattr(running.collector.reader, "take", lambda body, now: held.update(body.decode()))
    monkeypatch.setattr(running.collector.reader, "holds", held.__contains__)

    def with_one_that_comes_later(seq: int) -> list[tuple[int, str, bytes]]:
        if seq and len(journal) < 3 and not held:
            journal.add([{"a": b"a"}])
        return after(seq)

    monkeypatch.setattr(journal, "after", with_one_that_comes_later)
    journal.add([{"a": b"", "b": b""}])
    running.collector.start()
    until(lambda: len(journal) == 1 and held == {"a"})
    assert [(trace, body) for _, trace, body in after(0)] == [("a", b"a")]


def test_a_turn_that_was_lost_in_the_reader_stays_in_the_journal(
    running: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    ready, lost = running.collector.reader.ready, list[Record]()

    def fails_once(now: float) -> list[Record]:
        found = ready(now)
        if found and not lost:
            lost.extend(found)
            raise ZeroDivisionError
        return found

    monkeypatch.setattr(running.collector.reader, "ready", fails_once)
    running.collector.start()
    for spans in (first := turn_spans()), turn_spans():
        assert running.ask(protobuf(spans)).status_code == 200
        until(lambda: lost)
    until(lambda: running.monitor.stats().spooled == 1)
    until(lambda: [trace for _, trace, _ in running.journal.after(0)] == [trace_of(first)])
    assert running.close() == 1


def test_what_is_held_has_a_bound_beyond_which_the_journal_fills_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("steelyard.collect._collector._MOST_HELD", 2)
    running = Running(tmp_path)
    whole = turn_spans(shown=SHOWN)
    running.collector.start()
    try:
        for spans in whole[:-1], turn_spans():
            assert running.ask(protobuf(spans)).status_code == 200
            until(lambda: running.collector.counts.held_spans == len(whole) - 1)
        # What has its root comes after what has none, for which the reader waits until it gives up.
        until(lambda: running.monitor.stats().spooled == 2)
        with contextlib.closing(sqlite3.connect(tmp_path / "spool")) as spool:
            names = [name for (name,) in spool.execute("SELECT record_id FROM turns ORDER BY seq")]
        assert names[0].startswith(trace_of(whole))
    finally:
        running.close()


def test_nothing_of_settled_spans_stays_in_the_journal(tmp_path: Path) -> None:
    """Whether they are short or lie in pages of their own."""
    journal = SpanJournal(tmp_path / "spans")
    journal.add([{"a": b"polonium", "b": b"polonium " * 5000}])
    journal.forget(["a", "b"], upto=2)
    journal.close()
    assert b"polonium" not in journal.path.read_bytes()


def test_a_journal_that_is_open_already_is_refused(running: Running) -> None:
    with pytest.raises(ConfigurationError, match="another process has it open"):
        SpanJournal(running.journal.path)


def test_a_file_of_another_program_is_refused_and_left_alone(tmp_path: Path) -> None:
    other = tmp_path / "notes"
    other.write_text("my notes, which are no database and long enough to be looked at")
    with pytest.raises(ConfigurationError, match="not a journal"):
        SpanJournal(other)
    assert other.read_text().startswith("my notes")


def take(reader: ReceivedSpans, spans: Sequence[ReadableSpan], now: float) -> None:
    for piece in reader.read(protobuf(spans), is_json=False).pieces.values():
        reader.take(piece, now)


def test_a_parent_that_has_not_come_is_waited_for() -> None:
    reader, spans = ReceivedSpans(quiet=1.0, ttl=60.0), turn_spans(shown=SHOWN)
    take(reader, spans[:-1], now=100.0)
    assert reader.ready(110.0) == [] and reader.holds(trace_of(spans))
    take(reader, spans[-1:], now=130.0)
    (record,) = reader.ready(132.0)
    assert (record.question, record.answer, len(record.contexts)) == (QUESTION, SHOWN, 2)
    assert reader.ready(1000.0) == []


def test_a_parent_that_never_comes_is_not_waited_for_for_ever() -> None:
    reader, spans = ReceivedSpans(quiet=1.0, ttl=60.0), turn_spans(shown=SHOWN)
    take(reader, spans[:-1], now=100.0)
    assert reader.ready(150.0) == []
    (record,) = reader.ready(400.0)
    assert (record.question, record.answer, len(record.contexts)) == (QUESTION, ANSWER, 2)
    assert not reader.holds(trace_of(spans))


def orphan(number: int) -> bytes:
    """A request with a span of a service whose parents never come."""
    attributes = [{"key": "openinference.span.kind", "value": {"stringValue": "RETRIEVER"}}]
    times = {"startTimeUnixNano": str(10**18 + number), "endTimeUnixNano": str(10**18 + number + 1)}
    ids = {"traceId": f"{number:032x}", "spanId": f"{number:016x}", "parentSpanId": "f" * 16}
    spans = [{**ids, **times, "name": "retriever", "attributes": attributes}]
    scopes = [{"scope": {"name": "openinference.instrumentation.langchain"}, "spans": spans}]
    service = [{"key": "service.name", "value": {"stringValue": "noise"}}]
    return json.dumps(
        {"resourceSpans": [{"resource": {"attributes": service}, "scopeSpans": scopes}]}
    ).encode()


def test_a_service_whose_parents_never_come_is_not_waited_for_once_it_holds_very_many() -> None:
    reader, spans = ReceivedSpans(quiet=1.0, ttl=60.0, most_of_sender=100), turn_spans(shown=SHOWN)
    take(reader, spans[:-1], now=100.0)
    for number in range(1, 401):
        (piece,) = reader.read(orphan(number), is_json=True).pieces.values()
        reader.take(piece, 100.0 + number / 1000)
    reader.ready(100.5)
    assert reader.spans == len(spans) - 1 + 400
    for now in (101.0, 102.0, 103.0):
        reader.ready(now)
    # What is within the bound waits as ever, and so does the other service.
    assert len(spans) - 1 < reader.spans <= len(spans) - 1 + 100
    take(reader, spans[-1:], now=130.0)
    (record,) = reader.ready(132.0)
    assert (record.question, record.answer) == (QUESTION, SHOWN)
    reader.ready(200.0)
    assert reader.spans == 0
