"""What all vendors' sinks do alike: parallel requests, refusals one by one, one state for each Score."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any

import pytest

from sinks.making import make_evaluation, make_score
from sinks.vendor_server import Answer, Request, VendorServer
from sinks.vendors.makers import MAKERS
from steelyard.errors import ConfigurationError, SinkError
from steelyard.record import TraceRef
from steelyard.results.counts import ScoreCounts
from steelyard.scores import Evaluation
from steelyard.sinks import DatadogSink, LangSmithSink, MLflowSink, PhoenixSink
from steelyard.sinks._client import _parsed
from writing import write

KEY = "planted-key-5d1e"
TEXT = "planted text of an answer"

every_vendor = pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
one_by_one = pytest.mark.parametrize(
    "make", [MAKERS["mlflow"], MAKERS["langsmith"]], ids=["mlflow", "langsmith"]
)


def turn(number: int, *metrics: str, **changes: Any) -> Evaluation:
    ref = TraceRef(trace_id=f"{number + 1:032x}", span_id=f"{number + 1:016x}", run_id=f"{number:032x}")
    scores = [make_score(metric, id=f"{number}-{metric}") for metric in metrics or ("faithfulness",)]
    return make_evaluation(f"r{number}", *scores, **{"trace": ref, **changes})


@every_vendor
@pytest.mark.parametrize("poisoned", [0, 5, 10])
def test_one_refused_score_takes_no_other_along(make: Callable[[str], Any], poisoned: int) -> None:
    arrived: list[str] = []

    def answer(request: Request) -> Answer:
        sent = json.dumps(request.body)
        if "poison" in sent:
            return 422, {}
        arrived.extend(f"r{number}" for number in range(11) if f'"r{number}"' in sent)
        return 200, {}

    turns = [turn(number, "poison" if number == poisoned else "faithfulness") for number in range(11)]
    with VendorServer(answer) as server:
        sink = make(server.url)
        write(sink, *turns)
    assert sorted(set(arrived)) == sorted({f"r{n}" for n in range(11)} - {f"r{poisoned}"})
    assert sink.counts == ScoreCounts(written=10, refused={"rejected": 1})


@every_vendor
@pytest.mark.parametrize(
    ("odd", "counts"),
    [
        ({"trace": 3}, ScoreCounts(written=2, refused={"unstorable": 1})),
        ({"evaluated_at": float("inf")}, ScoreCounts(written=3)),
        ({"evaluated_at": float("nan")}, ScoreCounts(written=3)),
        ({"evaluated_at": 1e300}, ScoreCounts(written=3)),
    ],
    ids=["trace", "infinite clock", "no clock", "late clock"],
)
def test_odd_values_take_no_other_score_along(
    make: Callable[[str], Any], odd: dict[str, Any], counts: ScoreCounts
) -> None:
    with VendorServer(lambda request: (200, {})) as server:
        sink = make(server.url)
        write(sink, turn(0), turn(1, **odd), turn(2))
    assert sink.counts == counts


@every_vendor
def test_what_arrived_before_a_failure_is_not_sent_again(make: Callable[[str], Any]) -> None:
    numbers = count()
    failing = threading.Event()
    failing.set()

    def answer(request: Request) -> Answer:
        fails = failing.is_set() and request.method == "POST" and next(numbers) >= 2
        return (503, {}) if fails else (200, {})

    turns = [turn(number) for number in range(230)]
    with VendorServer(answer) as server:
        sink = make(server.url)
        with pytest.raises(SinkError) as caught:
            write(sink, *turns)
        before = sink.counts
        assert caught.value.cause == "unavailable"
        assert 0 < before.written < 230
        assert before.lost == {"unavailable": 230 - before.written}
        failing.clear()
        del server.requests[:]
        write(sink, *turns)
        sent = sum(json.dumps(one.body).count('"steelyard.record.id"') for one in server.requests)
    assert sent == 230 - before.written
    assert sink.counts == ScoreCounts(written=230)


@every_vendor
def test_every_score_is_in_exactly_one_place(make: Callable[[str], Any]) -> None:
    unsampled = TraceRef(trace_id="a" * 32, span_id="b" * 16, sampled=False)
    with VendorServer(lambda request: (200, {})) as server:
        sink = make(server.url)
        write(sink, turn(1, "a", "b"), turn(2, trace=None), turn(3, trace=unsampled), turn(1, "a", "b"))
    assert isinstance(sink.counts, ScoreCounts)
    assert sink.counts.total == 4
    assert sink.counts.written == 2
    assert sum(sink.counts.left_out.values()) == 2


@pytest.mark.parametrize("name", ["phoenix", "langfuse", "mlflow", "datadog"])
def test_unsampled_traces_are_not_asked_for(name: str) -> None:
    with VendorServer() as server:
        sink = MAKERS[name](server.url)
        write(sink, turn(1, trace=TraceRef(trace_id="a" * 32, span_id="b" * 16, sampled=False)))
    assert server.requests == []
    assert sink.counts == ScoreCounts(left_out={"unsampled": 1})


@one_by_one
def test_scores_are_sent_side_by_side(make: Callable[[str], Any]) -> None:
    turns = [turn(number, "a", "b", "c", "d") for number in range(20)]
    with VendorServer(lambda request: (200, {}), delay=0.15) as server:
        sink = make(server.url)
        write(sink, *turns)
    assert sink.counts == ScoreCounts(written=80)
    assert server.peak >= 8


@every_vendor
@pytest.mark.parametrize("status", [401, 503])
def test_a_server_that_is_down_is_sent_little_of_what_there_is(
    make: Callable[[str], Any], status: int
) -> None:
    turns = [turn(number, "a", "b") for number in range(100)]
    with VendorServer(lambda request: (status, {})) as server:
        sink = make(server.url)
        with pytest.raises(SinkError):
            write(sink, *turns)
    assert sink.counts.total == sum(sink.counts.lost.values()) == 200
    # What is on the way when the first fails is all that comes: some have 24 connections.
    assert len(server.requests) <= 60


@one_by_one
def test_connections_are_kept(make: Callable[[str], Any]) -> None:
    with VendorServer(lambda request: (200, {})) as server:
        write(make(server.url), *[turn(number) for number in range(100)])
        assert len(server.requests) >= 100
        assert server.connections <= 24


@every_vendor
def test_nothing_a_server_echoes_is_logged_or_shown(
    make: Callable[[str], Any], caplog: pytest.LogCaptureFixture
) -> None:
    shown = []
    with caplog.at_level(logging.DEBUG):
        for status in (200, 302, 400, 401, 404, 409, 418, 429, 500):

            def answer(request: Request, status: int = status) -> Answer:
                return status, {"you sent": request.headers, "and": request.body, "text": TEXT}

            with VendorServer(answer) as server:
                sink = make(server.url.replace("//", f"//user:{KEY}@"))
                try:
                    write(sink, *[turn(number) for number in range(12)])
                except SinkError as error:
                    shown += [str(error), repr(error), repr(error.__cause__), repr(error.__context__)]
                shown += [repr(sink), str(vars(type(sink))), repr(sink.counts)]
    for part in (caplog.text, *shown):
        assert not [secret for secret in (KEY, TEXT, "-secret") if secret in part]
    assert any("HTTP 500" in part for part in shown)


@every_vendor
def test_that_nothing_arrives_is_logged_once_with_what_to_do(
    make: Callable[[str], Any], caplog: pytest.LogCaptureFixture
) -> None:
    turns = [turn(number, trace=None) for number in range(30)]
    with VendorServer() as server:
        sink = make(server.url)
        for one in turns:
            asyncio.run(sink.write([one]))
        write(sink)
    lines = [
        one.getMessage() for one in caplog.records if "has written none of 10 scores" in one.getMessage()
    ]
    assert len(lines) == 1
    assert "docs/reference/results.md" in lines[0]
    assert not [one for one in caplog.records[1:] if "written none" in one.getMessage()]


def test_a_sink_of_which_some_arrive_is_not_said_to_write_none(caplog: pytest.LogCaptureFixture) -> None:
    replies = count()
    with VendorServer(lambda request: (422 if next(replies) else 200, {})) as server:
        sink = MAKERS["langsmith"](server.url)
        write(sink, *[turn(number) for number in range(40)])
    assert sink.counts.written == 1 and sum(sink.counts.refused.values()) == 39
    assert "has written none" not in caplog.text


def test_a_short_program_hears_of_it_at_its_end(caplog: pytest.LogCaptureFixture) -> None:
    with VendorServer(lambda request: (404, {})) as server:
        write(MAKERS["mlflow"](server.url), turn(1))
    assert "written none of 1 scores (trace_not_found: 1); the server does not know" in caplog.text


def test_a_server_that_asks_for_a_pause_gets_it() -> None:
    times: list[float] = []

    def answer(request: Request) -> Answer:
        times.append(time.monotonic())
        return (429, {}) if len(times) == 1 else (202, {})

    with VendorServer(answer, headers={"Retry-After": "0.3"}) as server:
        sink = MAKERS["langsmith"](server.url, patience=60.0)
        write(sink, turn(1))
    assert times[1] - times[0] >= 0.3
    assert sink.counts == ScoreCounts(written=1)


@pytest.mark.parametrize("asked", ["1e9", "86400", "inf", "nan", "-1", "tomorrow"])
def test_a_pause_that_nobody_can_mean_is_as_if_none_were_asked_for(asked: str) -> None:
    replies: Iterator[Answer] = iter([(429, {}), (202, {})])
    with VendorServer(lambda request: next(replies), headers={"Retry-After": asked}) as server:
        sink = MAKERS["langsmith"](server.url, patience=60.0)
        write(sink, turn(1))
    assert sink.counts == ScoreCounts(written=1)


@contextmanager
def endless_server() -> Iterator[tuple[str, list[int]]]:
    """Replies with a body that never ends; tells how much of it was taken."""
    taken = [0]
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            connection, _ = listening.accept()
            with connection:
                connection.settimeout(5)
                connection.recv(1 << 20)
                connection.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
                piece = b"10000\r\n" + b" " * 0x10000 + b"\r\n"
                try:
                    while taken[0] < 1 << 27:
                        connection.sendall(piece)
                        taken[0] += len(piece)
                except OSError:
                    return

        thread = threading.Thread(target=serve)
        thread.start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}", taken
        thread.join()


def test_an_endless_reply_is_read_up_to_a_limit() -> None:
    with endless_server() as (url, taken):
        write(MAKERS["datadog"](url), turn(1))
    assert taken[0] < 32 * 1024 * 1024


def test_a_vendors_reply_of_very_many_parts_is_not_read() -> None:
    assert _parsed(b"[" + b"[]," * 10_000 + b"[]]") == [[]] * 10_001
    assert _parsed(b"[" + b"[]," * 200_000 + b"[]]") is None


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_has_connections_of_its_own() -> None:
    with VendorServer(lambda request: (200, {})) as server:
        sink = MAKERS["phoenix"](server.url)
        write(sink, turn(1))
        child = os.fork()
        if child == 0:
            try:
                write(sink, turn(2))
            finally:
                os._exit(0)
        os.waitpid(child, 0)
        write(sink, turn(3))
        assert [len(one.body["data"]) for one in server.requests] == [1, 1, 1]
        assert server.connections == 3  # of each loop, and none of another process


@pytest.mark.parametrize("key", ["two\nlines", "clé", "tab\t"])
def test_a_key_that_no_header_can_hold_is_refused_and_not_shown(key: str) -> None:
    with pytest.raises(ConfigurationError, match="characters that no header can hold") as caught:
        LangSmithSink("http://127.0.0.1:1", api_key=key)
    assert key not in str(caught.value)


def test_a_key_in_the_address_is_refused_and_not_shown() -> None:
    with pytest.raises(ConfigurationError, match="no query") as caught:
        PhoenixSink(f"http://127.0.0.1:1/?api_key={KEY}")
    assert KEY not in str(caught.value)


def test_user_and_password_in_the_address_become_a_header() -> None:
    with VendorServer() as server:
        write(MLflowSink(server.url.replace("//", "//user:pass%40word@"), token=None), turn(1))
    assert server.requests[0].headers["authorization"] == "Basic dXNlcjpwYXNzQHdvcmQ="


def test_an_address_is_named_without_user_and_password() -> None:
    with VendorServer() as server:
        address = server.url.replace("//", "//user:hidden-word@")
    with pytest.raises(SinkError) as caught:
        write(MLflowSink(address, token=None), turn(1))
    assert "127.0.0.1" in str(caught.value)
    assert "hidden-word" not in str(caught.value)


@pytest.mark.parametrize(
    ("trace_id", "sent"),
    [("0" * 16 + "f" * 16, str(2**64 - 1)), ("0af7651916cd43dd8448eb211c80319c",) * 2],
    ids=["64 bits", "128 bits"],
)
def test_datadog_ids_of_at_most_64_bits_are_decimal(trace_id: str, sent: str) -> None:
    with VendorServer(lambda request: (202, {})) as server:
        write(MAKERS["datadog"](server.url), turn(1, trace=TraceRef(trace_id=trace_id, span_id="f" * 16)))
    (metric,) = server.requests[0].body["data"]["attributes"]["metrics"]
    assert metric["join_on"]["span"] == {"trace_id": sent, "span_id": str(2**64 - 1)}


def test_datadog_waits_for_no_conversion_of_its_own_spans() -> None:
    with VendorServer(lambda request: (202, {})) as server:
        write(DatadogSink("app", api_key=KEY, url=server.url, tracer="ddtrace"), turn(1))
    (metric,) = server.requests[0].body["data"]["attributes"]["metrics"]
    assert metric["tags"] == ["ml_app:app"]
    with pytest.raises(ConfigurationError, match="'zipkin'"):
        DatadogSink("app", api_key=KEY, tracer="zipkin")  # type: ignore[arg-type]
