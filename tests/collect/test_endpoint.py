"""`steelyard collect` as programs and their users see it: a process, real requests, a crash."""

from __future__ import annotations

import asyncio
import os
import signal
from contextlib import closing
from pathlib import Path

import pytest
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace.export import SpanExportResult

from collect.parts import (
    ANSWER,
    JSON,
    PROTOBUF,
    QUESTION,
    free_port,
    otlp_json,
    protobuf,
    scored,
    serving,
    spooled,
    trace_of,
    turn_spans,
)
from servers import NatsServer
from steelyard.online import SpoolSettings
from steelyard.online.queue._open import open_queue
from steelyard.online.queue._turns import Leased
from steelyard.report import TurnFilter, open_results
from waiting import until

SOON = ("--quiet", "0.2", "--ttl", "30")


def test_turns_sent_by_the_real_exporter_and_as_json_are_scored(tmp_path: Path) -> None:
    with serving(tmp_path, *SOON) as endpoint:
        exporter = OTLPSpanExporter(endpoint=f"http://127.0.0.1:{endpoint.port}/v1/traces")
        assert exporter.export(turn_spans()) is SpanExportResult.SUCCESS
        exporter.shutdown()  # type: ignore[no-untyped-call]
        reply = endpoint.post(otlp_json(turn_spans(question="Which country is Paris in?")), JSON)
        assert (reply.status, reply.json()) == (200, {})
        until(lambda: len(scored(tmp_path)) == 2)
        until(lambda: endpoint.counts()["journal_bytes"] == 0)
    assert set(scored(tmp_path).values()) == {QUESTION, "Which country is Paris in?"}


@pytest.mark.parametrize("named", ["", "ours"])
def test_turns_whose_spans_name_no_session_are_given_that_of_their_request(
    tmp_path: Path, named: str
) -> None:
    with serving(tmp_path, *SOON) as endpoint:
        for number, encoded in enumerate((protobuf, otlp_json)):
            kind = (PROTOBUF, JSON)[number]
            spans = turn_spans(
                question=f"Question {number} of two?", session=f"{named}{number}" if named else ""
            )
            assert endpoint.post(encoded(spans), {**kind, "x-session-id": f"s{number}"}).status == 200
        until(lambda: len(scored(tmp_path)) == 2)
    with closing(open_results(str(tmp_path / "steelyard.db"))) as results:
        for number in range(2):
            (row,) = results.turns(TurnFilter(session=f"{named or 's'}{number}"))
            assert row.question == f"Question {number} of two?"


def test_a_turn_whose_spans_come_in_several_requests_in_any_order_is_one_record(tmp_path: Path) -> None:
    retriever, model, chain = turn_spans()
    with serving(tmp_path, "--quiet", "0.2", "--ttl", "30") as endpoint:
        assert endpoint.post(protobuf([model])).status == 200
        until(lambda: endpoint.counts()["assembled"].get("spans") == 1)
        assert endpoint.post(protobuf([chain])).status == 200
        until(lambda: endpoint.counts()["assembled"].get("spans") == 2)
        assert endpoint.post(protobuf([retriever])).status == 200
        until(lambda: len(scored(tmp_path)) == 1)
        counts = endpoint.counts()["assembled"]
    assert (counts["turns"], counts["spans"]) == (1, 3)
    assert list(scored(tmp_path)) == [f"{trace_of([chain])}-{chain.context.span_id:016x}"]


def test_after_a_kill_nothing_is_missing_and_half_a_turn_meets_its_other_half(tmp_path: Path) -> None:
    turns = [turn_spans(question=f"Question {number} of many?") for number in range(60)]
    retriever, model, chain = turn_spans()
    with serving(tmp_path, "--no-judge", "--quiet", "0.05") as endpoint:
        assert endpoint.post(protobuf([retriever, model])).status == 200
        acknowledged = [trace_of([chain])]
        for number, spans in enumerate(turns):
            assert endpoint.post(protobuf(spans)).status == 200
            acknowledged.append(trace_of(spans))
            if number == 40:
                os.kill(endpoint.process.pid, signal.SIGKILL)
                break
    with serving(tmp_path, "--no-judge", "--quiet", "0.05") as endpoint:
        until(lambda: endpoint.counts()["held_spans"] == 2)
        assert endpoint.post(protobuf([chain])).status == 200
        until(lambda: len(spooled(tmp_path / "steelyard.spool")) >= len(acknowledged))
    found = [name.partition("-")[0] for name in spooled(tmp_path / "steelyard.spool")]
    assert sorted(found) == sorted(acknowledged)


def test_turns_wait_for_their_broker_and_a_kill_loses_none_and_puts_none_in_twice(tmp_path: Path) -> None:
    questions = [f"Question {number} of many?" for number in range(20)]
    server = NatsServer(tmp_path)
    options = ("--no-judge", "--quiet", "0.05", "--spool", url := server.queue())
    try:
        with serving(tmp_path, *options) as endpoint:
            for question in questions[:10]:
                assert endpoint.post(protobuf(turn_spans(question=question))).status == 200
            server.start()
            until(lambda: endpoint.counts()["journal_bytes"] == 0)
            for question in questions[10:]:
                assert endpoint.post(protobuf(turn_spans(question=question))).status == 200
            os.kill(endpoint.process.pid, signal.SIGKILL)
        with serving(tmp_path, *options) as endpoint:
            until(lambda: endpoint.counts()["journal_bytes"] == 0)
        assert sorted(asyncio.run(questions_on(url, len(questions)))) == sorted(questions)
    finally:
        server.stop()


async def questions_on(url: str, least: int) -> list[str]:
    """The questions of the turns on a broker, once there are so many."""
    queue = open_queue(SpoolSettings(path=url))
    await queue.open()
    found: list[str] = []
    async with asyncio.timeout(60):
        while len(found) < least:
            leased = await queue.lease(2 * least)
            found += [one.turn.record.question for one in leased if isinstance(one, Leased)]
    counts = queue.counts()
    assert counts is not None
    assert (counts.accepted, counts.pending) == (least, least)
    await queue.close()
    return found


def test_what_is_left_of_unfinished_traces_is_said_at_the_end(tmp_path: Path) -> None:
    with serving(tmp_path, "--quiet", "30") as endpoint:
        assert endpoint.post(protobuf(turn_spans(answer=ANSWER))).status == 200
        endpoint.process.terminate()
        assert endpoint.process.stderr is not None
        said = endpoint.process.stderr.read()
    assert "3 spans in 1 request, 0 turns" in said
    assert "1 piece of unfinished traces" in said


def test_serve_takes_spans_beside_its_pages(tmp_path: Path) -> None:
    with serving(tmp_path, "--collect", command="serve", port=free_port()) as endpoint:
        assert endpoint.post(protobuf(turn_spans())).status == 200
        assert endpoint.get("/").status == 200
        endpoint.process.terminate()
        assert endpoint.process.stderr is not None
        assert "1 piece of unfinished traces" in endpoint.process.stderr.read()
