from __future__ import annotations

import asyncio
import threading
import time
from pathlib import Path

import pytest
from dirty_equals import IsPartialDict, IsStr
from langsmith.schemas import FeedbackCreate

from sinks.making import TRACE, make_evaluation, make_score
from sinks.vendor_server import Answer, Request, VendorServer
from sinks.vendors.makers import KEYS, MAKERS, RUN, FakeMLflow, traced
from steelyard import Monitor, Record
from steelyard.errors import SinkError
from steelyard.metrics import Faithfulness
from steelyard.questions import YesNo
from steelyard.record import Context, TraceRef
from steelyard.results.counts import ScoreCounts
from steelyard.scores import Verdict
from steelyard.sinks import DatadogSink, LangfuseSink, LangSmithSink, MLflowSink, PhoenixSink
from steelyard.testing import ScriptedJudge
from waiting import until
from writing import write


def test_phoenix_span_annotations() -> None:
    with VendorServer() as server:
        write(PhoenixSink(server.url, api_key="px-secret"), traced())
    (request,) = server.requests
    assert (request.method, request.path) == ("POST", "/v1/span_annotations?sync=false")
    assert request.headers["authorization"] == "Bearer px-secret"
    assert request.body == {
        "data": [
            {
                "span_id": TRACE.span_id,
                "name": "faithfulness",
                "annotator_kind": "CODE",
                "identifier": "id-1",
                "result": {
                    "score": 0.75,
                    "label": "pass",
                    "explanation": "One of two claims is not supported.",
                },
                "metadata": IsPartialDict({"steelyard.evaluation.inclusion_probability": 0.1}),
            },
            {
                "span_id": TRACE.span_id,
                "name": "answer_relevancy",
                "annotator_kind": "CODE",
                "identifier": "id-2",
                "result": {
                    "score": None,
                    "label": "failed",
                    "explanation": "the judge did not answer in time",
                },
                "metadata": IsPartialDict({"steelyard.evaluation.cause": "timeout"}),
            },
        ]
    }


def test_phoenix_document_annotations() -> None:
    contexts = (Context(text="first", rank=2), Context(text="second"))
    verdicts = (
        Verdict(about="first", kind="useful", value=True, probability=0.9, reason="says it"),
        Verdict(about="second", kind="useful", value=False),
    )
    score = make_score("context_utilization", id="x", verdicts=verdicts)
    record = Record(id="r1", contexts=contexts, metadata={"retrieval_span": "00f067aa0ba902b7"})
    with VendorServer() as server:
        write(PhoenixSink(server.url), make_evaluation("r1", score, make_score(), record=record))
    documents = server.requests[1]
    assert (
        documents.path == "/v1/document_annotations?sync=false" and "authorization" not in documents.headers
    )
    metadata = [one["metadata"] for one in documents.body["data"]]
    assert metadata == [
        IsPartialDict({"steelyard.verdict.probability": 0.9, "steelyard.judge.name": "local-lexical"}),
        IsPartialDict({"steelyard.judge.name": "local-lexical"}),
    ]
    assert "steelyard.verdict.probability" not in metadata[1]
    about = {"span_id": "00f067aa0ba902b7", "name": "context_utilization", "annotator_kind": "LLM"}
    expected = ((2, 1, "useful", "says it"), (1, 0, "not useful", None))
    for one, (place, value, label, words) in zip(documents.body["data"], expected, strict=True):
        result = {"score": value, "label": label, "explanation": words}
        assert one == {**about, "document_position": place, "result": result, "metadata": one["metadata"]}


def test_phoenix_is_sent_no_documents_of_a_score_that_it_refused() -> None:
    verdict = Verdict(about="first", kind="useful", value=True)
    names = ("good", "bad", "without documents")
    scores = [make_score("context_utilization", id=one, verdicts=(verdict,)) for one in names]
    record = Record(id="r1", contexts=(Context(text="first"),), metadata={"retrieval_span": "0" * 15 + "1"})

    def answer(request: Request) -> Answer:
        refused = "'without documents'" if "document" in request.path else "'bad'"
        return (422 if refused in str(request.body) else 200), {}

    with VendorServer(answer) as server:
        sink = PhoenixSink(server.url)
        write(sink, make_evaluation("r1", *scores, record=record))
    documents = [request.body["data"] for request in server.requests if "document" in request.path]
    assert [len(one) for one in documents] == [2, 1, 1]
    refused = {"rejected": 1, "documents_rejected": 1}
    assert (sink.counts.written, sink.counts.refused) == (1, refused)


