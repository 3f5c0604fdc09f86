"""What every vendor's sink owes: errors by name, no secrets, no text that was left out."""

from __future__ import annotations

import base64
import logging
from collections.abc import Callable
from typing import Any

import pytest

from sinks.making import TRACE, make_evaluation, make_score
from sinks.vendor_server import VendorServer
from sinks.vendors.makers import MAKERS, FakeMLflow, traced
from steelyard import Monitor, Record
from steelyard.errors import ConfigurationError, SinkError
from steelyard.record import TraceRef
from steelyard.scores import Score
from steelyard.sinks import DatadogSink, LangfuseSink, LangSmithSink, MLflowSink, PhoenixSink
from steelyard.testing import MemorySink
from writing import check, write

ABSENT = Score.not_applicable("m", cause="missing_answer", explanation="the record has no answer")

every_vendor = pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)


@every_vendor
def test_without_a_trace_there_is_nothing_to_hang_scores_on(make: Callable[[str], Any]) -> None:
    with VendorServer() as server:
        sink = make(server.url)
        write(sink, make_evaluation("a", trace=None), make_evaluation("b", trace=TraceRef(run_id="no-uuid")))
    assert server.requests == []
    assert sink.counts.total == sum(sink.counts.left_out.values()) == 4


@every_vendor
def test_what_does_not_apply_is_no_number(make: Callable[[str], Any]) -> None:
    with VendorServer() as server:
        write(make(server.url), make_evaluation("a", ABSENT, trace=traced().trace))
    for request in server.requests:  # only Phoenix has a place for it
        assert request.body["data"][0]["result"] == {
            "score": None,
            "label": "not_applicable",
            "explanation": "the record has no answer",
        }


@every_vendor
def test_a_check_asks_with_the_key_and_changes_nothing(make: Callable[[str], Any]) -> None:
    with VendorServer() as server:
        check(make(server.url))
    [request] = server.requests
    assert request.method == "GET" and "secret" in str(request.headers) + str(
        base64.b64decode(request.headers.get("authorization", "").removeprefix("Basic ") + "==")
    )
    with VendorServer(lambda request: (401, {})) as server:
        with pytest.raises(SinkError, match="HTTP 401") as raised:
            check(make(server.url))
        assert raised.value.cause == "unauthorized"
    # Where nobody knows of the question, it was another server.
    with VendorServer(lambda request: (404, {})) as server, pytest.raises(SinkError, match="HTTP 404"):
        check(make(server.url))
    # Whoever disputes the question has let us in.
    with VendorServer(lambda request: (422, {})) as server:
        check(make(server.url))


@every_vendor
@pytest.mark.parametrize(
    ("status", "cause"),
    [(401, "unauthorized"), (403, "unauthorized"), (429, "rate_limited"), (503, "unavailable")],
)
def test_a_server_that_refuses_is_an_error_by_name(
    make: Callable[[str], Any], status: int, cause: str
) -> None:
    with VendorServer(lambda request: (status, {"error": "no"})) as server:
        sink = make(server.url)
        with pytest.raises(SinkError, match=f"{sink.name}: HTTP {status}") as caught:
            write(sink, traced())
    assert caught.value.cause == cause
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("name", ["mlflow", "langsmith"])
def test_a_server_that_is_down_is_asked_by_no_more_than_are_under_way(name: str) -> None:
    scores = [make_score(f"m{number}") for number in range(100)]
    with VendorServer(lambda request: (503, {})) as server, pytest.raises(SinkError):
        write(MAKERS[name](server.url), make_evaluation("r1", *scores, trace=traced().trace))
    assert len(server.requests) <= 50


@every_vendor
def test_a_server_that_is_not_there(make: Callable[[str], Any]) -> None:
    with pytest.raises(SinkError, match="cannot be reached") as caught:
        write(make("http://127.0.0.1:1"), traced())
    assert caught.value.cause == "unreachable"


@every_vendor
def test_a_server_that_hangs(make: Callable[..., Any]) -> None:
    with VendorServer(delay=0.8) as server, pytest.raises(SinkError) as caught:
        write(make(server.url, timeout=0.5), traced())
    assert caught.value.cause == "timeout"


@every_vendor
def test_a_redirect_does_not_carry_the_key_elsewhere(make: Callable[[str], Any]) -> None:
    with VendorServer() as elsewhere:
        with VendorServer(lambda request: (302, elsewhere.url)) as server:
            sink: Any = make(server.url)
            # Of the server, not of what was sent: the results can wait until the address is right.
            with pytest.raises(SinkError, match="HTTP 302") as caught:
                write(sink, traced())
        assert elsewhere.requests == []
        assert caught.value.cause == "redirected"
        assert sink.counts.written == 0
        assert sink.counts.lost["redirected"] >= 1


