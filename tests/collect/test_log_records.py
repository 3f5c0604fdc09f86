"""Content that is sent as log records beside spans without any: `POST /v1/logs`."""

from __future__ import annotations

import itertools
import json
import os
import signal
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import (
    ExportLogsServiceRequest,
    ExportLogsServiceResponse,
)
from opentelemetry.sdk._logs import ReadableLogRecord
from opentelemetry.sdk._logs.export import LogRecordExportResult
from opentelemetry.sdk.trace import ReadableSpan

from collect.parts import (
    ANSWER,
    JSON,
    PROTOBUF,
    QUESTION,
    call_with_logs,
    free_port,
    otlp_json,
    protobuf,
    scored,
    serving,
    stored,
    trace_of,
)
from collect.running import Running
from steelyard_opentelemetry.received import ReceivedSpans
from waiting import until

TOKEN = "a-token-that-is-long-enough"


def take(
    reader: ReceivedSpans,
    items: Sequence[ReadableSpan] | Sequence[ReadableLogRecord],
    now: float,
    encode: Callable[..., bytes] = protobuf,
) -> None:
    is_logs = isinstance(items[0], ReadableLogRecord)
    export = reader.read(encode(items), is_json=encode is otlp_json, signal="logs" if is_logs else "traces")
    for piece in export.pieces.values():
        reader.take(piece, now)


@pytest.mark.parametrize("encode", [protobuf, otlp_json])
@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_spans_and_their_content_meet_in_any_order_and_encoding(
    encode: Callable[..., bytes], order: tuple[int, ...]
) -> None:
    reader = ReceivedSpans(quiet=1.0, ttl=60.0)
    spans, (asked, said, other) = call_with_logs()
    requests: list[Any] = [spans, [said, other], [asked]]
    for moment, which in enumerate(order):
        take(reader, requests[which], 0.5 * moment, encode)
        assert reader.ready(0.5 * moment) == []
    (record,) = reader.ready(2.5)
    assert (record.question, record.answer, record.contexts_source) == (QUESTION, ANSWER, "in_prompt")
    assert (reader.spans, reader.holds(trace_of(spans))) == (0, False)


def test_spans_that_lack_an_answer_wait_for_the_log_records_that_have_it() -> None:
    reader = ReceivedSpans(quiet=1.0, ttl=60.0)
    spans, logs = call_with_logs()
    take(reader, spans, 0.0)
    assert reader.ready(40.0) == []
    take(reader, logs, 50.0)
    (record,) = reader.ready(52.0)
    assert (record.question, record.answer, record.contexts_source) == (QUESTION, ANSWER, "in_prompt")


def test_messages_that_come_in_the_wrong_order_are_read_in_that_of_their_times() -> None:
    reader = ReceivedSpans(quiet=1.0, ttl=60.0)
    spans, (_, said, _) = call_with_logs()
    _, (_, later, _) = call_with_logs(answer="Or did you mean Paris in Texas?")
    later.log_record.trace_id, later.log_record.span_id = said.log_record.trace_id, said.log_record.span_id
    later.log_record.timestamp = 3
    for logs in ([later], [said]):
        take(reader, logs, 0.0)
    take(reader, spans, 0.0)
    (record,) = reader.ready(2.0)
    assert record.answer == "Or did you mean Paris in Texas?"


def test_content_whose_span_never_comes_is_given_up_and_counted() -> None:
    reader = ReceivedSpans(quiet=1.0, ttl=60.0)
    spans, logs = call_with_logs()
    take(reader, logs, 0.0)
    assert reader.ready(59.0) == [] and reader.holds(trace_of(spans)) and reader.spans == 2
    assert reader.ready(61.0) == [] and not reader.holds(trace_of(spans)) and reader.spans == 0
    take(reader, spans, 70.0)
    assert reader.ready(300.0) == []
    assert reader.counts["log_records_without_span"] == 2


def test_content_that_comes_after_its_turn_was_recorded_is_given_up() -> None:
    reader = ReceivedSpans(quiet=1.0, ttl=60.0)
    spans, logs = call_with_logs()
    take(reader, logs, 0.0)
    take(reader, spans, 0.0)
    assert len(reader.ready(2.0)) == 1
    take(reader, logs, 3.0)
    assert reader.ready(70.0) == [] and reader.spans == 0
    assert reader.counts["log_records_without_span"] == 2