def test_phoenix_documents_have_no_explanation_that_is_left_out() -> None:
    verdict = Verdict(about="first", kind="useful", value=True, reason="quotes the turn")
    score = make_score("context_utilization", id="x", verdicts=(verdict,))
    metadata = {"retrieval_span": "00f067aa0ba902b7"}
    record = Record(id="r1", contexts=(Context(text="first"),), metadata=metadata)
    with VendorServer() as server:
        write(PhoenixSink(server.url, explanations=False), make_evaluation("r1", score, record=record))
    assert [request.path for request in server.requests][1] == "/v1/document_annotations?sync=false"
    assert "quotes the turn" not in str([request.body for request in server.requests])


def test_phoenix_is_told_nothing_of_documents_by_verdicts_on_sentences() -> None:
    """An answer that repeats its only context looks like it, but is not what the retriever returned."""
    verdicts = (Verdict(about="first", kind="relevant", value=True),)
    score = make_score("answer_relevancy", verdicts=verdicts)
    metadata = {"retrieval_span": "00f067aa0ba902b7"}
    record = Record(id="r1", contexts=(Context(text="first"),), answer="first", metadata=metadata)
    with VendorServer() as server:
        write(PhoenixSink(server.url), make_evaluation("r1", score, record=record))
    assert [request.path for request in server.requests] == ["/v1/span_annotations?sync=false"]


def test_langfuse_takes_a_batch() -> None:
    with VendorServer(lambda request: (202, {"message": "Accepted"})) as server:
        sink = LangfuseSink(server.url, **KEYS, environment="staging")
        write(sink, traced())
    (request,) = server.requests
    assert (request.method, request.path) == ("POST", "/api/public/scores")
    assert request.headers["authorization"] == "Basic cGstcHVibGljOnNrLXNlY3JldA=="
    assert request.body == [
        {
            "id": "id-1",
            "traceId": TRACE.trace_id,
            "observationId": TRACE.span_id,
            "name": "faithfulness",
            "value": 0.75,
            "dataType": "NUMERIC",
            "comment": "One of two claims is not supported.",
            "environment": "staging",
            "timestamp": "2023-11-14T22:13:20.000Z",
            "metadata": IsPartialDict({"steelyard.judge.name": "local-lexical"}),
        }
    ]
    assert sink.counts == ScoreCounts(written=1, left_out={"no_value": 1})


def test_langfuse_of_an_older_kind_takes_one_by_one() -> None:
    def older(request: Request) -> Answer:
        return (400, {"message": "Invalid"}) if isinstance(request.body, list) else (200, {"id": "x"})

    with VendorServer(older) as server:
        sink = LangfuseSink(server.url, **KEYS)
        write(sink, make_evaluation("a", make_score(id="1"), make_score("m", id="2")))
        write(sink, make_evaluation("b", make_score(id="3")))
    kinds = [type(request.body).__name__ for request in server.requests]
    assert kinds == ["list", "dict", "dict", "dict"]
    assert sorted(request.body["id"] for request in server.requests[1:]) == ["1", "2", "3"]


def test_langfuse_batches_stay_below_the_servers_limits() -> None:
    with VendorServer(lambda request: (202, {})) as server:
        sink = LangfuseSink(server.url, **KEYS)
        many = [make_evaluation(f"r{n}", make_score(id=str(n))) for n in range(150)]
        large = [
            make_evaluation(f"l{n}", make_score(id=f"l{n}", explanation="x" * 500_000)) for n in range(2)
        ]
        write(sink, *many, *large)
    assert sorted(len(request.body) for request in server.requests) == [1, 51, 100]
    assert sink.counts == ScoreCounts(written=152)


@pytest.mark.parametrize("status", [207, 400])
def test_langfuse_tells_which_scores_of_a_batch_were_refused(status: int) -> None:
    def answer(request: Request) -> Answer:
        if isinstance(request.body, list):
            return status, {"accepted": 2, "rejected": 1, "errors": ["value out of range"]}
        return (400, {}) if request.body["id"] == "1" else (200, {})

    with VendorServer(answer) as server:
        sink = LangfuseSink(server.url, **KEYS)
        write(sink, *[make_evaluation(f"r{n}", make_score(id=str(n))) for n in range(3)])
        write(sink, *[make_evaluation(f"s{n}", make_score(id=f"s{n}")) for n in range(2)])
    assert sink.counts == ScoreCounts(written=4, refused={"rejected": 1})
    assert isinstance(server.requests[4].body, list), "a server that took batches is still sent batches"