@every_vendor
@pytest.mark.parametrize("status", [200, 404, 405])
@pytest.mark.parametrize("kind", ["text/html; charset=utf-8", "application/json"])
def test_a_web_page_in_place_of_an_api_takes_nothing(
    make: Callable[[str], Any], status: int, kind: str
) -> None:
    """A proxy that asks to log in, or a wrong address whose server has a page for everything."""
    page = b"\n<!doctype html><title>Sign in</title>"
    with VendorServer(lambda request: (status, page), headers={"Content-Type": kind}) as server:
        sink = make(server.url)
        with pytest.raises(SinkError, match=f"HTTP {status}") as caught:
            write(sink, traced())
        with pytest.raises(SinkError, match=f"HTTP {status}"):
            check(sink)
    assert caught.value.cause == "not_an_api"
    assert sink.counts.written == 0
    assert sink.counts.lost["not_an_api"] >= 1


@every_vendor
def test_no_text_of_the_turn_is_sent_but_the_explanation(make: Callable[[str], Any]) -> None:
    with VendorServer(FakeMLflow()) as server:
        write(make(server.url), traced())
    sent = str([request.body for request in server.requests])
    assert "Curie" not in sent


@every_vendor
def test_explanations_are_sent_unless_they_are_left_out(make: Callable[..., Any]) -> None:
    for wanted in (True, False):
        with VendorServer(FakeMLflow()) as server:
            sink = make(server.url, explanations=wanted)
            write(sink, traced())
            assert sink.counts.written
        assert ("One of two claims" in str([request.body for request in server.requests])) is wanted


@every_vendor
def test_lone_surrogates_from_a_judge_are_replaced(make: Callable[[str], Any]) -> None:
    with VendorServer(FakeMLflow()) as server:
        write(
            make(server.url), make_evaluation("a", make_score(explanation="a\ud800b"), trace=traced().trace)
        )
    assert "\\ud800" not in str([request.body for request in server.requests])


def test_wrong_keys_are_neither_shown_nor_logged_nor_tried_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with VendorServer(lambda request: (401, {})) as server, caplog.at_level(logging.DEBUG):
        sinks = [make(server.url) for make in MAKERS.values()]
        for sink in sinks:
            with pytest.raises(SinkError):
                write(sink, traced())
    assert "secret" not in caplog.text + repr(sinks)
    # LangSmith's two scores go out side by side; a wrong key is not tried again.
    assert len(server.requests) <= 6


@pytest.mark.parametrize(
    ("make", "variable"),
    [
        (LangfuseSink, "LANGFUSE_PUBLIC_KEY"),
        (MLflowSink, "MLFLOW_TRACKING_URI"),
        (LangSmithSink, "LANGSMITH_API_KEY"),
        (lambda: DatadogSink("app"), "DD_API_KEY"),
        (DatadogSink, "DD_LLMOBS_ML_APP"),
    ],
)
def test_a_missing_option_names_its_variable(make: Callable[[], object], variable: str) -> None:
    with pytest.raises(ConfigurationError, match=variable):
        make()


@pytest.mark.parametrize(("password", "sent"), [("secret", "Basic YW5uOnNlY3JldA=="), (None, None)])
def test_mlflow_logs_in_with_a_user_that_has_a_password(
    password: str | None, sent: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_USERNAME", "ann")
    if password is not None:
        monkeypatch.setenv("MLFLOW_TRACKING_PASSWORD", password)
    with VendorServer() as server:
        write(MLflowSink(server.url), traced())
    assert server.requests[0].headers.get("authorization") == sent


def test_a_key_goes_before_a_user_in_the_address() -> None:
    with VendorServer() as server:
        write(PhoenixSink(server.url.replace("//", "//ann:other@"), api_key="px"), traced())
    assert server.requests[0].headers["authorization"] == "Bearer px"


@pytest.mark.parametrize(
    "url", ["sqlite:///mlflow.db", "mlruns", "ftp://host", "http://", "http://host:port", "http://host:0"]
)
def test_a_url_that_is_none_is_named(url: str) -> None:
    with pytest.raises(ConfigurationError, match="is not an http"):
        MLflowSink(url)


def test_the_vendors_variables_are_read_when_the_sink_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    with VendorServer() as server:
        monkeypatch.setenv("PHOENIX_COLLECTOR_ENDPOINT", server.url)
        monkeypatch.setenv("PHOENIX_API_KEY", "from-the-environment")
        write(PhoenixSink(), traced())
    assert server.requests[0].headers["authorization"] == "Bearer from-the-environment"


def test_a_vendor_that_is_down_costs_the_other_sinks_nothing() -> None:
    memory = MemorySink()
    down = PhoenixSink("http://127.0.0.1:1")
    monitor = Monitor(metrics=[], sinks=[down, memory])
    with VendorServer():
        monitor.submit(Record(question="Why?", answer="Because.", trace=TRACE))
        assert monitor.flush(60) == 0
    assert len(memory.evaluations) == 1
    monitor.close()