@pytest.mark.parametrize("encode", [protobuf, otlp_json])
def test_other_log_records_are_taken_and_not_kept(running: Running, encode: Callable[..., bytes]) -> None:
    _, (_, _, other) = call_with_logs()
    headers = JSON if encode is otlp_json else PROTOBUF
    reply = running.ask(encode([other]), headers, signal="logs")
    assert (reply.status_code, reply.content) == (200, b"{}" if encode is otlp_json else b"")
    counts = running.collector.counts
    assert (counts.requests, counts.log_records, counts.refused_log_records) == (1, 0, 0)
    assert len(running.journal) == 0


def test_content_that_names_no_span_is_refused_by_number(running: Running) -> None:
    _, logs = call_with_logs()
    request = ExportLogsServiceRequest.FromString(protobuf(logs))
    request.resource_logs[0].scope_logs[0].log_records[0].span_id = b""
    reply = running.ask(request.SerializeToString(), signal="logs")
    partial = ExportLogsServiceResponse.FromString(reply.content).partial_success
    assert (reply.status_code, partial.rejected_log_records) == (200, 1)
    assert "log records without a trace id" in partial.error_message
    data = json.loads(otlp_json(logs))
    del data["resourceLogs"][0]["scopeLogs"][0]["logRecords"][1]["traceId"]
    told = running.ask(json.dumps(data).encode(), JSON, signal="logs").json()["partialSuccess"]
    assert told["rejectedLogRecords"] == "1"
    counts = running.collector.counts
    assert (counts.log_records, counts.refused_log_records, counts.refused_spans) == (2, 2, 0)


def test_log_records_keep_to_the_bounds_that_hold_for_spans(tmp_path: Path) -> None:
    body = protobuf(call_with_logs()[1])
    running = Running(tmp_path, max_bytes=int(1.5 * stored(body, "logs")))
    try:
        assert running.ask(body, signal="logs", token=TOKEN).status_code == 401
        assert running.ask(b"no protobuf", signal="logs").status_code == 400
        assert running.ask(b'{"resourceLogs": {}}', JSON, signal="logs").status_code == 400
        assert running.ask(body, {"content-type": "text/plain"}, signal="logs").status_code == 415
        assert running.ask(body, signal="logs", max_body=100).status_code == 413
        assert running.ask(body, signal="logs", max_requests=0).status_code == 429
        replies = [running.ask(body, signal="logs") for _ in range(2)]
        assert [reply.status_code for reply in replies] == [200, 503]
        assert replies[1].headers["retry-after"] == "5"
    finally:
        running.collector.close()
        running.monitor.close(0)


def test_content_survives_a_kill_and_meets_its_span_after_the_restart(tmp_path: Path) -> None:
    spans, logs = call_with_logs()
    with serving(tmp_path, "--quiet", "0.2", "--ttl", "60") as endpoint:
        exporter = OTLPLogExporter(endpoint=f"http://127.0.0.1:{endpoint.port}/v1/logs")
        assert exporter.export(logs) is LogRecordExportResult.SUCCESS
        exporter.shutdown()  # type: ignore[no-untyped-call]
        os.kill(endpoint.process.pid, signal.SIGKILL)
    with serving(tmp_path, "--quiet", "0.2", "--ttl", "60") as endpoint:
        until(lambda: endpoint.counts()["held_spans"] == 2)
        assert endpoint.post(protobuf(spans)).status == 200
        until(lambda: len(scored(tmp_path)) == 1)
        until(lambda: endpoint.counts()["journal_bytes"] == 0)
    assert list(scored(tmp_path).values()) == [QUESTION]


def test_serve_takes_log_records_beside_its_pages(tmp_path: Path) -> None:
    with serving(tmp_path, "--collect", command="serve", port=free_port()) as endpoint:
        _, logs = call_with_logs()
        reply = endpoint.post(otlp_json(logs), JSON, signal="logs")
        assert (reply.status, reply.json()) == (200, {})