def test_mlflow_feedback() -> None:
    with VendorServer(FakeMLflow()) as server:
        write(MLflowSink(server.url, token="ml-secret"), traced())
    look, *posted = server.requests
    first, second = sorted(posted, key=lambda request: "error" in request.body["assessment"]["feedback"])
    trace_id = f"tr-{TRACE.trace_id}"
    assert (look.method, look.path) == ("GET", f"/api/3.0/mlflow/traces/{trace_id}")
    assert first.path == f"/api/3.0/mlflow/traces/{trace_id}/assessments"
    assert first.headers["authorization"] == "Bearer ml-secret"
    assert first.body == {
        "assessment": {
            "assessment_name": "faithfulness",
            "trace_id": trace_id,
            "span_id": TRACE.span_id,
            "source": {"source_type": "CODE", "source_id": "local-lexical"},
            "create_time": "2023-11-14T22:13:20.000Z",
            "last_update_time": "2023-11-14T22:13:20.000Z",
            "feedback": {"value": 0.75},
            "rationale": "One of two claims is not supported.",
            "metadata": IsPartialDict({"steelyard.evaluation.id": "id-1"}),
        }
    }
    assert all(isinstance(item, str) for item in first.body["assessment"]["metadata"].values())
    assert second.body["assessment"]["feedback"] == {
        "error": {"error_code": "timeout", "error_message": "the judge did not answer in time"}
    }


def test_mlflow_is_not_told_twice() -> None:
    fake = FakeMLflow()
    with VendorServer(fake) as server:
        write(MLflowSink(server.url), traced())
        write(MLflowSink(server.url), traced())  # as another process would
    assert len(fake.kept) == 2


def test_mlflow_traces_that_arrive_later() -> None:
    fake = FakeMLflow(arrives_after=2)
    with VendorServer(fake) as server:
        write(sink := MLflowSink(server.url, patience=5), traced())
    assert len(fake.kept) == 2 and sink.counts == ScoreCounts(written=2)


def test_mlflow_feedback_whose_reply_was_lost_is_not_sent_again() -> None:
    fake = FakeMLflow()

    def slow(request: Request) -> Answer:
        if request.method == "POST":
            time.sleep(3.0)
        return fake(request)

    with VendorServer(slow) as server:
        sink = MLflowSink(server.url, timeout=1.5)
        write(sink, traced())
    assert len(fake.kept) == 2
    assert sink.counts == ScoreCounts(written=2)


def test_a_reply_that_drips_without_an_end_is_given_up() -> None:
    with VendorServer(drips=True) as server:
        sink = PhoenixSink(server.url, timeout=0.3)
        began = time.monotonic()
        write(sink, traced())
        # The server took it; what it says of that is not waited for.
        assert time.monotonic() - began < 30
        server.drips = False
    assert len(server.requests) == 1 and sink.counts == ScoreCounts(written=2)


def test_a_trace_that_lags_is_tried_again_out_of_the_queue_and_holds_up_no_other(tmp_path: Path) -> None:
    late, fake = f"tr-{1:032x}", FakeMLflow()
    arrived = threading.Event()

    def lags(request: Request) -> Answer:
        return fake(request) if arrived.is_set() or late not in request.path else (404, {})

    judge = ScriptedJudge(lambda question, request: YesNo(value=True, probability=0.9))
    with VendorServer(lags) as server:
        sink = MLflowSink(server.url, patience=0.1)
        monitor = Monitor(
            metrics=[Faithfulness(claims="sentences")], judge=judge, sinks=[sink], spool=tmp_path / "turns.db"
        )
        for number in range(1, 6):
            trace = TraceRef(trace_id=f"{number:032x}", span_id=f"{number:016x}")
            contexts = (Context(text="Polonium was found in 1898."),)
            monitor.submit(Record(question="When?", answer="In 1898.", contexts=contexts, trace=trace))
        until(lambda: len(fake.kept) == 4)
        until(lambda: (counts := monitor.stats().spool) is not None and counts.waiting.get("mlflow") == 1)
        arrived.set()
        assert monitor.flush(60) == 0
        counts = monitor.stats().sinks["mlflow"]
        assert (counts.written, counts.lost, dict(counts.refused)) == (5, 0, {})
        assert sorted(one["trace_id"] for one in fake.kept) == [f"tr-{n:032x}" for n in range(1, 6)]
        monitor.close()


