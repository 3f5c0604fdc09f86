"""Against a real Phoenix server in an environment of its own; skipped where it cannot be installed."""

from __future__ import annotations

import json
import time
import urllib.request
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor

from phoenix import NotInstallable, phoenix_server
from sinks.making import failed, make_evaluation, make_score
from steelyard.record import Context, Record, TraceRef
from steelyard.scores import Verdict
from steelyard.sinks import PhoenixSink
from writing import write

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200)]


@pytest.fixture(scope="module")
def phoenix() -> Iterator[str]:
    try:
        with phoenix_server() as address:
            yield address
    except NotInstallable as error:
        pytest.skip(str(error))


def _get(url: str) -> Any:
    with urllib.request.urlopen(url, timeout=60) as reply:
        return json.load(reply)


def _traced(url: str) -> tuple[TraceRef, str]:
    """A RAG trace in the server, exported over OTLP."""
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(OTLPSpanExporter(f"{url}/v1/traces")))
    tracer = provider.get_tracer("app")
    documents = {
        "openinference.span.kind": "RETRIEVER",
        "retrieval.documents.0.document.content": "first",
        "retrieval.documents.1.document.content": "second",
    }
    with (
        tracer.start_as_current_span("rag", attributes={"openinference.span.kind": "CHAIN"}) as root,
        tracer.start_as_current_span("docs", attributes=documents) as retrieval,
    ):
        pass
    provider.shutdown()
    context = root.get_span_context()
    ref = TraceRef(trace_id=f"{context.trace_id:032x}", span_id=f"{context.span_id:016x}")
    return ref, f"{retrieval.get_span_context().span_id:016x}"


def _graphql(url: str, query: str) -> Any:
    body = json.dumps({"query": query}).encode()
    request = urllib.request.Request(f"{url}/graphql", body, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=60) as reply:
        return json.load(reply)["data"]


def _annotations(url: str) -> list[Any]:
    try:
        found: list[Any] = _get(url)["data"]
    except urllib.error.HTTPError as error:
        assert error.code == 404  # the span has not been written yet
        return []
    return found


def _eventually(look: Callable[[], Any], seconds: float = 300) -> Any:
    deadline = time.monotonic() + seconds
    while not (found := look()):
        assert time.monotonic() < deadline
        time.sleep(0.3)
    return found


def test_annotations_appear_on_spans_and_documents_once(phoenix: str) -> None:
    ref, retrieval = _traced(phoenix)
    contexts = (Context(text="first"), Context(text="second"))
    verdicts = (
        Verdict(about="first", kind="useful", value=True, reason="says it"),
        Verdict(about="second", kind="useful", value=False, probability=0.25),
    )
    scores = (
        make_score(id="one"),
        failed(id="two"),
        make_score("context_utilization", 1.0, id="three", verdicts=verdicts),
    )
    record = Record(id="r1", contexts=contexts, metadata={"retrieval_span": retrieval}, trace=ref)
    evaluation = make_evaluation("r1", *scores, record=record, trace=ref)
    write(PhoenixSink(phoenix, timeout=60), evaluation)
    write(PhoenixSink(phoenix, timeout=60), evaluation)

    url = f"{phoenix}/v1/projects/default/span_annotations?span_ids={ref.span_id}"
    _eventually(lambda: len(_annotations(url)) >= 3)
    time.sleep(3)  # the second write must not add anything
    found = {one["name"]: one for one in _annotations(url)}
    assert sorted(one["name"] for one in _annotations(url)) == [
        "answer_relevancy",
        "context_utilization",
        "faithfulness",
    ]
    assert found["faithfulness"]["result"] == {
        "score": 0.75,
        "label": "pass",
        "explanation": "One of two claims is not supported.",
    }
    assert found["faithfulness"]["identifier"] == "one"
    assert found["answer_relevancy"]["result"]["score"] is None
    assert found["answer_relevancy"]["result"]["label"] == "failed"

    query = """{ projects { edges { node { spans(first: 50) { edges { node {
        spanId documentEvaluations { name score label documentPosition } } } } } } } }"""
    spans = {
        span["node"]["spanId"]: span["node"]["documentEvaluations"]
        for project in _graphql(phoenix, query)["projects"]["edges"]
        for span in project["node"]["spans"]["edges"]
    }
    assert sorted(
        (one["documentPosition"], one["name"], one["score"], one["label"]) for one in spans[retrieval]
    ) == [
        (0, "context_utilization", 1.0, "useful"),
        (1, "context_utilization", 0.0, "not useful"),
    ]
    query = """{ projects { edges { node { documentEvaluationSummary(evaluationName: "context_utilization") {
        averagePrecision hitRate } } } } }"""
    (project,) = _graphql(phoenix, query)["projects"]["edges"]
    assert project["node"]["documentEvaluationSummary"] == {"averagePrecision": 0.5, "hitRate": 1.0}