def test_of_a_batch_with_one_trace_that_lags_that_one_is_sent_again() -> None:
    fake, lagging = FakeMLflow(), [f"tr-{2:032x}"]
    batch = [
        make_evaluation(
            f"r{n}", make_score(id=f"s{n}"), trace=TraceRef(trace_id=f"{n:032x}"), evaluated_at=time.time()
        )
        for n in (1, 2, 3)
    ]

    async def twice(sink: MLflowSink) -> None:
        with pytest.raises(SinkError, match="not there yet"):
            await sink.write(batch)
        lagging.clear()
        await sink.write(batch)
        await sink.aclose()

    def lags(request: Request) -> Answer:
        return (404, {}) if any(one in request.path for one in lagging) else fake(request)

    with VendorServer(lags) as server:
        sink = MLflowSink(server.url, patience=0.1)
        asyncio.run(twice(sink))
    assert sorted(one["trace_id"] for one in fake.kept) == [f"tr-{n:032x}" for n in (1, 2, 3)]
    assert sink.counts == ScoreCounts(written=3)


@pytest.mark.parametrize("name", ["mlflow", "langsmith"])
def test_traces_that_never_arrive_are_counted(name: str) -> None:
    with VendorServer(lambda request: (404, {})) as server:
        sink = MAKERS[name](server.url)
        write(sink, make_evaluation("a", make_score(), trace=traced().trace))
    assert sink.counts == ScoreCounts(refused={"trace_not_found": 1})


def test_langsmith_feedback() -> None:
    with VendorServer() as server:
        sink = LangSmithSink(
            server.url, api_key="ls-secret", project_id="0190d5ac-0000-7f31-9c53-0123456789ab"
        )
        write(sink, traced())
        write(sink, traced(evaluated_at=1_700_000_001.0))
    first, second, again = (
        next(one for one in server.requests if (one.body["key"], one.body["created_at"][17:19]) == wanted)
        for wanted in [("faithfulness", "20"), ("answer_relevancy", "20"), ("faithfulness", "21")]
    )
    assert (first.method, first.path) == ("POST", "/feedback")
    assert first.headers["x-api-key"] == "ls-secret"
    assert first.body == {
        "id": IsStr(regex=r"[0-9a-f-]{36}"),
        "run_id": RUN,
        "session_id": "0190d5ac-0000-7f31-9c53-0123456789ab",
        "key": "faithfulness",
        "score": 0.75,
        "value": "pass",
        "comment": "One of two claims is not supported.",
        "feedback_source": {"type": "api", "metadata": IsPartialDict({"steelyard.evaluation.id": "id-1"})},
        "extend_trace_retention": False,
        "created_at": "2023-11-14T22:13:20.000Z",
        "modified_at": "2023-11-14T22:13:20.000Z",
    }
    assert "score" not in second.body
    assert second.body["error"] is True
    assert again.body["id"] == first.body["id"] != second.body["id"]
    for request in server.requests:  # the client library's own model of the format
        FeedbackCreate.model_validate({"trace_id": None, **request.body})


def test_langsmith_feedback_that_is_there_is_updated() -> None:
    with VendorServer(lambda request: (409, {}) if request.method == "POST" else (200, {})) as server:
        write(
            LangSmithSink(server.url, api_key="k"), make_evaluation("a", make_score(), trace=traced().trace)
        )
    created, updated = server.requests
    assert (updated.method, updated.path) == ("PATCH", f"/feedback/{created.body['id']}")
    assert updated.body == {
        "score": 0.75,
        "value": "pass",
        "comment": "One of two claims is not supported.",
    }


def test_datadog_evaluation_metrics() -> None:
    with VendorServer(lambda request: (202, {})) as server:
        sink = DatadogSink("my-app", api_key="dd-secret", url=server.url)
        write(sink, traced(), make_evaluation("b", make_score("7 odd.näme", passed=None, label=None)))
        write(sink, make_evaluation("c", make_score(), trace=TraceRef(trace_id=TRACE.trace_id)))
    (request,) = server.requests
    assert request.path == "/api/intake/llm-obs/v2/eval-metric"
    assert request.headers["dd-api-key"] == "dd-secret"
    assert request.body["data"]["type"] == "evaluation_metric"
    first, odd = request.body["data"]["attributes"]["metrics"]
    assert first == {
        "event_kind": "evaluation",
        "eval_scope": "span",
        "join_on": {"span": {"trace_id": TRACE.trace_id, "span_id": "13235353014750950193"}},
        "ml_app": "my-app",
        "timestamp_ms": 1_700_000_000_000,
        "label": "faithfulness",
        "metric_type": "score",
        "score_value": 0.75,
        "assessment": "pass",
        "reasoning": "One of two claims is not supported.",
        "metadata": IsPartialDict({"steelyard.record.id": "r1"}),
        "tags": ["source:otel", "ml_app:my-app"],
    }
    assert odd["label"] == "m_7_odd_n_me"
    assert "assessment" not in odd
    assert sink.counts == ScoreCounts(written=2, left_out={"no_value": 1, "no_trace": 1})
